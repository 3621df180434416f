"""Study files that must be refused: what is wrong with the small study, and what the message must name."""

from __future__ import annotations

import math
from typing import Any

import pytest

from support import tiny


class Bad:
    """A change that breaks the small study; the key that the message must name, and words that it must hold."""

    def __init__(self, changes: dict[str, Any], key: str, *words: str) -> None:
        self.content, self.key, self.words = tiny.content(**changes), key, words

    def check(self, message: str, where: str) -> None:
        """Fail unless the message is one printable line that begins with the file and the key and holds the words."""
        line = message.rstrip("\n")
        start = f"{where}: {self.key}: " if self.key else f"{where}: "
        assert line.startswith(start), line
        assert all(word in line.removeprefix(start) for word in self.words), line
        assert line.isprintable()


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
    "top": Bad({"sedes": 3}, "", "'sedes'", "'seeds'"),
    "arm": Bad(arm(desing="cnn-pool"), "arms[1]", "'desing'", "'design'"),
    "second arm": Bad({"arms": [POOL, {**STRIDED, "epoch": 2}]}, "arms[2]", "'epoch'", "epochs_times"),
    "pair": Bad(compared({**PAIR, "primry": True}), "comparisons[1]", "'primry'", "'primary'"),
    "interaction": Bad(compared(PAIR, {**INTERACTION, "metrik": "loss"}), "comparisons[2]", "'metrik'", "'metric'"),
    "setting": Bad(compared({**SETTING, "expected": 1}), "comparisons[1]", "'expected'", "'expect'"),
    "budget": Bad({"budget": {**BUDGET, "epoch": 1}}, "budget", "'epoch'", "'epochs'"),
    "optimiser": Bad({"optimiser": {"kin": "sgd"}}, "optimiser", "'kin'", "'kind'"),
    "schedule": Bad({"optimiser": {"schedule": {"warmup": 1}}}, "optimiser.schedule", "'warmup'", "'warmup_epochs'"),
    "quick": Bad({"quick": {"seed": 1}}, "quick", "'seed'", "'seeds'"),
    "claim": Bad(claim(sorce="R0"), "claims[1]", "'sorce'", "'source'"),
    "reported": Bad(reported(metrics="loss"), "reported[1]", "'metrics'", "'metric'"),
    "about": Bad({"about": {"times": "1 min"}}, "about", "'times'", "'time'"),
    "nothing near": Bad({"budget": {**BUDGET, "zzz": 1}}, "budget", "'zzz'", "batch, epochs"),
}

WRONG_TYPES = {
    "text for a whole number": Bad({"seeds": "2"}, "seeds", "integer", "'2'"),
    "true for a whole number": Bad({"seeds": True}, "seeds", "integer", "True"),
    "float for a whole number": Bad({"seeds": 2.0}, "seeds", "integer", "2.0"),
    "float epochs": Bad({"budget": {"epochs": 1.5, "batch": 8}}, "budget.epochs", "integer", "1.5"),
    "text for a number": Bad({"margin": "small"}, "margin", "number", "'small'"),
    "true for a number": Bad({"fixed": {"lr": True}}, "fixed.lr", "number", "True"),
    "number for a text": Bad({"question": 1}, "question", "string", "1"),
    "number for true": Bad(compared({**PAIR, "primary": 1}), "comparisons[1].primary", "boolean", "1"),
    "list for a table": Bad({"budget": [1, 8]}, "budget", "table"),
    "number for a table": Bad({"optimiser": 5}, "optimiser", "table", "5"),
    "table for a list": Bad({"arms": POOL}, "arms", "list"),
    "number for an arm": Bad({"arms": [POOL, 1]}, "arms[2]", "table", "1"),
    "number for a comparison": Bad({"comparisons": [1]}, "comparisons[1]", "table", "1"),
    "number for a grid axis": Bad({"fixed": None, "grid": {"lr": 0.1}}, "grid.lr", "list", "0.1"),
    "text in a grid axis": Bad({"fixed": None, "grid": {"lr": [0.1, "0.2"]}}, "grid.lr[2]", "number", "'0.2'"),
    "list for an option": Bad({"options": {"divisor": [255]}}, "options.divisor", "number", "true or false"),
    "text in a reported setting": Bad(reported(setting={"lr": "0.1"}), "reported[1].setting.lr", "number", "'0.1'"),
    "missing key": Bad({"metric": None}, "metric", "required"),
    "missing key of an arm": Bad({"arms": [{"name": "pool"}]}, "arms[1].design", "required"),
    "missing key of a figure": Bad(
        {"reported": [{key: value for key, value in REPORTED.items() if key != "setting"}]},
        "reported[1].setting",
        "required",
    ),
    "missing side": Bad(compared({"a": "pool"}), "comparisons[1].b", "required"),
    "kind of comparison": Bad(
        compared({"kind": "par"}), "comparisons[1]", "'pair'", "'interaction'", "'setting'", "'order'", "'agreement'"
    ),
    "kind of optimiser": Bad(
        {"optimiser": {"kind": "sdg"}}, "optimiser.kind", "'sgd'", "'sgd-summed'", "'adam'", "'adamw'", "'sdg'"
    ),
    "expectation of a claim": Bad(claim(expect="c"), "claims[1].expect", "'a'", "'b'", "'same'", "'c'"),
    "name with a space": Bad({"name": "my study"}, "name", "letters, digits", "my study"),
    "empty name of an arm": Bad(arm(name=""), "arms[1].name", "letters, digits"),
    "name of a thousand letters": Bad({"name": "x" * 1000}, "name", "60"),
    "key with a line break": Bad({"fixed": {"l\nr": "x"}}, "fixed.l\\nr", "number", "'x'"),
    "number of 400 digits": Bad({"fixed": {"lr": 10**400}}, "fixed.lr", "number"),
    "empty list of arms": Bad({"arms": []}, "arms", "empty"),
    "empty list of comparisons": Bad({"comparisons": []}, "comparisons", "empty"),
    "empty grid axis": Bad({"fixed": None, "grid": {"lr": []}}, "grid.lr", "empty"),
    "empty quick grid axis": Bad({"quick": {"grid": {"lr": []}}}, "quick.grid.lr", "empty"),
    "no seeds": Bad({"seeds": 0}, "seeds", "1", "0"),
    "negative seeds": Bad({"seeds": -3}, "seeds", "1", "-3"),
    "too many seeds": Bad({"seeds": 10_001}, "seeds", "10000", "10001"),
    "no epochs": Bad({"budget": {"epochs": 0, "batch": 8}}, "budget.epochs", "1", "0"),
    "no epochs of an arm": Bad(arm(epochs_times=0), "arms[1].epochs_times", "1", "0"),
    "empty batches": Bad({"budget": {"epochs": 1, "batch": 0}}, "budget.batch", "1", "0"),
    "no margin": Bad({"margin": 0}, "margin", "greater than 0"),
    "endless margin": Bad({"margin": math.inf}, "margin", "finite", "inf"),
    "NaN margin": Bad({"margin": math.nan}, "margin", "finite", "nan"),
    "NaN figure": Bad(reported(value=math.nan), "reported[1].value", "finite", "nan"),
    "negative warm-up": Bad(
        {"optimiser": {"schedule": {"warmup_epochs": -1}}}, "optimiser.schedule.warmup_epochs", "greater than"
    ),
}

BROKEN_RULES = {
    "design": Bad(arm(design="cnn-pol"), "arms[1].design", "'cnn-pol'", "'cnn-pool'"),
    "task": Bad({"task": "clasify"}, "task", "'clasify'", "'classify'"),
    "data": Bad({"data": "octmnits"}, "data", "'octmnits'", "'octmnist'"),
    "data of another task": Bad({"data": "cora"}, "data", "'cora'", "task 'nodes'"),
    "metric": Bad({"metric": "acuracy"}, "metric", "'acuracy'", "'accuracy'"),
    "metric of a comparison": Bad(compared({**PAIR, "metric": "los"}), "comparisons[1].metric", "'los'", "'loss'"),
    "metric without its margin": Bad(compared({**PAIR, "metric": "loss"}), "comparisons[1].margin", "loss", "margin"),
    "protocol": Bad({"protocol": "audit"}, "protocol", "'audit'", "'audited'"),
    "protocol of an arm": Bad(arm(protocol="as_reported"), "arms[1].protocol", "'as_reported'", "'as-reported'"),
    "fixed hyper-parameter": Bad({"fixed": {"momentun": 0.9}}, "fixed", "'momentun'", "'momentum'"),
    "tuned hyper-parameter": Bad({"grid": {"droput": [0.1]}}, "grid", "'droput'", "'dropout'"),
    "hyper-parameter of an arm": Bad(arm(fixed={"bet1": 0.9}), "arms[1].fixed", "'bet1'", "'beta1'"),
    "no name near": Bad({"fixed": {"zzz": 1.0}}, "fixed", "'zzz'", "beta1, beta2, ", "eps"),
    "grid of an arm": Bad(arm(grid={"lrr": [0.1]}), "arms[1].grid", "'lrr'", "'lr'"),
    "fixed and tuned for an arm": Bad(
        arm(grid={"lr": [0.1]}, fixed={"lr": 0.2}), "arms[1].fixed.lr", "in the grid", "remove"
    ),
    "batch at equal steps": Bad(
        {**arm(batch=3), "budget": {"epochs": 1, "batch": 8, "equal": "steps"}}, "arms[1].batch", "3", "8", "epochs"
    ),
    "augmentation without images": Bad(
        {
            "task": "nodes",
            "data": "karate",
            "augment": {"shift": 1},
            "options": {},
            "arms": [{"name": name, "design": "gcn"} for name in ("pool", "strided")],
        },
        "augment",
        "images",
        "nodes",
    ),
    "schedule's key": Bad(
        {"optimiser": {"schedule": {"kind": "cosine", "step_epochs": 3}}}, "optimiser.schedule", "step_epochs", "'step'"
    ),
    "task option": Bad({"options": {"shuffle": True}}, "options", "'shuffle'", "'shuffle_pixels'"),
    "task option of an arm": Bad(arm(options={"divsor": 256}), "arms[1].options", "'divsor'", "'divisor'"),
    "evaluation option": Bad(arm(evaluation={"shft": 1}), "arms[1].evaluation", "'shft'", "'shift'"),
    "design option": Bad(arm(build={"width": 8}), "arms[1].build", "'width'"),
    "type of an option": Bad({"options": {"shuffle_pixels": 1}}, "options.shuffle_pixels", "true or false", "1"),
    "true for a number option": Bad(
        arm(evaluation={"shift": True}), "arms[1].evaluation.shift", "whole number", "True"
    ),
    "choice of an option": Bad({"options": {"divisor": 254}}, "options.divisor", "254", "255, 256"),
    "range of an option": Bad(arm(evaluation={"shift": 15}), "arms[1].evaluation.shift", "15", "-14", "14"),
    "value twice in the grid": Bad({"fixed": None, "grid": {"lr": [0.1, 0.1]}}, "grid.lr", "0.1", "twice"),
    "NaN learning rate": Bad({"fixed": {"lr": math.nan}}, "fixed.lr", "nan", "0", "1e+09"),
    "endless learning rate": Bad({"fixed": {"lr": math.inf}}, "fixed.lr", "inf", "1e+09"),
    "negative learning rate": Bad({"fixed": {"lr": -0.1}}, "fixed.lr", "-0.1", "1e+09"),
    "NaN in the grid": Bad({"fixed": None, "grid": {"lr": [0.1, math.nan]}}, "grid.lr", "nan"),
    "negative in the grid": Bad({"fixed": None, "grid": {"lr": [0.1, -1]}}, "grid.lr", "-1"),
    "dropout of one": Bad({"fixed": {"dropout": 1.0}}, "fixed.dropout", "1", "0.999"),
    "arm that is not there": Bad(compared({"a": "pol", "b": "strided"}), "comparisons[1].a", "'pol'", "'pool'"),
    "arm of an interaction": Bad(compared(PAIR, INTERACTION), "comparisons[2].c", "'pool-2'", "'pool'"),
    "arm of a best setting": Bad(
        {**TUNED, **compared({**SETTING, "arm": "stride"})}, "comparisons[1].arm", "'stride'", "'strided'"
    ),
    "arm against itself": Bad(compared({"a": "pool", "b": "pool"}), "comparisons[1]", "itself"),
    "no primary comparison": Bad(
        compared({"a": "pool", "b": "strided"}, {"a": "strided", "b": "pool"}), "comparisons", "0", "primary = true"
    ),
    "two primary comparisons": Bad(
        compared(PAIR, {"a": "strided", "b": "pool", "primary": True}), "comparisons", "2", "primary = true"
    ),
    "arms of one name": Bad({"arms": [POOL, {**STRIDED, "name": "pool"}]}, "arms", "'pool'", "twice"),
    "comparisons of one name": Bad(
        compared(PAIR, {"a": "pool", "b": "strided"}), "comparisons", "'pool vs strided'", "twice"
    ),
    "claims of one name": Bad({"claims": [CLAIM, CLAIM]}, "claims", "'c1'", "twice"),
    "setting outside the grid": Bad(
        {**TUNED, **compared({**SETTING, "expect": {"lr": 0.3}})}, "comparisons[1].expect", "lr=0.3", "lr=0.1; lr=0.01"
    ),
    "setting with a strange key": Bad(
        {**TUNED, **compared({**SETTING, "expect": {"l\nr": 0.3}})}, "comparisons[1].expect", "l\\nr=0.3"
    ),
    "grid of a single setting": Bad(
        {"fixed": None, "grid": {"lr": [0.1]}, **compared(SETTING)}, "comparisons[1]", "grid"
    ),
    "fixed and tuned": Bad({"grid": {"lr": [0.1, 0.2]}}, "fixed.lr", "grid"),
    "fixed by an arm and tuned": Bad({**TUNED, **arm(fixed={"lr": 0.1})}, "arms[1].fixed.lr", "grid"),
    "as reported on other data": Bad({"protocol": "as-reported"}, "protocol", "octmnist", "audited"),
    "arm as reported on other data": Bad(arm(protocol="as-reported"), "arms[1].protocol", "octmnist", "audited"),
    "claim on no comparison": Bad(
        claim(comparison="pool vs stride"), "claims[1].comparison", "'pool vs stride'", "'pool vs strided'"
    ),
    "claim on no data": Bad(claim(data="octmnits"), "claims[1].data", "'octmnits'", "'octmnist'"),
    "claim under no protocol": Bad(claim(protocol="as-reporte"), "claims[1].protocol", "'as-reporte'", "'as-reported'"),
    "figure of no arm": Bad(reported(arm="pol"), "reported[1].arm", "'pol'", "'pool'"),
    "figure of no metric": Bad(reported(metric="val_acuracy"), "reported[1].metric", "'val_acuracy'", "'val_accuracy'"),
    "figure outside the grid": Bad(reported(setting={"lr": 0.5}), "reported[1].setting", "lr=0.5", "default"),
    "figure on no data": Bad(reported(data="mnis"), "reported[1].data", "'mnis'", "'mnist'"),
    "quick data": Bad({"quick": {"data": "mnist5"}}, "quick.data", "'mnist5'", "'mnist5k'"),
    "quick without an arm": Bad({"quick": {"without": ["pol"]}}, "quick.without", "'pol'", "'pool'"),
    "quick protocol": Bad({"quick": {"protocol": "audit"}}, "quick.protocol", "'audit'", "'audited'"),
    "quick grid": Bad({"quick": {"grid": {"lrr": [0.1]}}}, "quick.grid", "'lrr'", "'lr'"),
    "quick data under the wrong protocol": Bad(
        {"data": "octmnist", "protocol": "as-reported", "quick": {"data": "mnist5k"}},
        "quick.protocol",
        "octmnist",
        "audited",
    ),
}


def cases(*tables: dict[str, Bad]) -> pytest.MarkDecorator:
    """Every entry of the tables as one case."""
    return pytest.mark.parametrize(
        "bad", [pytest.param(bad, id=name) for table in tables for name, bad in table.items()]
    )
