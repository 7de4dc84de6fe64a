#!/usr/bin/env bash
# Runs a command of the bundle on a GPU machine: ./run.sh parity verify resnet --device cuda:0
# Python is SAMEBITS_PYTHON or python3; it must have torch, and be CPython 3.12. Without a command: what is here.
set -euo pipefail
bundle=$(cd "$(dirname "$0")" && pwd)
export SAMEBITS_PYTHON=${SAMEBITS_PYTHON:-$(command -v python3 || true)}
if [ -z "$SAMEBITS_PYTHON" ] || ! "$SAMEBITS_PYTHON" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 12))'; then
    echo "run.sh: no CPython 3.12 here: set SAMEBITS_PYTHON to one that has torch" >&2
    exit 3
fi
if compgen -G "$bundle/bin/*.gz" >/dev/null; then # first run; a wheel is an archive of what it installs
    for wheel in "$bundle"/wheels/*.whl; do "$SAMEBITS_PYTHON" -m zipfile -e "$wheel" "$bundle/python"; done
    gunzip "$bundle"/bin/*.gz
    chmod +x "$bundle"/bin/*
fi
export PATH="$bundle/bin:$PATH" PYTHONPATH="$bundle/python${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1
[ $# -gt 0 ] || set -- parity doctor
exec "$@"
