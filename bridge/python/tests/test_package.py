from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import samebits

FOLDER = Path(samebits.__file__).parent


def test_tests_run_against_an_installation() -> None:
    assert not (FOLDER.parent / "setup.py").exists(), "this is the source: build it, install it, then test that"


def test_every_function_is_bound() -> None:
    """gopy leaves out what it cannot bind without a word."""
    extension = importlib.import_module("samebits._native._samebits")
    stub = ast.parse((FOLDER / "_native" / "_samebits.pyi").read_text())
    wanted = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    found = {name for name in dir(extension) if name.startswith("samebits_")}
    assert found == wanted


def test_public_names() -> None:
    assert sorted(samebits.__all__) == sorted(set(samebits.__all__))
    for name in samebits.__all__:
        value = getattr(samebits, name)
        if name != "__version__":
            assert inspect.getdoc(value), f"{name} has no docstring"
        if inspect.isclass(value) and value.__module__.startswith("samebits"):
            for member, function in inspect.getmembers(value, inspect.isfunction):
                assert member.startswith("_") or inspect.getdoc(function), f"{name}.{member} has no docstring"


def test_typed() -> None:
    assert (FOLDER / "py.typed").exists()


def test_version() -> None:
    assert samebits.__version__ == importlib.metadata.version("samebits")


def test_every_error_of_the_engine_has_an_exception() -> None:
    source = Path(__file__).parent.parent / "errors.go"
    if not source.exists():
        pytest.skip("the sources are not here")
    codes = set(re.findall(r'(?m)^\tcode\w+ += "(\w+)"', source.read_text()))
    known = {
        error.code
        for error in vars(samebits).values()
        if inspect.isclass(error) and issubclass(error, samebits.SamebitsError)
    }
    assert codes - {"FILE"} <= known
    assert len(codes) > 8


IMPORTED = """
import sys, samebits
print("torch" in sys.modules, "samebits._native._samebits" in sys.modules)
"""


def test_importing_starts_nothing(python: Callable[..., Any]) -> None:
    assert python(IMPORTED).stdout.split() == ["False", "False"]


INTERNAL = """
import samebits
from samebits import _calls
for call in (lambda: _calls.run("Predict", 1, "no json"), lambda: _calls.call("Await", 10**9)):
    try:
        call()
    except samebits.SamebitsError as error:
        print(type(error).__name__)
"""


def test_mistakes_of_ours_are_named_so(python: Callable[..., Any]) -> None:
    assert python(INTERNAL).stdout.split() == ["InternalError", "ClosedError"]
