#!/usr/bin/env bash
# Makes what was seen on a GPU anew, on the machine that it is about: goldens.sh [STAGE...], all stages where none is named.
#
#   results    goldens/results of the matrix, of a batch of four and of training; with SAMEBITS_KEY=NAME (parity keys new NAME)
#              every exact cell is certified, too, into goldens/certificates
#   own        families with paths of their own, and those that must be refused
#   native     every cell at its own image size, three images at once
#   ops        digests of the operation cases
#   selftest   planted faults and their twins
#   repeat     resnet-18 a hundred times: goldens/repeat.txt has the table, SAMEBITS_REPEAT (build/repeat) the results
#   bench      times, memory and first predictions of yolo9-t
#
#   SAMEBITS_DEVICE        the GPU: cuda:0 where it is not said
#   SAMEBITS_JOBS          cells in work at the same time: --jobs of all stages but ops and bench
#   SAMEBITS_PRECISIONS    of the stages results and native: fp32,bf16,fp16 where it is not said
#   SAMEBITS_TASKS         of the same stages: all, or some by commas, as detect,segment
#   SAMEBITS_RESULTS       the folder of results: goldens/results
#
# What the same programs made before is kept: a run that was interrupted goes on. Time that comes in pieces is used so:
# timeout 9m scripts/goldens.sh STAGE. Ctrl-C and timeout reach the programs, too, which keep what is finished; the script then ends.
#
# Two GPUs of a machine share the work if each has other precisions, or other tasks; both write to the same folders. Then one more run,
# which finds all finished, writes the tables of all:
#
#   SAMEBITS_DEVICE=cuda:0 SAMEBITS_JOBS=4 SAMEBITS_PRECISIONS=fp32 scripts/goldens.sh results native &
#   SAMEBITS_DEVICE=cuda:1 SAMEBITS_JOBS=4 SAMEBITS_PRECISIONS=bf16,fp16 scripts/goldens.sh results native &
#   wait; scripts/goldens.sh results
set -uo pipefail
cd "$(dirname "$0")/.." || exit
device=${SAMEBITS_DEVICE:-cuda:0}
precisions=${SAMEBITS_PRECISIONS:-fp32,bf16,fp16}
tasks=${SAMEBITS_TASKS:-all}
results=${SAMEBITS_RESULTS:-goldens/results}
certificates=goldens/certificates
python=${SAMEBITS_PYTHON:-python3}
jobs=()
[ -z "${SAMEBITS_JOBS:-}" ] || jobs=(--jobs "$SAMEBITS_JOBS")
share=(--all)
[ "$tasks" = all ] || share+=(--task "$tasks")
status=0
interrupted=
trap 'interrupted=1' INT TERM # the shell hears of it when the program has ended
mkdir -p "$results"

# failed remembers a status, and goes on, unless the run was interrupted.
failed() {
    status=$?
    echo "$*: status $status" >&2
    [ -z "$interrupted" ] || exit 3
}

# among LIST gives the precisions of LIST that are asked for.
among() {
    local one found=
    for one in ${1//,/ }; do
        [[ ,$precisions, != *,$one,* ]] || found+=,$one
    done
    echo "${found#,}"
}

has_task() { [[ $tasks == all || ,$tasks, == *,$1,* ]]; }

prove() {
    if [ -n "${SAMEBITS_KEY:-}" ]; then
        bin/parity certify "$@" --device "$device" "${jobs[@]}" --key "$SAMEBITS_KEY" --output "$certificates" --results "$results" --resume || failed certify "$@"
    else
        bin/parity verify "$@" --device "$device" "${jobs[@]}" --output "$results" --resume || failed verify "$@"
    fi
}

stage_results() {
    local two
    two=$(among fp32,bf16)
    prove "${share[@]}" --precision "$precisions"
    if [ -n "$two" ] && has_task detect; then
        prove yolo9 --size t --imgsz 320 --batch 4 --precision "$two"
    fi
    if [ -n "$two" ] && has_task classify; then
        prove resnet --size 18 --mode train --imgsz 224 --batch 16 --steps 20 --precision "$two"
    fi
    bin/parity matrix "$results" -o goldens/MATRIX.md || failed matrix
    [ -z "${SAMEBITS_KEY:-}" ] || bin/parity status --write-flags goldens/FLAGS.md --trust "$certificates/keys/trusted.json" || failed status
}

stage_own() {
    prove ppocr sam sensenova 'sensenova@wide' 'sensenova@two' --precision fp32,bf16,fp16
    bin/parity verify l2cs domedetr --device "$device" --output "$results" --resume # must be refused
    [ $? -eq 2 ] || { status=1; echo "l2cs and domedetr must be refused" >&2; }
}

stage_native() {
    bin/parity verify "${share[@]}" --imgsz native --batch 3 --precision "$precisions" --device "$device" "${jobs[@]}" --output "$results" --resume || failed native
}

stage_ops() {
    "$python" -m samebits_reference.opcases --cases goldens/ops/cases --output goldens/ops/h200 --device "$device" || failed ops
}

stage_selftest() {
    mkdir -p goldens/selftest
    bin/parity selftest --device "$device" "${jobs[@]}" --output goldens/selftest/h200.jsonl --resume || failed selftest
}

stage_repeat() {
    local folder=${SAMEBITS_REPEAT:-build/repeat} number=100 ended=0
    local command=(verify resnet --size 18 --imgsz 224 --precision fp32 --device "$device" --repeat "$number" "${jobs[@]}"
        --output "$folder" --resume)
    mkdir -p "$folder"
    bin/parity "${command[@]}" >"$folder/said.txt" || ended=$?
    cat "$folder/said.txt"
    if [[ $(tail -n 1 "$folder/said.txt") == "$number repetitions: "* ]]; then # none is missing
        {
            echo parity "${command[@]}"
            environment "$folder"
            sed -n '/^REPETITION/,$p' "$folder/said.txt"
        } >goldens/repeat.txt
    fi
    (exit "$ended") || failed repeat
}

# environment FOLDER gives that of the first result below the folder, on one line.
environment() {
    "$python" - "$(find "$1" -name '*.json' | sort | head -n 1)" <<'END'
import json, pathlib, sys
environment = json.loads(pathlib.Path(sys.argv[1]).read_text())["environment"]
print(json.dumps({k: v for k, v in sorted(environment.items()) if k != "gpu.uuid" and not k.endswith(".path")}))
END
}

stage_bench() {
    bin/parity bench yolo9 --size t --imgsz 640 --precision fp32,bf16 --device "$device" --output goldens/bench --resume || failed bench
}

[ $# -gt 0 ] || set -- results own native ops selftest repeat bench
for stage; do
    declare -F "stage_$stage" >/dev/null || { echo "no stage $stage; see the head of $0" >&2; exit 2; }
    "stage_$stage"
    [ -z "$interrupted" ] || exit 3
done
exit $status
