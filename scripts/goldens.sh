#!/usr/bin/env bash
# Makes what was seen on a GPU anew, on the machine that it is about: goldens.sh [STAGE...], all stages where none is named.
#
#   results    goldens/results of the matrix, of a batch of four and of training; with SAMEBITS_KEY=NAME (parity keys new NAME)
#              every exact cell is certified, too, into goldens/certificates
#   own        families with paths of their own, and those that must be refused
#   native     every cell at its own image size, three images at once
#   ops        digests of the operation cases
#   selftest   planted faults and their twins
#   bench      times, memory and first predictions of yolo9-t
#
# What the same programs made before is kept: a run that was interrupted goes on.
set -uo pipefail
cd "$(dirname "$0")/.."
results=${SAMEBITS_RESULTS:-goldens/results}
certificates=goldens/certificates
status=0
mkdir -p "$results"
python=${SAMEBITS_PYTHON:-python3}

# failed remembers a status, and goes on.
failed() { status=$?; echo "$*: status $status" >&2; }

prove() {
    if [ -n "${SAMEBITS_KEY:-}" ]; then
        bin/parity certify "$@" --device cuda:0 --key "$SAMEBITS_KEY" --output "$certificates" --results "$results" --resume || failed certify "$@"
    else
        bin/parity verify "$@" --device cuda:0 --output "$results" --resume || failed verify "$@"
    fi
}

stage_results() {
    prove --all --precision fp32,bf16,fp16
    prove yolo9 --size t --imgsz 320 --batch 4 --precision fp32,bf16
    prove resnet --size 18 --mode train --imgsz 224 --batch 16 --steps 20 --precision fp32,bf16
    bin/parity matrix "$results" -o goldens/MATRIX.md || failed matrix
    [ -z "${SAMEBITS_KEY:-}" ] || bin/parity status --write-flags goldens/FLAGS.md --trust "$certificates/keys/trusted.json" || failed status
}

stage_own() {
    prove ppocr sam sensenova 'sensenova@wide' 'sensenova@two' --precision fp32,bf16,fp16
    bin/parity verify l2cs domedetr --device cuda:0 --output "$results" # must be refused
    [ $? -eq 2 ] || { status=1; echo "l2cs and domedetr must be refused" >&2; }
}

stage_native() {
    bin/parity verify --all --imgsz native --batch 3 --precision fp32 --device cuda:0 --output "$results" --resume || failed native
}

stage_ops() {
    "$python" -m samebits_reference.opcases --cases goldens/ops/cases --output goldens/ops/h200 --device cuda || failed ops
}

stage_selftest() {
    mkdir -p goldens/selftest
    bin/parity selftest --device cuda:0 --output goldens/selftest/h200.jsonl || failed selftest
}

stage_bench() {
    bin/parity bench yolo9 --size t --imgsz 640 --precision fp32,bf16 --device cuda:0 --output goldens/bench --resume || failed bench
}

[ $# -gt 0 ] || set -- results own native ops selftest bench
for stage; do
    declare -F "stage_$stage" >/dev/null || { echo "no stage $stage; see the head of $0" >&2; exit 2; }
    "stage_$stage"
done
exit $status
