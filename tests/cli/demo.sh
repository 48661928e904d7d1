#!/bin/bash
# The demo shows the failure, the fix and the container variant.
set -u
: "${srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
out=$(bash "$srcdir/tests/demo/demo.sh" 2>&1)
status=$?
printf '%s\n' "$out"
[ $status -eq 0 ] || { echo "exit status $status"; exit 1; }
verdicts=$(printf '%s\n' "$out" | grep -oE 'verdict: [a-z]+' | tr '\n' ' ')
case $verdicts in
'verdict: crossed verdict: one verdict: one '* | 'verdict: split verdict: one verdict: one '*) ;;
*) echo "not the verdicts expected: $verdicts"; exit 1 ;;
esac
