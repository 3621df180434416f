"""Study files that must be refused: what is wrong with the small study, and what the one line must say about it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pytest

from support import tiny


class Bad(NamedTuple):
    changes: dict[str, Any]
    line: str  # after the name of the file


POOL, STRIDED = {"name": "pool", "design": "cnn-pool"}, {"name": "strided", "design": "cnn-strided"}
PAIR = {"a": "pool", "b": "strided", "primary": True}
INTERACTION = {"kind": "interaction", "a": "pool", "b": "strided", "c": "pool-2", "d": "strided-2"}
SETTING = {"kind": "setting", "arm": "pool", "expect": {"lr": 0.1}}
CLAIM = {"id": "c1", "text": "pooling wins", "comparison": "pool vs strided"}
REPORTED = {"source": "R0", "what": "pool", "arm": "pool", "setting": {}, "metric": "accuracy", "value": 0.8}
TUNED = {"fixed": None, "grid": {"lr": [0.1, 0.01]}}
BUDGET = {"epochs": 1, "batch": 8}


def arm(**changes: Any) -> dict[str, Any]:
    return {"arms": [{**POOL, **changes}, STRIDED]}


def compared(*items: dict[str, Any]) -> dict[str, Any]:
    return {"comparisons": list(items)}


def claim(**changes: Any) -> dict[str, Any]:
    return {"claims": [{**CLAIM, **changes}]}


def reported(**changes: Any) -> dict[str, Any]:
    return {"reported": [{**REPORTED, **changes}]}


UNKNOWN_KEYS = {
    "top": Bad({"sedes": 3}, "unknown key 'sedes'; did you mean 'seeds'?"),
    "arm": Bad(arm(desing="cnn-pool"), "arms[1]: unknown key 'desing'; did you mean 'design'?"),
    "second arm": Bad(
        {"arms": [POOL, {**STRIDED, "epoch": 2}]}, "arms[2]: unknown key 'epoch'; did you mean 'epochs_times'?"
    ),
    "pair": Bad(compared({**PAIR, "primry": True}), "comparisons[1]: unknown key 'primry'; did you mean 'primary'?"),
    "interaction": Bad(
        compared(PAIR, {**INTERACTION, "metrik": "loss"}),
        "comparisons[2]: unknown key 'metrik'; did you mean 'metric'?",
    ),
    "setting": Bad(
        compared({**SETTING, "expected": 1}), "comparisons[1]: unknown key 'expected'; did you mean 'expect'?"
    ),
    "budget": Bad({"budget": {**BUDGET, "epoch": 1}}, "budget: unknown key 'epoch'; did you mean 'epochs'?"),
    "optimiser": Bad({"optimiser": {"kin": "sgd"}}, "optimiser: unknown key 'kin'; did you mean 'kind'?"),
    "schedule": Bad(
        {"optimiser": {"schedule": {"warmup": 1}}},
        "optimiser.schedule: unknown key 'warmup'; did you mean 'warmup_epochs'?",
    ),
    "quick": Bad({"quick": {"seed": 1}}, "quick: unknown key 'seed'; did you mean 'seeds'?"),
    "claim": Bad(claim(sorce="R0"), "claims[1]: unknown key 'sorce'; did you mean 'source'?"),
    "reported": Bad(reported(metrics="loss"), "reported[1]: unknown key 'metrics'; did you mean 'metric'?"),
    "about": Bad({"about": {"times": "1 min"}}, "about: unknown key 'times'; did you mean 'time'?"),
    "nothing near": Bad({"budget": {**BUDGET, "zzz": 1}}, "budget: unknown key 'zzz'; valid: batch, epochs"),
}

WRONG_TYPES = {
    "text for a whole number": Bad({"seeds": "2"}, "seeds: should be a valid integer, not '2'"),
    "true for a whole number": Bad({"seeds": True}, "seeds: should be a valid integer, not True"),
    "float for a whole number": Bad({"seeds": 2.0}, "seeds: should be a valid integer, not 2.0"),
    "float epochs": Bad({"budget": {"epochs": 1.5, "batch": 8}}, "budget.epochs: should be a valid integer, not 1.5"),
    "text for a number": Bad({"margin": "small"}, "margin: should be a valid number, not 'small'"),
    "true for a number": Bad({"fixed": {"lr": True}}, "fixed.lr: should be a valid number, not True"),
    "number for a text": Bad({"question": 1}, "question: should be a valid string, not 1"),
    "number for true": Bad(
        compared({**PAIR, "primary": 1}), "comparisons[1].primary: should be a valid boolean, not 1"
    ),
    "list for a table": Bad({"budget": [1, 8]}, "budget: should be a table"),
    "number for a table": Bad({"optimiser": 5}, "optimiser: should be a table, not 5"),
    "table for a list": Bad({"arms": POOL}, "arms: should be a list"),
    "number for an arm": Bad({"arms": [POOL, 1]}, "arms[2]: should be a table, not 1"),
    "number for a comparison": Bad({"comparisons": [1]}, "comparisons[1]: should be a table, not 1"),
    "number for a grid axis": Bad({"fixed": None, "grid": {"lr": 0.1}}, "grid.lr: should be a list, not 0.1"),
    "text in a grid axis": Bad(
        {"fixed": None, "grid": {"lr": [0.1, "0.2"]}}, "grid.lr[2]: should be a valid number, not '0.2'"
    ),
    "list for an option": Bad(
        {"options": {"divisor": [255]}}, "options.divisor: should be a number, a text, true or false"
    ),
    "text in a reported setting": Bad(
        reported(setting={"lr": "0.1"}), "reported[1].setting.lr: should be a valid number, not '0.1'"
    ),
    "missing key": Bad({"metric": None}, "metric: this key is required"),
    "missing key of an arm": Bad({"arms": [{"name": "pool"}]}, "arms[1].design: this key is required"),
    "missing key of a figure": Bad(
        {"reported": [{key: value for key, value in REPORTED.items() if key != "setting"}]},
        "reported[1].setting: this key is required",
    ),
    "missing side": Bad(compared({"a": "pool"}), "comparisons[1].b: this key is required"),
    "kind of comparison": Bad(
        compared({"kind": "par"}),
        "comparisons[1]: kind should be 'pair', 'interaction', 'setting', 'order' or 'agreement'",
    ),
    "kind of optimiser": Bad(
        {"optimiser": {"kind": "sdg"}}, "optimiser.kind: should be 'sgd', 'sgd-summed', 'adam' or 'adamw', not 'sdg'"
    ),
    "expectation of a claim": Bad(claim(expect="c"), "claims[1].expect: should be 'a', 'b' or 'same', not 'c'"),
    "name with a space": Bad(
        {"name": "my study"},
        "name: should be letters, digits, '.', '_' and '-', with a letter or digit in front, not 'my study'",
    ),
    "empty name of an arm": Bad(arm(name=""), "arms[1].name: should be letters, digits"),
    "name of a thousand letters": Bad({"name": "x" * 1000}, "name: String should have at most 60 characters"),
    "key with a line break": Bad({"fixed": {"l\nr": "x"}}, r"fixed.l\nr: should be a valid number, not 'x'"),
    "number of 400 digits": Bad({"fixed": {"lr": 10**400}}, "fixed.lr: should be a valid number"),
    "empty list of arms": Bad({"arms": []}, "arms: should not be empty"),
    "empty list of comparisons": Bad({"comparisons": []}, "comparisons: should not be empty"),
    "empty grid axis": Bad({"fixed": None, "grid": {"lr": []}}, "grid.lr: should not be empty"),
    "empty quick grid axis": Bad({"quick": {"grid": {"lr": []}}}, "quick.grid.lr: should not be empty"),
    "no seeds": Bad({"seeds": 0}, "seeds: should be greater than or equal to 1, not 0"),
    "negative seeds": Bad({"seeds": -3}, "seeds: should be greater than or equal to 1, not -3"),
    "too many seeds": Bad({"seeds": 10_001}, "seeds: should be less than or equal to 10000, not 10001"),
    "no epochs": Bad(
        {"budget": {"epochs": 0, "batch": 8}}, "budget.epochs: should be greater than or equal to 1, not 0"
    ),
    "no epochs of an arm": Bad(
        arm(epochs_times=0), "arms[1].epochs_times: should be greater than or equal to 1, not 0"
    ),
    "empty batches": Bad({"budget": {"epochs": 1, "batch": 0}}, "budget.batch: should be greater than or equal to 1"),
    "no margin": Bad({"margin": 0}, "margin: should be greater than 0, not 0"),
    "endless margin": Bad({"margin": math.inf}, "margin: should be a finite number, not inf"),
    "NaN margin": Bad({"margin": math.nan}, "margin: should be a finite number, not nan"),
    "NaN figure": Bad(reported(value=math.nan), "reported[1].value: should be a finite number, not nan"),
    "negative warm-up": Bad(
        {"optimiser": {"schedule": {"warmup_epochs": -1}}}, "optimiser.schedule.warmup_epochs: should be greater than"
    ),
}

BROKEN_RULES = {
    "design": Bad(arm(design="cnn-pol"), "arms[1].design: unknown name 'cnn-pol'; did you mean 'cnn-pool'?"),
    "task": Bad({"task": "clasify"}, "task: unknown name 'clasify'; did you mean 'classify'?"),
    "data": Bad({"data": "octmnits"}, "data: unknown name 'octmnits'; did you mean 'octmnist'?"),
    "metric": Bad({"metric": "acuracy"}, "metric: unknown name 'acuracy'; did you mean 'accuracy'?"),
    "metric of a comparison": Bad(
        compared({**PAIR, "metric": "los"}), "comparisons[1].metric: unknown name 'los'; did you mean 'loss'?"
    ),
    "metric without its margin": Bad(compared({**PAIR, "metric": "loss"}), "comparisons[1].margin: required"),
    "protocol": Bad({"protocol": "audit"}, "protocol: unknown name 'audit'; did you mean 'audited'?"),
    "protocol of an arm": Bad(
        arm(protocol="as_reported"), "arms[1].protocol: unknown name 'as_reported'; did you mean 'as-reported'?"
    ),
    "fixed hyper-parameter": Bad(
        {"fixed": {"momentun": 0.9}}, "fixed: unknown name 'momentun'; did you mean 'momentum'?"
    ),
    "tuned hyper-parameter": Bad({"grid": {"droput": [0.1]}}, "grid: unknown name 'droput'; did you mean 'dropout'?"),
    "hyper-parameter of an arm": Bad(
        arm(fixed={"bet1": 0.9}), "arms[1].fixed: unknown name 'bet1'; did you mean 'beta1'?"
    ),
    "no name near": Bad({"fixed": {"zzz": 1.0}}, "fixed: unknown name 'zzz'; valid: beta1, beta2, dropout, eps"),
    "task option": Bad(
        {"options": {"shuffle": True}}, "options: unknown name 'shuffle'; did you mean 'shuffle_pixels'?"
    ),
    "task option of an arm": Bad(
        arm(options={"divsor": 256}), "arms[1].options: unknown name 'divsor'; did you mean 'divisor'?"
    ),
    "evaluation option": Bad(
        arm(evaluation={"shft": 1}), "arms[1].evaluation: unknown name 'shft'; did you mean 'shift'?"
    ),
    "design option": Bad(arm(build={"width": 8}), "arms[1].build: unknown name 'width'; none is valid here"),
    "type of an option": Bad({"options": {"shuffle_pixels": 1}}, "options.shuffle_pixels: should be bool, not 1"),
    "true for a number option": Bad(
        arm(evaluation={"shift": True}), "arms[1].evaluation.shift: should be int, not True"
    ),
    "choice of an option": Bad({"options": {"divisor": 254}}, "options.divisor: 254 is not one of 255, 256"),
    "range of an option": Bad(arm(evaluation={"shift": 15}), "arms[1].evaluation.shift: 15 is outside -14 to 14"),
    "value twice in the grid": Bad({"fixed": None, "grid": {"lr": [0.1, 0.1]}}, "grid.lr: a value is there twice"),
    "NaN learning rate": Bad({"fixed": {"lr": math.nan}}, "fixed.lr: nan is outside 0 to 1e+09"),
    "endless learning rate": Bad({"fixed": {"lr": math.inf}}, "fixed.lr: inf is outside 0 to 1e+09"),
    "negative learning rate": Bad({"fixed": {"lr": -0.1}}, "fixed.lr: -0.1 is outside 0 to 1e+09"),
    "NaN in the grid": Bad({"fixed": None, "grid": {"lr": [0.1, math.nan]}}, "grid.lr: nan is outside 0 to 1e+09"),
    "negative in the grid": Bad({"fixed": None, "grid": {"lr": [0.1, -1]}}, "grid.lr: -1.0 is outside 0 to 1e+09"),
    "dropout of one": Bad({"fixed": {"dropout": 1.0}}, "fixed.dropout: 1.0 is outside 0 to 0.999"),
    "arm that is not there": Bad(
        compared({"a": "pol", "b": "strided"}), "comparisons[1].a: unknown name 'pol'; did you mean 'pool'?"
    ),
    "arm of an interaction": Bad(
        compared(PAIR, INTERACTION), "comparisons[2].c: unknown name 'pool-2'; did you mean 'pool'?"
    ),
    "arm of a best setting": Bad(
        {**TUNED, **compared({**SETTING, "arm": "stride"})},
        "comparisons[1].arm: unknown name 'stride'; did you mean 'strided'?",
    ),
    "arm against itself": Bad(compared({"a": "pool", "b": "pool"}), "comparisons[1]: an arm is compared with itself"),
    "no primary comparison": Bad(
        compared({"a": "pool", "b": "strided"}, {"a": "strided", "b": "pool"}),
        "comparisons: exactly one is primary, here 0; set primary = true on the main question",
    ),
    "two primary comparisons": Bad(
        compared(PAIR, {"a": "strided", "b": "pool", "primary": True}), "comparisons: exactly one is primary, here 2"
    ),
    "arms of one name": Bad({"arms": [POOL, {**STRIDED, "name": "pool"}]}, "arms: the name 'pool' is there twice"),
    "comparisons of one name": Bad(
        compared(PAIR, {"a": "pool", "b": "strided"}), "comparisons: the name 'pool vs strided' is there twice"
    ),
    "claims of one name": Bad({"claims": [CLAIM, CLAIM]}, "claims: the name 'c1' is there twice"),
    "setting outside the grid": Bad(
        {**TUNED, **compared({**SETTING, "expect": {"lr": 0.3}})},
        "comparisons[1].expect: lr=0.3 is not in the grid (lr=0.1; lr=0.01)",
    ),
    "setting with a strange key": Bad(
        {**TUNED, **compared({**SETTING, "expect": {"l\nr": 0.3}})},
        r"comparisons[1].expect: l\nr=0.3 is not in the grid",
    ),
    "grid of a single setting": Bad(
        {"fixed": None, "grid": {"lr": [0.1]}, **compared(SETTING)}, "comparisons[1]: the grid has a single setting"
    ),
    "fixed and tuned": Bad({"grid": {"lr": [0.1, 0.2]}}, "fixed.lr: it is in the grid"),
    "fixed by an arm and tuned": Bad({**TUNED, **arm(fixed={"lr": 0.1})}, "arms[1].fixed.lr: it is in the grid"),
    "as reported on other data": Bad(
        {"protocol": "as-reported"},
        "protocol: 'as-reported' is a protocol for octmnist",
    ),
    "arm as reported on other data": Bad(
        arm(protocol="as-reported"), "arms[1].protocol: 'as-reported' is a protocol for octmnist"
    ),
    "claim on no comparison": Bad(
        claim(comparison="pool vs stride"),
        "claims[1].comparison: unknown name 'pool vs stride'; did you mean 'pool vs strided'?",
    ),
    "claim on no data": Bad(
        claim(data="octmnits"), "claims[1].data: unknown name 'octmnits'; did you mean 'octmnist'?"
    ),
    "claim under no protocol": Bad(
        claim(protocol="as-reporte"), "claims[1].protocol: unknown name 'as-reporte'; did you mean 'as-reported'?"
    ),
    "figure of no arm": Bad(reported(arm="pol"), "reported[1].arm: unknown name 'pol'; did you mean 'pool'?"),
    "figure of no metric": Bad(
        reported(metric="val_acuracy"), "reported[1].metric: unknown name 'val_acuracy'; did you mean 'val_accuracy'?"
    ),
    "figure outside the grid": Bad(
        reported(setting={"lr": 0.5}), "reported[1].setting: lr=0.5 is not in the grid (default)"
    ),
    "figure on no data": Bad(reported(data="mnis"), "reported[1].data: unknown name 'mnis'; did you mean 'mnist'?"),
    "quick data": Bad({"quick": {"data": "mnist5"}}, "quick.data: unknown name 'mnist5'; did you mean 'mnist5k'?"),
    "quick without an arm": Bad(
        {"quick": {"without": ["pol"]}}, "quick.without: unknown name 'pol'; did you mean 'pool'?"
    ),
    "quick protocol": Bad(
        {"quick": {"protocol": "audit"}}, "quick.protocol: unknown name 'audit'; did you mean 'audited'?"
    ),
    "quick grid": Bad({"quick": {"grid": {"lrr": [0.1]}}}, "quick.grid: unknown name 'lrr'; did you mean 'lr'?"),
    "quick data under the wrong protocol": Bad(
        {"data": "octmnist", "protocol": "as-reported", "quick": {"data": "mnist5k"}},
        "quick.protocol: 'as-reported' is a protocol for octmnist",
    ),
}


def cases(*tables: dict[str, Bad]) -> pytest.MarkDecorator:
    """Every entry of the tables as one case: the whole content of the file, and the line."""
    params = [
        pytest.param(tiny.content(**bad.changes), bad.line, id=name) for table in tables for name, bad in table.items()
    ]
    return pytest.mark.parametrize(("content", "line"), params)
