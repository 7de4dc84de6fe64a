#!/usr/bin/env bash
# Builds and tests the Python package. The CPythons are those named in PYTHONS (3.12 3.13), else all at hand.
#   wheel.sh build     dist/samebits-*.whl, checked: what they link, and that nothing of this machine is in them
#   wheel.sh again     builds one of them elsewhere, and compares the bytes
#   wheel.sh test      installs each in an environment of its own, with NumPy alone, and runs its tests there
#   wheel.sh install   puts the one for .venv into build/wheel/site, for PYTHONPATH
#   wheel.sh torch     does that and runs the tests in .venv, which has PyTorch; further arguments are pytest's
# Go must be on the PATH to build; nothing of it is needed afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
if uv --version >/dev/null 2>&1; then uv=uv; else uv=$root/.venv/bin/uv; fi
export SOURCE_DATE_EPOCH=1577836800 # a fixed time, so that two builds give one wheel
export UV_HTTP_TIMEOUT=${UV_HTTP_TIMEOUT:-300}

# The CPython of a version that has its headers: a package of a distribution may lack them.
python_of() { # version
    shopt -s nullglob
    local path
    for path in $(type -ap "python$1") "$HOME"/.pyenv/versions/"$1"*/bin/python"$1"; do
        if "$path" - "$1" <<'PYTHON' >/dev/null 2>&1; then
import sys, sysconfig
from pathlib import Path
assert sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
assert "%d.%d" % sys.version_info[:2] == sys.argv[1] and (Path(sysconfig.get_path("include")) / "Python.h").exists()
PYTHON
            echo "$path"
            return
        fi
    done
    return 1
}

at_hand() {
    local version
    for version in ${PYTHONS:-3.10 3.11 3.12 3.13}; do
        if python_of "$version" >/dev/null; then
            echo "$version"
        elif [ -n "${PYTHONS:-}" ]; then
            echo "no CPython $version with its headers is here" >&2
            return 1
        fi
    done
}

wheel_of() { # version, folder
    local found=("${2:-dist}"/samebits-*-cp"${1/./}"-*.whl)
    [ -e "${found[0]}" ] && [ ${#found[@]} = 1 ] || { echo "no wheel for CPython $1 in ${2:-dist}: make wheel" >&2; return 1; }
    echo "${found[0]}"
}

# build into $2 the wheel of CPython $1, from the sources below the working directory.
build() {
    "$uv" build -q --wheel --python "$(python_of "$1")" --build-constraints scripts/locks/wheel.lock --require-hashes \
        --out-dir "$2" bridge/python
}

# Fails if a wheel would not run elsewhere, or tells of this machine.
check() ( # wheel, version
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    "$(python_of "$2")" -m zipfile -e "$1" "$folder"
    library=$(find "$folder" -name '_samebits*.so')
    bad=$(readelf -d "$library" | grep -E 'NEEDED|RPATH|RUNPATH' | grep -vE 'NEEDED.*\[(libc\.so\.6|libm\.so\.6)\]' || true)
    [ -z "$bad" ] || { echo "$1 links more than the C library: $bad" >&2; return 1; }
    bad=$(grep -rlaF -e "$root" -e "$HOME/" -e "$(go env GOROOT)" -e "$(go env GOMODCACHE)" -e "$(dirname "$(python_of "$2")")" "$folder" || true)
    [ -z "$bad" ] || { echo "$1 has paths of this machine, in $bad" >&2; return 1; }
)

# Run pytest of the Python $1 on the tests, elsewhere than in the sources, which would be imported instead of the wheel.
run_tests() {
    local python=$1 config=$root/bridge/python/pyproject.toml
    shift
    mkdir -p "$root/build/wheel/empty"
    (cd "$root/build/wheel/empty" && "$python" -m pytest -q -p no:cacheprovider -c "$config" "$@" "$root/bridge/python/tests")
}

# Put the wheel of .venv's CPython where PYTHONPATH finds it: .venv itself holds what requirements.lock says.
install_beside_venv() {
    local version
    version=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    rm -rf build/wheel/site
    "$uv" pip install -q --python .venv/bin/python --no-deps --target build/wheel/site "$(wheel_of "$version")"
}

case ${1:-} in
build)
    versions=$(at_hand)
    [ -n "$versions" ] || { echo "no CPython from 3.10 to 3.13 with its headers is here" >&2; exit 1; }
    mkdir -p dist
    for version in $versions; do
        rm -f dist/samebits-*-cp"${version/./}"-*.whl
        build "$version" dist
        check "$(wheel_of "$version")" "$version"
        echo "$(wheel_of "$version"): $(($(stat -c %s "$(wheel_of "$version")") >> 10)) KiB"
    done
    ;;
again)
    version=$(at_hand | tail -1)
    elsewhere=$(mktemp -d)
    trap 'rm -rf "$elsewhere"' EXIT
    git ls-files -co --exclude-standard -z | tar --null -T - -c | tar -x -C "$elsewhere"
    (cd "$elsewhere" && build "$version" dist)
    cmp "$(wheel_of "$version")" "$(wheel_of "$version" "$elsewhere/dist")"
    echo "built elsewhere, the wheel of CPython $version has the same bytes"
    ;;
test)
    for version in $(at_hand); do
        wheel=$(wheel_of "$version")
        environment=build/wheel/$version
        rm -rf "$environment"
        "$uv" venv -q --python "$(python_of "$version")" "$environment"
        "$uv" pip install -q --python "$environment/bin/python" --require-hashes -r scripts/locks/wheel-test.lock
        "$uv" pip install -q --python "$environment/bin/python" --no-deps "$wheel"
        echo "== CPython $version"
        # No Go, no variables of the build. /usr/bin has the C++ compiler that the host device wants.
        env -i HOME="$HOME" PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 ${SAMEBITS_CACHE:+SAMEBITS_CACHE="$SAMEBITS_CACHE"} \
            bash -c "$(declare -f run_tests); root=$root; run_tests \"\$@\"" - "$root/$environment/bin/python" "${@:2}"
    done
    ;;
install)
    install_beside_venv
    echo "$root/build/wheel/site"
    ;;
torch)
    install_beside_venv
    echo "== $(.venv/bin/python --version) with PyTorch"
    PYTHONPATH="$root/build/wheel/site" run_tests "$root/.venv/bin/python" "${@:2}"
    ;;
*)
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
