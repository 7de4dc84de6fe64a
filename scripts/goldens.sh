#!/usr/bin/env bash
# Makes the results under goldens/results anew, on a machine with the GPU that they are about: goldens.sh [FOLDER]
# What the same programs made there before is kept: a run that was interrupted goes on.
set -uo pipefail
cd "$(dirname "$0")/.."
to=${1:-goldens/results}
mkdir -p "$to"
status=0
verify() { bin/parity verify "$@" --device cuda:0 --output "$to" || status=$?; }

verify --all --precision fp32,bf16,fp16 --resume
verify yolo9 --size t --imgsz 320 --batch 4 --precision fp32,bf16
verify resnet --size 18 --mode train --imgsz 224 --batch 16 --steps 20 --precision fp32,bf16
[ "$to" != goldens/results ] || bin/parity matrix "$to" -o goldens/MATRIX.md || status=$?
exit $status
