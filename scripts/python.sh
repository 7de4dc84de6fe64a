#!/usr/bin/env bash
# Prints the path of the CPython to make .venv from: PYTHON if set, else 3.12, the version that certificates are made
# with, else the nearest. A name on the PATH may be a shim without a version behind it, so each one is tried.
set -uo pipefail

fits() {
    "$1" -c '
import sys
assert sys.implementation.name == "cpython" and (3, 10) <= sys.version_info < (3, 15)
import ensurepip, venv' >/dev/null 2>&1
}

if [ -n "${PYTHON:-}" ]; then
    path=$(command -v "$PYTHON") && fits "$path" && echo "$path" && exit 0
    echo "PYTHON=$PYTHON is no CPython from 3.10 to 3.14 with the modules venv and ensurepip" >&2
    exit 1
fi
shopt -s nullglob
for version in 3.12 3.13 3.11 3.10 3.14; do
    for path in $(type -ap "python$version") "$HOME"/.pyenv/versions/$version*/bin/python$version; do
        if fits "$path"; then
            echo "$path"
            exit 0
        fi
    done
done
path=$(command -v python3) && fits "$path" && echo "$path" && exit 0
echo "no CPython 3.10 or newer with the modules venv and ensurepip was found" >&2
exit 1
