#!/usr/bin/env bash
# Prints the path of a Go that can build this module. Machines without one get it from its package for pip, in .venv.
set -euo pipefail
cd "$(dirname "$0")/.."

fits() {
    local version
    version=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
    [ "$(printf '%s\n' go1.26 "$version" | sort -V | head -1)" = go1.26 ]
}

for path in $(type -ap go) /usr/local/go/bin/go .venv/go/bin/go; do
    if [ -x "$path" ] && fits "$path"; then
        echo "$path"
        exit 0
    fi
done
# Go from 1.21 on fetches the toolchain that go.mod asks for.
if path=$(command -v go) && (cd tools && GOTOOLCHAIN=auto "$path" version) 2>/dev/null | grep -q 'go1\.2[6-9]'; then
    echo "$path"
    exit 0
fi
echo "no Go 1.26 or newer here: installing one into .venv/go" >&2
if [ -x .venv/bin/python ] && .venv/bin/python -m venv .venv/go >&2 &&
    .venv/go/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r scripts/locks/go.lock >&2 &&
    fits .venv/go/bin/go; then
    echo "$PWD/.venv/go/bin/go"
    exit 0
fi
echo "no Go could be installed: install Go 1.26 or newer (https://go.dev/doc/install) and put it on the PATH" >&2
exit 1
