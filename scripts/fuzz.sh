#!/usr/bin/env bash
# Fuzzes every target for $FUZZTIME, a duration (60s) or a number of executions (100000x), one after the other and with one worker;
# of the targets those whose package and name match $FUZZ. Prints a line for each. What fails lies in its package's testdata/fuzz.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
export LC_ALL=C
go=${GO:-go} failed=0 log=$(mktemp)
trap 'rm -f "$log"' EXIT

targets() {
    git grep -oE '^func Fuzz[A-Za-z0-9]*' -- '*_test.go' | sed -E 's#^(.*)/[^/]*:func (.*)$#\1 \2#' | sort
}

while read -r package target; do
    [[ "$package $target" =~ ${FUZZ:-.} ]] || continue
    began=$SECONDS verdict=passed
    "$go" test "./$package" -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}" -fuzzminimizetime 10x -parallel 1 >"$log" 2>&1 </dev/null ||
        { verdict=FAILED failed=1; cat "$log" >&2; }
    executions=$(grep -oE 'execs: [0-9]+' "$log" | tail -n 1 | grep -oE '[0-9]+')
    printf '%-28s %-18s %10s executions %6s s  %s\n' "$package" "$target" "${executions:-0}" $((SECONDS - began)) "$verdict"
done < <(targets)
exit "$failed"
