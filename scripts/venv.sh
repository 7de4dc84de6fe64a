#!/usr/bin/env bash
# Makes .venv with exactly the packages of requirements.lock, checked by their hashes.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(scripts/python.sh)
wanted=$("$python" -c 'import sys; print(sys.version)')
if [ "$(.venv/bin/python -c 'import sys; print(sys.version)' 2>/dev/null)" != "$wanted" ]; then
    echo "making .venv with $python"
    rm -rf .venv
    "$python" -m venv .venv
fi

if uv --version >/dev/null 2>&1; then
    uv=uv
else
    [ -x .venv/bin/uv ] || .venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r scripts/locks/uv.lock
    uv=.venv/bin/uv
fi
UV_HTTP_TIMEOUT=${UV_HTTP_TIMEOUT:-300} "$uv" pip sync --python .venv/bin/python --require-hashes requirements.lock

# The packages of this repository run from where they are.
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "$PWD/plugins/reference" >"$site/samebits.pth"
.venv/bin/python -c 'import cv2, torch, grpc, blake3, samebits_wire'
