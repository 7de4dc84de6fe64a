#!/usr/bin/env bash
# The main job on real input: prove resnet-18 and yolo9-t at 640, on the GPU if there is one, else on the CPU; then train
# and predict through the wheel.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

# The commands and the code that README.md shows, as they stand there.
run_example() {
    local command
    while read -r command; do
        # shellcheck disable=SC2086 # words are what it is made of
        $command </dev/null || return
    done < <(grep -E '^    bin/parity record ' README.md)
    PYTHONPATH=$(scripts/wheel.sh install) .venv/bin/python <(sed -n '/^```python$/,/^```$/{/^```/d;p}' README.md)
}

echo "== What is here"
bin/parity doctor || exit $?
echo
echo "== Verify resnet-18 and yolo9-t: the same weights and inputs for every arm, each in a fresh process"
bin/parity verify resnet yolo9 --imgsz 640 --output build/demo
status=$?
echo
if [ $status = 0 ]; then
    echo "== Train resnet-18 on two photographs, and predict, from Python: the example of README.md"
    run_example
    status=$?
    echo
fi
if [ $status = 0 ]; then
    cat <<'TEXT'
== What to try next
  bin/parity verify yolo9 --precision bf16 --batch 4 --imgsz 320    another cell
  bin/parity verify resnet --keep build/evidence                    keep what was compared, and check it with b3sum
  bin/parity list                                                   families, sizes and tasks
  docs/architecture.md                                              how a verification walks through the code
The results are in build/demo. Only a GPU can prove a family exact; without one, native is held to its own eager bits and
to PyTorch's rounding.
TEXT
else
    echo "ended with status $status: the lines above say what failed and how to reproduce it" >&2
fi
exit $status
