"""Which versions a machine of the cluster has: numbers would differ where its code does. No Ray."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Facts = dict[str, str]


def facts_function() -> Callable[[], Facts]:
    """A function for other machines. It is sent as it is: it must run where there is no Tiebreak, or another one."""

    def facts() -> Facts:
        import hashlib
        import platform
        from importlib import metadata, util
        from pathlib import Path

        found = {"python": platform.python_version()}
        for name in ("torch", "tiebreak"):
            try:
                found[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                found[name] = "missing" if util.find_spec(name) is None else "not installed"
        package = util.find_spec("tiebreak")
        hasher = hashlib.sha256()
        for path in sorted(Path(package.origin).parent.rglob("*.py")) if package and package.origin else ():
            hasher.update(path.read_bytes())
        return {**found, "code": hasher.hexdigest()}

    return facts


def difference(here: Mapping[str, str], there: Mapping[str, str]) -> str:
    """In which versions two machines differ; empty if in none."""
    apart = [name for name in ("python", "torch", "tiebreak") if here[name] != there[name]]
    if apart:
        return " and ".join(f"{name} {there[name]} instead of {here[name]}" for name in apart)
    return "" if here["code"] == there["code"] else f"other code of tiebreak {there['tiebreak']}"
