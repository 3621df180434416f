"""Registers that are read and never written, found in machine code as nvdisasm prints it."""

from __future__ import annotations

from support.machine_code import never_written

RIGHT = """
        /*0010*/                   UMOV UR4, 0x400 ;
        /*0020*/                   ULDC.64 UR6, c[0x0][0x208] ;
        /*0030*/              @!P0 LDG.E R2, desc[UR6][R4.64+UR7] ;
        /*0040*/                   UIADD3 UR9, UP0, UR4, 0x2, URZ ;
        /*0050*/                   UMOV UR8, UR9 ;
"""
WRONG = "        /*1dd0*/                   UIADD3 UR50, UP0, UR50, 0x2, URZ ;\n"


def test_registers_that_are_read_and_never_written_are_found() -> None:
    assert never_written(RIGHT) == []
    assert never_written(RIGHT + WRONG) == [WRONG.strip()]
    product = "/*0060*/  HGMMA.64x32x16.F32.BF16 R120, R44, gdesc[UR4], R120, gsb0 ;"
    assert never_written(RIGHT + product) == []
    assert never_written(RIGHT.replace("UR7", "UR6").replace("ULDC.64", "ULDC") + product) == [product]
