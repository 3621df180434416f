"""Formulas for display: their growth in one variable, and how they are printed on one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy  # type: ignore[import-untyped]
from sympy.printing.str import StrPrinter  # type: ignore[import-untyped]

from tiebreak.theory.symbolic import Expr, Nearest, symbol

FAR = 2**40  # the size at which terms are compared
SUPERSCRIPTS = str.maketrans("0123456789+-KDn", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᴷᴰⁿ")


def big_o(expression: Expr, variable: str, sizes: Mapping[str, int] | None = None) -> Expr:
    """The fastest growth in one variable, all others held: L**2, D**(K - 1), 1.

    Other variables stay as they are in an exponent; `sizes` settles which of two such terms is larger.

    >>> L, D = symbol("L"), symbol("D")
    >>> big_o(2 * D * L**2 + 7 * L, "L"), big_o(2 * D * L**2 + 7 * L, "D")
    (L**2, D)
    """
    values = {symbol(name): size for name, size in (sizes or {}).items() if name != variable}
    return _leading(sympy.sympify(expression), symbol(variable), values)


def _leading(term: Expr, x: Expr, sizes: Mapping[Expr, int]) -> Expr:
    if not term.has(x):
        return sympy.Integer(1)
    if isinstance(term, sympy.floor | sympy.ceiling | Nearest):
        return _leading(term.args[0], x, sizes)
    if isinstance(term, sympy.Mod):  # stays below what it is divided by
        return _leading(term.args[1], x, sizes)
    if isinstance(term, sympy.Sum):  # its last term is the largest
        inner, (index, _, last) = term.args
        return _leading(inner.subs(index, last), x, sizes)
    if isinstance(term, sympy.binomial):
        top, below = term.args
        return _leading(top ** (below if not below.has(x) else top - below), x, sizes)
    if term.is_Pow:
        if not term.exp.has(x):
            return _leading(term.base, x, sizes) ** term.exp
        return term.base ** _leading(term.exp, x, sizes)
    if term.is_Add:  # what is subtracted only makes it smaller
        kept = [part for part in term.args if not part.could_extract_minus_sign()] or [sympy.Integer(1)]
        return max((_leading(part, x, sizes) for part in kept), key=lambda each: _size(each, x, sizes))
    grown = [_leading(part, x, sizes) for part in term.args]
    if term.is_Mul:
        return sympy.Mul(*grown)
    if isinstance(term, sympy.Max | sympy.Min):
        pick = min if isinstance(term, sympy.Min) else max
        return pick(grown, key=lambda each: _size(each, x, sizes))
    return term if not term.args else sympy.Mul(*grown)


def _size(grown: Expr, x: Expr, sizes: Mapping[Expr, int]) -> float:
    logarithm = sympy.expand_log(sympy.log(grown), force=True)  # before numbers: 16**K would be computed
    others = {other: sizes.get(other, 3) for other in grown.free_symbols - {x}}
    return float(logarithm.subs(others).subs(x, FAR).evalf())


class _Line(StrPrinter):  # type: ignore[misc]
    """Products as spaces, small powers as superscripts, floor and ceiling brackets."""

    def _print_Pow(self, expr: Expr, rational: bool = False) -> str:
        if expr.exp.is_negative:
            return str(super()._print_Pow(expr, rational=rational))
        raised = str(self._print(expr.exp)).replace(" ", "")
        small = all(ord(letter) in SUPERSCRIPTS for letter in raised)
        return str(self.parenthesize(expr.base, 100)) + (raised.translate(SUPERSCRIPTS) if small else f"^({raised})")

    def _print_Add(self, expr: Expr, order: str | None = None) -> str:
        terms = list(self._as_ordered_terms(expr, order=order))
        terms.sort(key=lambda term: term.could_extract_minus_sign() or term.is_number)  # W - N, not -N + W
        terms.sort(key=lambda term: bool(term.is_number))
        first, *others = (str(self._print(term)) for term in terms)
        return first + "".join(f" - {each[1:]}" if each.startswith("-") else f" + {each}" for each in others)

    def _print_floor(self, expr: Expr) -> str:
        return f"⌊{self._print(sympy.together(expr.args[0]))}⌋"

    def _print_ceiling(self, expr: Expr) -> str:
        return f"⌈{self._print(sympy.together(expr.args[0]))}⌉"

    def _print_Mod(self, expr: Expr) -> str:
        return f"{self._print(expr.args[0])} mod {self._print(expr.args[1])}"

    def _print_Nearest(self, expr: Expr) -> str:
        return f"round({self._print(expr.args[0])})"

    def _print_Max(self, expr: Expr) -> str:
        return f"max({', '.join(map(self._print, expr.args))})"

    def _print_Min(self, expr: Expr) -> str:
        return f"min({', '.join(map(self._print, expr.args))})"

    def _print_binomial(self, expr: Expr) -> str:
        return f"C({self._print(expr.args[0])}, {self._print(expr.args[1])})"

    def _print_Sum(self, expr: Expr) -> str:
        inner, (index, _, last) = expr.args
        return f"Σ({index}<{self._print(last + 1)}) {self._print(inner)}"


def line(expression: Any) -> str:
    """An expression on one line.

    >>> line(2 * symbol("D") * symbol("L") ** 2)
    '2 D L²'
    """
    return str(_Line().doprint(sympy.sympify(expression))).replace("*", " ")


def without_rounding(*expressions: Expr) -> tuple[list[Expr], Expr | None]:
    """The expressions with the letter h for the rounded number of hidden units, and the expression for h."""
    found = set().union(*(sympy.sympify(each).atoms(sympy.Max) for each in expressions))
    if len(found) != 1:
        return list(expressions), None
    (hidden,) = found
    return [sympy.sympify(each).subs(hidden, symbol("h")) for each in expressions], hidden


def order(expression: Expr, variable: str, sizes: Mapping[str, int] | None = None) -> str:
    """Big-O in one variable, as text.

    >>> order(7 * symbol("L") ** 2, "L")
    'O(L²)'
    """
    return f"O({line(big_o(expression, variable, sizes))})"
