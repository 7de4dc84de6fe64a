"""Builds the wheel: gopy binds the Go package of this folder, and Go links it with the engine into one extension."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PACKAGE = "samebits/bridge/python"  # its Go import path
NAME = "samebits"  # its package clause
BUILD = HERE / "_build"  # Go does not look into folders whose names begin so


def sort_blocks(path: Path, begin: str, end: str, block: str) -> None:
    """Put generated functions in order: gopy writes them in the order of a Go map, another one in every run."""
    head, begin, tail = path.read_text().partition(begin)
    body, end, rest = tail.partition(end) if end else (tail, "", "")
    first, *blocks = re.split(block, body)
    if not blocks:
        raise SystemExit(f"{path.name}: nothing looks like a generated function; is this another version of gopy?")
    path.write_text("".join([head, begin, first, *sorted(blocks), end, rest]))


class BuildExtension(build_ext):
    """Generate, then build by Go. `gopy build` would force -Ofast on C code and leave paths of this machine behind."""

    def build_extension(self, ext: Extension) -> None:
        """Build the one extension."""
        out = Path(self.get_ext_fullpath(ext.name)).resolve()
        folder = BUILD / sys.implementation.cache_tag
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.generate(folder)
        # Every CPython has the same flags, so that Go compiles the engine once for all of them: what tells them apart is a
        # link beside the generated code.
        (folder / "include").symlink_to(sysconfig.get_path("include"))
        link = f"-ldflags=-s -w -buildid= {self.engines(folder)}"
        flags = ["build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", link]
        self.run_tool(folder, "go", *flags, "-o", out.name, ".")
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(folder / out.name, out)

    def engines(self, folder: Path) -> str:
        """Give linker flags with the digests of the native plugins of the same sources: certificates are bound to them.

        They are built as `make build` does, so that they have the bytes of those that parity verifies and certifies.
        """
        env = {k: v for k, v in os.environ.items() if not k.startswith("CGO_")} | {"CGO_ENABLED": "1"}
        flags = []
        for name in ("predictor", "trainer"):
            program = folder / "_engines" / name
            build = [
                "go",
                "build",
                "-trimpath",
                "-buildvcs=false",
                "-ldflags=-s -w",
                "-o",
                str(program),
                f"./plugins/{name}",
            ]
            subprocess.run(build, cwd=ROOT, env=env, check=True)
            digest = ["go", "run", "./bridge/digest/b3sum", str(program)]
            done = subprocess.run(digest, cwd=ROOT, env=env, check=True, text=True, stdout=subprocess.PIPE)
            flags.append(f"-X {PACKAGE}.{name}Build={done.stdout.split()[0]}")
        return " ".join(flags)

    def generate(self, folder: Path) -> None:
        """Write the binding's Go and C code into folder."""
        relative = str(folder.relative_to(ROOT))
        said = self.run_tool(
            ROOT,
            "go",
            "tool",
            "gopy",
            "gen",
            f"-vm={sys.executable}",
            f"-name={NAME}",
            "-no-make",
            f"-output={relative}",
            PACKAGE,
        )
        source = folder / f"{NAME}.go"
        if "ignoring python incompatible" in said or not source.exists():
            raise SystemExit(f"gopy cannot bind all of {PACKAGE}:\n{said}")
        text = re.sub(r"(?m)^(#cgo |gopy gen ).*\n", "", source.read_text())  # they hold paths of this machine
        source.write_text(text.replace('import "C"', '// #cgo CFLAGS: -I${SRCDIR}/include\nimport "C"', 1))
        sort_blocks(source, "// ---- Functions ---\n", "", r"(?m)^(?=//export )")
        sort_blocks(
            folder / "build.py", "NumHandles', retval('int'), [])\n", "\nmod.generate(", r"(?m)^(?=mod\.|add_checked_)"
        )
        self.run_tool(folder, "go", "tool", "goimports", "-w", source.name)
        include = sysconfig.get_path("include")
        self.run_tool(
            folder,
            "go",
            "tool",
            "cgo",
            "-objdir",
            "_obj",
            "-exportheader",
            f"{NAME}_go.h",
            "--",
            f"-I{include}",
            "-w",
            source.name,
        )
        self.run_tool(folder, sys.executable, "build.py")  # pybindgen writes samebits.c

    def run_tool(self, folder: Path, *command: str) -> str:
        """Run a command and give what it said. Its flags leave nothing of this machine in what it makes."""
        env = dict(os.environ, CGO_ENABLED="1", CGO_LDFLAGS="-Wl,--build-id=none")
        for variable in ("CGO_CFLAGS", "CGO_CXXFLAGS"):
            env[variable] = "-O2 -ffp-contract=off -w"
        done = subprocess.run(command, cwd=folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}")
        return done.stdout


class BuildWheel(bdist_wheel):
    """Name the oldest glibc that the extension runs on, instead of this machine."""

    def get_tag(self) -> tuple[str, str, str]:
        """Give the wheel's tags."""
        python, abi, platform = super().get_tag()
        extension = next(Path(self.bdist_dir or "").rglob("_samebits*.so"), None)
        if extension is None or not platform.startswith("linux_"):
            return python, abi, platform
        versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", extension.read_bytes())
        major, minor = max((int(a), int(b)) for a, b in versions)
        return python, abi, platform.replace("linux_", f"manylinux_{major}_{minor}_")


BUILD.mkdir(exist_ok=True)
setup(
    ext_modules=[Extension("samebits._native._samebits", sources=[])],
    cmdclass={"build_ext": BuildExtension, "bdist_wheel": BuildWheel},
    options={
        "build": {"build_base": f"_build/{sys.implementation.cache_tag}-setuptools"},
        "egg_info": {"egg_base": "_build"},
    },
)
