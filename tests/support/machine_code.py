"""What the assembler made of a Triton kernel: ptxas 12.8, of Triton 3.6, forgets to write registers that it reads.

At D = 32 the gradients of Taylor attention were wrong on an H200 while their PTX was right: the address of an operand
of `wgmma` came from a uniform register that nothing writes. ptxas 12.9, of Triton 3.9, makes right code of it.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

INSTRUCTION = re.compile(r"/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Za-z0-9_.]+)\s+(.*?);")
WRITERS = ("U", "R2UR", "S2UR", "VOTEU", "REDUX")


def never_written(code: str) -> list[str]:
    """The instructions that read a uniform register before any instruction above them has written it."""
    written: set[int] = set()
    found = []
    for line in code.splitlines():
        if (match := INSTRUCTION.search(line)) is None:
            continue
        name, operands = match[1], [each.strip() for each in match[2].split(",")]
        target = next((i for i, each in enumerate(operands[:2]) if re.fullmatch(r"UR\d+|URZ", each)), None)
        if not name.startswith(WRITERS) or (target == 1 and not re.fullmatch(r"U?P\w+", operands[0])):
            target = None
        read = _read([each for i, each in enumerate(operands) if i != target])
        if not read <= written:
            found.append(line.strip())
            written |= read
        if target is not None and operands[target] != "URZ":
            first = int(operands[target][2:])
            written |= {first, first + 1} if ".64" in name or "WIDE" in name else {first}
    return found


def _read(operands: list[str]) -> set[int]:
    """Uniform registers; a descriptor of wgmma is two pairs of them, of which a left operand in registers takes one."""
    text = " ".join(operands)
    pairs = {int(first) + more for first in re.findall(r"gdesc\[UR(\d+)\]", text) for more in (2, 3)}
    return pairs | {int(each) for each in re.findall(r"\bUR(\d+)", re.sub(r"gdesc\[UR\d+\]", "", text))}


def disassembled(compiled: Any) -> str:
    """The machine code of a compiled Triton kernel."""
    import triton

    tool = Path(triton.__file__).parent / "backends/nvidia/bin/nvdisasm"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        return subprocess.run([str(tool), "-c", file.name], capture_output=True, text=True, check=True).stdout
