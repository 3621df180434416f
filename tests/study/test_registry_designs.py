from __future__ import annotations

import inspect

import pytest

from tiebreak import catalog
from tiebreak.study.registry_designs import DESIGNS
from tiebreak.study.rules import check_options


@pytest.mark.parametrize("name", DESIGNS)
def test_options_are_parameters_of_the_network_with_the_same_defaults(name: str) -> None:
    parameters = inspect.signature(catalog.DESIGNS[name].build).parameters
    for option, entry in DESIGNS[name].options.items():
        assert parameters[option].default in (entry.default, inspect.Parameter.empty), option


@pytest.mark.parametrize("name", DESIGNS)
def test_the_default_of_every_option_is_itself_valid(name: str) -> None:
    options = DESIGNS[name].options
    check_options("build", {option: entry.default for option, entry in options.items()}, options)
