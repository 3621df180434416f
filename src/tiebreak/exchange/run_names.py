"""The arm and the seed out of the name of a run or the path of its folder."""

from __future__ import annotations

import re

from tiebreak.errors import TiebreakError

# resnet-seed3, resnet_s3, resnet/seed=3, resnet/3, resnet-run-3
USUAL = re.compile(r"(?P<arm>.+?)[/_\-. ,]+(?:(?:random_?)?seed|run|rep|s|r)?[_\-=/ :]?(?P<seed>[0-9]{1,18})(?:/.*)?")
PLACES = re.compile(r"\{(arm|seed|\*)\}")


def compile_pattern(text: str) -> re.Pattern[str]:
    """A pattern such as `{arm}-seed{seed}`: {arm}, {seed}, and {*} for what does not matter; all else as it stands."""
    parts = PLACES.split(text)
    names = parts[1::2]
    if names.count("arm") > 1 or names.count("seed") > 1 or not {"arm", "seed"} & set(names):
        raise TiebreakError(f"--run-name {text}: should name {{arm}} and {{seed}} once each, like {{arm}}-seed{{seed}}")
    groups = {"arm": "(?P<arm>.+?)", "seed": "(?P<seed>[^/]+?)", "*": ".*?"}
    pieces = [groups[part] if place % 2 else re.escape(part) for place, part in enumerate(parts)]
    return re.compile("".join(pieces))


def parse_name(name: str, pattern: re.Pattern[str] | None) -> dict[str, str]:
    """What the name says: `arm` and `seed`, those that the pattern has; nothing where it does not fit."""
    found = (pattern or USUAL).fullmatch(name)
    return {key: value.strip(" /_-") for key, value in found.groupdict().items()} if found else {}
