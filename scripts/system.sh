#!/usr/bin/env bash
# Finds what no registry of ours can bring: compilers, a CPython, shared libraries. As root on a machine with apt-get it
# installs what is missing; elsewhere it says what to install.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=() why=()
need() { # package, what for
    missing+=("$1")
    why+=("$2")
}

command -v gcc >/dev/null || need gcc "builds the parts of the engine that are written in C"
command -v g++ >/dev/null || need g++ "compiles kernels for the host device"
[ -e /usr/include/stdlib.h ] || need libc6-dev "headers of the C library"
[ -e /etc/ssl/certs/ca-certificates.crt ] || [ -e /etc/pki/tls/certs/ca-bundle.crt ] || need ca-certificates "downloads of packages"
command -v git >/dev/null || need git "lists the files that are checked, fuzzed and bundled"
scripts/python.sh >/dev/null || need python3-venv "the reference plugin; CPython 3.10 or newer"
ldconfig=$(command -v ldconfig || echo /sbin/ldconfig)
"$ldconfig" -p 2>/dev/null | grep -q 'libGL\.so\.1' || need libgl1 "OpenCV, which libreyolo imports"
"$ldconfig" -p 2>/dev/null | grep -q 'libgthread-2\.0\.so\.0' || need libglib2.0-0 "OpenCV, which libreyolo imports"

[ ${#missing[@]} -gt 0 ] || exit 0
echo "missing on this machine:"
for i in "${!missing[@]}"; do echo "  ${missing[i]}: ${why[i]}"; done

as_root=()
if [ "$(id -u)" != 0 ]; then
    if sudo -n true 2>/dev/null; then as_root=(sudo -n); else as_root=(false); fi
fi
if ! command -v apt-get >/dev/null || [ "${as_root[*]}" = false ]; then
    echo "install them with this machine's package manager, then run make again; on Debian and Ubuntu:" >&2
    echo "  sudo apt-get install ${missing[*]}" >&2
    exit 1
fi
"${as_root[@]}" apt-get update -q
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}"

if ! scripts/python.sh >/dev/null; then
    echo "this machine has no CPython 3.10 or newer with the module venv: install one, or set PYTHON to its path" >&2
    exit 1
fi
