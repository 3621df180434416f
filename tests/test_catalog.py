from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


def test_a_design_file_may_import_modules_beside_it(tmp_path: Path) -> None:
    """Two folders with a helper of the same name: each file gets its own."""
    widths = []
    for width in (3, 5):
        folder = tmp_path / str(width)
        folder.mkdir()
        (folder / "sizes.py").write_text(f"WIDTH = {width}\n", "utf-8")
        (folder / "nets.py").write_text(
            "from torch import nn\nimport sizes\n"
            "def small(shape): return nn.Linear(1, sizes.WIDTH)\nDESIGNS = {'small': small}\n",
            "utf-8",
        )
        widths.append(catalog.find_design("small", str(folder / "nets.py")).build(None).out_features)
    assert widths == [3, 5]
    assert "sizes" not in sys.modules
    assert str(tmp_path / "3") not in sys.path
