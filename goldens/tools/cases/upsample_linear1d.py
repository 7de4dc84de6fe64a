"""Linear resizing of rows to the length that they have, as image encoders ask for at the size that they were made for."""

from __future__ import annotations

from casekit import FLOATS, SHORT, case, tensor


def add() -> None:
    """Add the layouts of tables of relative positions, and every bit pattern."""
    for dtype in FLOATS:
        for name, sizes, strides in (
            ("rows", [2, 3, 27], None),
            ("transposed", [1, 64, 127], [8128, 1, 64]),
            ("one", [1, 5, 1], None),
        ):
            for kind in ("spread", "bits"):
                given = tensor(dtype, sizes, 1, kind, strides=strides)
                case(
                    f"upsample_linear1d.{SHORT[dtype]}.{name}.{kind}",
                    "aten::upsample_linear1d",
                    [
                        ("self", given),
                        ("output_size", [sizes[2]]),
                        ("align_corners", False),
                        ("scales", None),
                    ],
                    True,
                )
