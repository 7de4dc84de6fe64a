#!/usr/bin/env bash
# Generates the code of bridge/proto. With --check it only says whether the committed code is what would be generated.
set -euo pipefail
cd "$(dirname "$0")/.."

generate() { # folder for Go, folder for Python
    mkdir -p "$1" "$2"
    PATH="$PWD/build/tools:$PATH" .venv/bin/python -m grpc_tools.protoc -Ibridge/proto \
        --go_out="$1" --go_opt=module=samebits --go-grpc_out="$1" --go-grpc_opt=module=samebits \
        --python_out="$2" --pyi_out="$2" --grpc_python_out="$2" bridge/proto/samebits_wire/*.proto
}

if [ "${1:-}" != --check ]; then
    generate . plugins/reference
    exit 0
fi
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
generate "$fresh/go" "$fresh/python"
clean=0
while read -r file; do
    case $file in
    "$fresh/go/"*) committed=${file#"$fresh/go/"} ;;
    *) committed=plugins/reference/${file#"$fresh/python/"} ;;
    esac
    cmp -s "$file" "$committed" || { echo "$committed is not what \`make proto\` generates" >&2; clean=1; }
done < <(find "$fresh" -type f | sort)
exit $clean
