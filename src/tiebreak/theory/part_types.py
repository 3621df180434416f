"""What a part of `tiebreak cost` is: a name, the variables it is built at, and formulas where it has some."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from tiebreak.errors import TiebreakError

if TYPE_CHECKING:
    from tiebreak.theory.symbolic import Costs, Expr

QUANTITIES = ("parameters", "multiply_adds", "activations", "state")


class Variable(NamedTuple):
    """A size that the cost of a part depends on."""

    meaning: str
    default: int
    least: int = 1


@dataclass(frozen=True, kw_only=True)
class Part:
    """A layer or a design, for one example or one sequence, forward pass only."""

    name: str
    line: str
    variables: Mapping[str, Variable]
    vary: str  # the variable to vary by default
    span: tuple[int, int]  # and its default range
    family: str | None = None  # of a design of the catalog

    def sizes(self, given: Mapping[str, int] | None = None) -> dict[str, int]:
        """The value of every variable: the given one, else the default."""
        given = given or {}
        for name, value in given.items():
            self.check(name)
            if value < (least := self.variables[name].least):
                raise TiebreakError(f"{self.name}: {name} = {value} is too small; it should be {least} or more")
        return {name: given.get(name, variable.default) for name, variable in self.variables.items()}

    def check(self, variable: str) -> None:
        """Refuse a variable that the part does not have."""
        if variable not in self.variables:
            known = ", ".join(f"{name} ({each.meaning})" for name, each in self.variables.items())
            raise TiebreakError(f"{self.name} has no variable {variable!r}; it has {known}")


@dataclass(frozen=True, kw_only=True)
class FormulaPart(Part):
    """A part with formulas: its four quantities are sympy expressions in its variables."""

    @cached_property
    def costs(self) -> Costs:
        """All four quantities."""
        from tiebreak.theory import network_costs, symbolic

        return network_costs.COSTS[self.name](**{name: symbolic.symbol(name) for name in self.variables})

    @property
    def parameters(self) -> Expr:
        """Trained numbers."""
        return self.costs.parameters

    @property
    def multiply_adds(self) -> Expr:
        """Of the products: matrices, convolutions, attention. Elementwise operations are not counted."""
        return self.costs.multiply_adds

    @property
    def activations(self) -> Expr:
        """Numbers that the forward pass keeps for the backward pass, including inputs, without parameters."""
        return self.costs.activations

    @property
    def state(self) -> Expr:
        """Numbers carried from one element to the next when a sequence is processed element by element."""
        return self.costs.state

    def value(self, quantity: str, given: Mapping[str, int] | None = None) -> int:
        """One of QUANTITIES as a number.

        The formulas are made on first use: sympy takes a quarter of a second to import.
        """
        from tiebreak.theory import symbolic

        return symbolic.evaluate(getattr(self.costs, quantity), self.sizes(given))
