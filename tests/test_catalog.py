from __future__ import annotations

import subprocess
import sys

from tiebreak import catalog


def test_every_design_is_filed_under_its_name() -> None:
    assert all(name == design.name for name, design in catalog.DESIGNS.items())


def test_importing_the_catalog_prints_and_changes_nothing() -> None:
    code = (
        "import torch; before = torch.get_rng_state(); import tiebreak.catalog; "
        "assert torch.equal(before, torch.get_rng_state())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert done.stderr == ""
