"""Sampling of images at the points of a grid."""

from __future__ import annotations

from typing import Any

from casekit import FLOATS, SHORT, case, tensor

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


def add() -> None:
    """Add every mode with points inside and outside, at the edges of numbers, and in the layouts of detectors."""
    for dtype in FLOATS:
        image, grid = (
            tensor(dtype, [2, 3, 5, 7]),
            tensor(dtype, [2, 4, 6, 2], 2, "unit"),
        )
        # Every number beside the one that comes seven later: x and y lie 29 elements apart.
        edges = tensor(dtype, [1, 2, 11, 2], 0, "edges", [58, 11, 1, 29])
        for mode in range(3):
            for padding in range(3):
                for align in (False, True):
                    name = f"{MODES[mode]}.{PADDINGS[padding]}{'.corners' if align else ''}"
                    sample(f"{SHORT[dtype]}.{name}", image, grid, mode, padding, align)
                    # A NaN that comes out of bicubic weights has other bits on the CPU.
                    exact = mode < 2 or dtype != "float32"
                    small = tensor(dtype, [1, 2, 4, 3], 3)
                    sample(
                        f"{SHORT[dtype]}.edges.{name}",
                        small,
                        edges,
                        mode,
                        padding,
                        align,
                        exact,
                    )
        # Heads beside each other in an image of rows of channels; points of all heads and levels in one tensor.
        image = tensor(dtype, [8, 16, 9, 11], 4, strides=[16, 1, 11 * 128, 128])
        grid = tensor(dtype, [8, 30, 4, 2], 5, "unit", [24, 192, 2, 1], 12)
        sample(f"{SHORT[dtype]}.heads", image, grid, 0, 0, align=False)
        sample(f"{SHORT[dtype]}.heads.bicubic", image, grid, 2, 0, align=False)
        image = tensor(dtype, [16, 5, 13, 13], 6)
        grid = tensor(dtype, [16, 50, 2, 2], 7, "unit", [4, 64, 2, 1])
        sample(f"{SHORT[dtype]}.planes", image, grid, 0, 0, align=False)
        image = tensor(dtype, [2, 6, 8, 8], 8, strides=[384, 1, 48, 6])
        sample(
            f"{SHORT[dtype]}.channels_last",
            image,
            tensor(dtype, [2, 7, 5, 2], 9, "unit"),
            0,
            1,
            align=False,
        )
        values = tensor(dtype, [1, 4, 11, 22], 0, "edges")
        sample(f"{SHORT[dtype]}.values", values, tensor(dtype, [1, 16, 16, 2], 10, "unit"), 0, 0, align=False,
               exact=dtype != "float32")  # fmt: skip
        sample(f"{SHORT[dtype]}.bits", tensor(dtype, [1, 4, 9, 9], 11, "bits"), tensor(dtype, [1, 9, 9, 2], 12, "unit"), 1, 0,
               align=False)  # fmt: skip
    image, grid = (
        tensor("float32", [8, 16, 40, 40], 13),
        tensor("float32", [8, 100, 6, 2], 14, "unit"),
    )
    sample("f32.many", image, grid, 0, 0, align=False)
    sample("f32.many.corners", image, grid, 0, 0, align=True)


def sample(
    name: str,
    image: Any,
    grid: Any,
    mode: int,
    padding: int,
    align: bool,
    exact: bool = True,
) -> None:
    """Add a case; the result is row-major."""
    sizes = [*image["sizes"][:2], *grid["sizes"][1:3]]
    strides = [sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1]
    arguments = [
        ("input", image), ("grid", grid), ("interpolation_mode", mode), ("padding_mode", padding), ("align_corners", align),
    ]  # fmt: skip
    results = [{"dtype": image["dtype"], "sizes": sizes, "strides": strides}]
    case(f"grid_sampler_2d.{name}", "aten::grid_sampler_2d", arguments, exact, results)
