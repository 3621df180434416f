"""What a family of designs looks like from outside: the shapes it is built for and how it is called."""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tiebreak.names import Scalar


@dataclass(frozen=True, kw_only=True)
class Images:
    """What a classifier is built for: images [B, channels, height, width] in, logits [B, classes] out."""

    channels: int
    height: int
    width: int
    classes: int

    def example(self, batch: int) -> Tensor:
        """An input of the right shape."""
        return torch.zeros(batch, self.channels, self.height, self.width)


Shape = Images  # more families join here


@dataclass(frozen=True, kw_only=True)
class Design:
    """One network: its family, and the class (or function) that builds it from the task's shape and its options."""

    name: str
    family: str
    build: Callable[..., nn.Module]

    def network(self, shape: Shape, options: Mapping[str, Scalar], key: int) -> nn.Module:
        """A freshly initialised network. Constructors draw from the global generator: it is forked and keyed."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(key)
            return self.build(shape, **options)

    def source(self) -> str:
        """A hash of the code that defines the design: its class and base classes, without comments and docstrings."""
        parts: tuple[Any, ...] = inspect.getmro(self.build) if inspect.isclass(self.build) else (self.build,)
        own = [part for part in parts if not part.__module__.startswith(("torch", "builtins", "typing"))]
        return hashlib.sha256("\n".join(_code(part) for part in own).encode()).hexdigest()[:20]


def _code(part: Any) -> str:
    tree = ast.parse(textwrap.dedent(inspect.getsource(part)))
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)
