#!/usr/bin/env bash
# The main job on real input: prove resnet-18 and yolo9-t at 640, on the GPU if there is one, else on the CPU.
set -uo pipefail
cd "$(dirname "$0")/.."

echo "== What is here"
bin/parity doctor || exit $?
echo
echo "== Verify resnet-18 and yolo9-t: the same weights and inputs for every arm, each in a fresh process"
bin/parity verify resnet yolo9 --imgsz 640 --output build/demo
status=$?
echo
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
    echo "verification ended with status $status: the lines above name the gate and how to reproduce it" >&2
fi
exit $status
