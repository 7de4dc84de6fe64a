"""Products of matrices, of batches of them and with vectors: layouts that decide which call of cuBLAS PyTorch makes."""

from __future__ import annotations

from casekit import FLOATS, SHORT, Argument, case, tensor

Matrix = tuple[list[int], list[int] | None]


def add() -> None:
    """Add products."""
    for dtype in FLOATS:
        products(dtype)
        sums(dtype)


def products(dtype: str) -> None:
    """Add mm, bmm and mv."""
    pairs: tuple[tuple[str, Matrix, Matrix], ...] = (
        ("as_they_lie", ([60, 96], None), ([96, 40], None)),
        ("second_turned", ([300, 256], None), ([256, 192], [1, 256])),
        ("first_turned", ([400, 128], [1, 400]), ([128, 128], [1, 128])),
        ("both_turned_odd", ([37, 51], [1, 37]), ([51, 29], [1, 51])),
        ("one_term", ([400, 1], [1, 1]), ([1, 64], None)),
        ("one_row", ([1, 96], None), ([96, 40], [1, 96])),
        ("one_column", ([90, 64], None), ([64, 1], [1, 64])),
        ("one_element", ([1, 77], None), ([77, 1], [1, 77])),
        ("two_columns_of_wide_rows", ([60, 192], [3456, 1]), ([192, 2], [1, 192])),
        ("gaps", ([40, 32], [160, 2]), ([32, 24], None)),
        ("a_row_repeated", ([40, 32], [0, 1]), ([32, 24], None)),
        ("long", ([24, 4096], None), ([4096, 16], [1, 4096])),
    )
    for name, a, b in pairs:
        two("mm", "mat2", name, dtype, a, b)
    batches: tuple[tuple[str, Matrix, Matrix], ...] = (
        ("heads_turned", ([6, 197, 64], [64, 384, 1]), ([6, 64, 197], [64, 1, 384])),
        ("heads", ([6, 197, 197], None), ([6, 197, 64], [64, 384, 1])),
        ("heads_even", ([12, 256, 64], [64, 768, 1]), ([12, 64, 256], [64, 1, 768])),
        ("heads_50", ([12, 50, 64], [64, 768, 1]), ([12, 64, 50], [64, 1, 768])),
        ("small_heads", ([8, 300, 16], [16, 128, 1]), ([8, 16, 300], [16, 1, 128])),
        ("small_values", ([8, 300, 300], None), ([8, 300, 24], [24, 192, 1])),
        ("windows", ([96, 49, 32], None), ([96, 32, 49], None)),
        ("window_values", ([96, 49, 49], None), ([96, 49, 32], None)),
        ("narrow_windows", ([150, 64, 10], None), ([150, 10, 64], None)),
        ("narrow_values", ([150, 64, 64], None), ([150, 64, 10], None)),
        ("few_queries", ([80, 18, 32], [32, 2560, 1]), ([80, 32, 18], [32, 1, 2560])),
        (
            "one_for_all",
            ([18, 100, 256], [256, 4608, 1]),
            ([18, 256, 256], [0, 1, 256]),
        ),
        ("single_rows", ([40, 1, 128], [1, 5120, 40]), ([40, 128, 128], [0, 1, 128])),
        ("one_query", ([12, 1, 64], None), ([12, 64, 256], [64, 1, 768])),
        ("one_query_values", ([12, 1, 256], None), ([12, 256, 64], [64, 768, 1])),
        ("batch_of_one", ([1, 300, 192], None), ([1, 192, 1000], [192, 1, 192])),
        ("one_column", ([1, 192, 1600], None), ([1, 1600, 1], [1600, 1, 1600])),
        ("one_column_each", ([5, 19, 33], None), ([5, 33, 1], None)),
        ("one_term", ([5, 19, 1], None), ([5, 1, 23], None)),
        ("gaps", ([3, 40, 32], [8000, 160, 2]), ([3, 32, 24], None)),
        ("columns", ([3, 40, 32], [1280, 1, 40]), ([3, 32, 24], [768, 1, 32])),
    )
    for name, a, b in batches:
        two("bmm", "mat2", name, dtype, a, b)
    vectors: tuple[tuple[str, Matrix, Matrix], ...] = (
        ("rows", ([1200, 33], None), ([33], None)),
        ("long_rows", ([20, 5000], None), ([5000], None)),
        ("columns", ([300, 64], [1, 300]), ([64], None)),
        ("wide_rows", ([300, 64], [80, 1]), ([64], [3])),
        ("gaps", ([50, 32], [160, 2]), ([32], None)),
        ("one_repeated", ([50, 32], None), ([32], [0])),
        ("one_row", ([1, 300], None), ([300], None)),
        ("one_column", ([300, 1], None), ([1], None)),
    )
    for name, a, b in vectors:
        two("mv", "vec", name, dtype, a, b)


def two(
    operation: str, second: str, name: str, dtype: str, a: Matrix, b: Matrix
) -> None:
    """Add a product of two."""
    arguments: list[Argument] = [
        ("self", tensor(dtype, a[0], 1, strides=a[1])),
        (second, tensor(dtype, b[0], 2, strides=b[1])),
    ]
    case(f"{operation}.{SHORT[dtype]}.{name}", f"aten::{operation}", arguments, False)


def sums(dtype: str) -> None:
    """Add addmm and baddbmm."""
    Sum = tuple[str, Matrix, Matrix, Matrix, float, float]
    added: tuple[Sum, ...] = (
        ("one_column", ([1], None), ([300, 64], None), ([64, 1], [1, 64]), 1, 1),
        ("one_column_of_60", ([1], None), ([60, 256], None), ([256, 1], [1, 256]), 1, 1),
        ("one_term", ([64], None), ([40, 1], None), ([1, 64], None), 1, 1),
        ("alpha", ([48], None), ([40, 64], None), ([64, 48], [1, 64]), 1, 0.75),
        ("bias_of_one_row", ([1, 48], None), ([40, 64], None), ([64, 48], [1, 64]), 1, 1),
        ("bias_of_one_row_alpha", ([1, 48], None), ([40, 64], None), ([64, 48], [1, 64]), 1, 1.5),
        ("matrix", ([40, 48], None), ([40, 64], None), ([64, 48], [1, 64]), 1, 1),
        ("matrix_turned", ([40, 48], [1, 40]), ([40, 64], None), ([64, 48], None), 1, 1),
        ("matrix_beta_alpha", ([40, 48], None), ([40, 64], None), ([64, 48], [1, 64]), 0.3, 1.7),
        ("column", ([40, 1], None), ([40, 64], None), ([64, 48], [1, 64]), 1, 1),
        ("bias_beta", ([48], None), ([40, 64], None), ([64, 48], [1, 64]), 0.5, 1),
        ("bias_no_beta", ([48], None), ([40, 64], None), ([64, 48], [1, 64]), 0, 1),
        ("bias_repeated", ([48], [0]), ([40, 64], None), ([64, 48], [1, 64]), 1, 1),
        ("bias_of_one", ([1], None), ([40, 64], None), ([64, 48], [1, 64]), 1, 1),
        ("gaps", ([24], None), ([40, 32], [160, 2]), ([32, 24], None), 1, 1),
    )  # fmt: skip
    for name, c, a, b, beta, alpha in added:
        arguments: list[Argument] = [
            ("self", tensor(dtype, c[0], 1, strides=c[1])), ("mat1", tensor(dtype, a[0], 2, strides=a[1])),
            ("mat2", tensor(dtype, b[0], 3, strides=b[1])), ("beta", beta), ("alpha", alpha),
        ]  # fmt: skip
        case(f"addmm.{SHORT[dtype]}.{name}", "aten::addmm", arguments, False)
    aligned: list[Argument] = [
        ("self", tensor(dtype, [64], 1, offset=8)), ("mat1", tensor(dtype, [50, 96], 2, offset=4)),
        ("mat2", tensor(dtype, [96, 64], 3, strides=[1, 96], offset=2)), ("beta", 1), ("alpha", 1),
    ]  # fmt: skip
    case(f"addmm.{SHORT[dtype]}.alignments", "aten::addmm", aligned, False)
    batches: tuple[Sum, ...] = (
        ("plain", ([6, 40, 50], None), ([6, 40, 64], None), ([6, 64, 50], [64, 1, 384]), 1, 1),
        ("factors", ([6, 40, 50], None), ([6, 40, 64], None), ([6, 64, 50], [64, 1, 384]), 0.3, 1.7),
        ("bias_for_all", ([50], None), ([6, 40, 64], None), ([6, 64, 50], None), 1, 0.125),
        ("no_beta", ([6, 40, 50], None), ([6, 40, 64], None), ([6, 64, 50], None), 0, 0.125),
        ("batch_of_one", ([1, 40, 50], None), ([1, 40, 64], None), ([1, 64, 50], None), 1, 2),
    )  # fmt: skip
    for name, c, a, b, beta, alpha in batches:
        listed: list[Argument] = [
            ("self", tensor(dtype, c[0], 1, strides=c[1])), ("batch1", tensor(dtype, a[0], 2, strides=a[1])),
            ("batch2", tensor(dtype, b[0], 3, strides=b[1])), ("beta", beta), ("alpha", alpha),
        ]  # fmt: skip
        case(f"baddbmm.{SHORT[dtype]}.{name}", "aten::baddbmm", listed, False)
