#!/usr/bin/env bash
# Makes build/bundle: all that a GPU machine with torch but without network needs to verify families. Run it there with
# run.sh, which docs/bundle.md explains.
set -euo pipefail
cd "$(dirname "$0")/.."
bundle=build/bundle
limit=$((64 << 20))

rm -rf "$bundle"
mkdir -p "$bundle/bin" "$bundle/python"

# The very programs that `make build` made: certificates name the engine by the digest of its file.
cp bin/parity bin/samebits-predictor bin/samebits-trainer "$bundle/bin/"
for package in native/cuda native/ops; do
    CGO_ENABLED=1 "$GO" test -c -trimpath -buildvcs=false -tags gpu -ldflags='-s -w' -o "$bundle/bin/${package//\//-}.test" "./$package"
    # Tests find their data below the folder that they run in.
    if [ -d "$package/testdata" ]; then
        mkdir -p "$bundle/$package"
        cp -r "$package/testdata" "$bundle/$package/"
    fi
done

gzip -9 -n "$bundle"/bin/*

cp -r plugins/reference/samebits_reference plugins/reference/samebits_wire plugins/reference/tests "$bundle/python/"
cp plugins/reference/pyproject.toml "$bundle/python/"
# run.sh unpacks programs and wheels: packed they are a third of the size.
.venv/bin/python -m pip download -q --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
    --python-version 3.12 --implementation cp --abi cp312 --abi abi3 --abi none \
    --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 --platform manylinux_2_17_x86_64 --platform any \
    --dest "$bundle/wheels" -r scripts/locks/bundle.lock
find "$bundle" -name __pycache__ -prune -exec rm -rf {} +

mkdir -p "$bundle/goldens"
git ls-files goldens | grep -v '\.go$' | while read -r file; do install -D -m 644 "$file" "$bundle/$file"; done
install -m 755 scripts/run.sh "$bundle/run.sh"
install -D -m 755 scripts/goldens.sh "$bundle/scripts/goldens.sh"

size=$(du -sb "$bundle" | cut -f1)
echo "$bundle: $((size >> 10)) KiB"
if [ "$size" -ge "$limit" ]; then
    echo "the bundle must stay below $limit bytes; the largest files:" >&2
    find "$bundle" -type f -printf '%s %p\n' | sort -rn | awk 'NR <= 10' >&2
    exit 1
fi
