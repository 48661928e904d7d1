#!/usr/bin/env bash
# The whole of confirm on a machine with GPUs: the layout of two copies, before and after the fix, and the matrix of
# what every pair of versions does to each other.  Needs ncclwhich with libncclwhich-replay.so beside it, gcc, and the
# libnccl files; no network, no development packages, no root rights.
#
# usage: on-gpu.sh NCCLWHICH LIBRARIES OUT [LINKED OPENED]
#   NCCLWHICH   the program
#   LIBRARIES   a directory with libnccl.so.2.30.7, libnccl.so.2.27.7, ...: at least the two of the layout
#   OUT         where transcripts go
#   LINKED      the version that the engine is linked to and finds first, default 2.30.7
#   OPENED      the one that it opens at run time, default 2.27.7
# environment: MATRIX=no skips the matrix, DANGEROUS=yes tries ids across eras in it, too; CUDA_LIBRARIES a directory
#   with libcudart.so.12 or .13 (found by itself where it usually is; without one the driver is used).
#
# Exit status: 0 everything as expected, 1 not so, 2 it could not be run, 77 no device.
set -euo pipefail

if (($# < 3)); then
    sed -n '2,17s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
demo=$here/../demo
tool=$(realpath "$1")
libraries=$(realpath "$2")
mkdir -p "$3"
out=$(realpath "$3")
linked=${4:-2.30.7}
opened=${5:-2.27.7}
export LC_ALL=C
unset LD_LIBRARY_PATH LD_PRELOAD LD_AUDIT LD_BIND_NOW

for file in "$tool" "$libraries/libnccl.so.$linked" "$libraries/libnccl.so.$opened" "$demo/engine.c"; do
    [[ -e $file ]] || { echo "on-gpu.sh: $file is missing" >&2; exit 2; }
done
work=$(mktemp -d "${TMPDIR:-/tmp}/ncclwhich-gpu.XXXXXX")
trap 'rm -rf "$work"' EXIT

failures=0
fail() {
    printf 'NOT AS EXPECTED: %s\n' "$*"
    failures=$((failures + 1))
}

# run NAME WANTED-STATUS ARGUMENT...: shows the command and what it says, keeps it in OUT/NAME.txt and OUT/NAME.json.
run() {
    local name=$1 wanted=$2 status=0
    shift 2

    printf '$ ncclwhich %s\n\n' "$*" | sed "s|$work|WORK|g; s|$libraries|LIBRARIES|g"
    "$tool" "$@" -f text -o "$out/$name.txt" -f json -o "$out/$name.json" 2>"$out/$name.err" || status=$?
    sed "s|$work|WORK|g" "$out/$name.txt" "$out/$name.err" 2>/dev/null || true
    printf '\n(exit status %d)\n\n' "$status"
    if [[ $status == 77 ]]; then
        echo "no device: nothing more can be shown here"
        exit 77
    fi
    [[ $status == "$wanted" ]] || fail "$name: exit status $status, not $wanted"
}

says() {
    grep -Eq -e "$2" "$out/$1.txt" || fail "$1: does not say '$2'"
}

# ---- where the CUDA runtime is, if there is one
cuda=${CUDA_LIBRARIES-}
if [[ -z $cuda ]]; then
    for file in /usr/local/cuda*/lib64/libcudart.so.1[23] /usr/local/cuda*/targets/*/lib/libcudart.so.1[23] \
        /usr/lib/x86_64-linux-gnu/libcudart.so.1[23] /usr/local/lib/python3*/*-packages/nvidia/cu*/lib/libcudart.so.1[23] \
        /usr/local/lib/python3*/*-packages/nvidia/cuda_runtime/lib/libcudart.so.1[23]; do
        if [[ -e $file ]]; then
            # Alone in a directory: what lies beside it must not be found by accident.
            mkdir -p "$work/cuda"
            ln -sf "$(realpath "$file")" "$work/cuda/${file##*/}"
            cuda=$work/cuda
        fi
    done
fi

# ---- the engine, and the two copies as on the machine of the first report
mkdir -p "$work/bin" "$work/shared" "$work/system" "$work/link"
ln -s "$libraries/libnccl.so.$linked" "$work/shared/libnccl.so.2"
ln -s "$libraries/libnccl.so.$opened" "$work/system/libnccl.so.2"
ln -s libnccl.so.2 "$work/system/libnccl.so"
ln -s "$libraries/libnccl.so.$linked" "$work/link/libnccl.so"
gcc -std=gnu11 -O2 -fPIE -pie "$demo/engine.c" "$demo/binding.c" "$demo/shim.c" -L"$work/link" -lnccl \
    -Wl,--allow-shlib-undefined -ldl -o "$work/bin/engine"
path=$work/shared:$work/system${cuda:+:$cuda}

{
    date -u '+%Y-%m-%d %H:%M UTC'
    "$tool" --version
    uname -srm
    ldd --version | sed -n 1p
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || true
    echo "linked $linked, opened $opened; CUDA runtime: ${cuda:-none, the driver is used}"
    (cd "$libraries" && sha256sum libnccl.so.2*)
} | tee "$out/machine.txt"
echo

untraced=()
if ! "$tool" confirm --no-gpu --library-path "$path" "$work/bin/engine" >/dev/null 2>"$out/try.err" &&
    grep -q untraced "$out/try.err"; then
    echo "ptrace is not allowed here: --untraced"
    untraced=(--untraced)
fi

echo "1. Two copies: what is predicted"
run predict 1 check --library-path "$path" "$work/bin/engine"
says predict '^verdict: crossed'
says predict 'ncclCommGetAsyncError'

echo "2. Two copies: what happens"
run before 1 confirm "${untraced[@]}" --timeout 60 --library-path "$path" "$work/bin/engine"
says before '^confirmed'
says before 'init 0, count 4, all-reduce float32 4'
says before 'calls that crossed, in order: .*ncclCommGetAsyncError'
says before 'init 0, count 0, all-reduce float32 0, sum right, all-reduce bfloat16 0, sum right'

devices=$(sed -n 's/^devices: \([0-9]*\) device.*/\1/p' "$out/before.txt")
# A rank thread for each device: of sums over more than eight ranks bfloat16 has no exact result.
ranks=$((${devices:-1} < 8 ? ${devices:-1} : 8))
if ((ranks > 1)); then
    echo "   the same with $ranks ranks, threads with a device each"
    run before-ranks 1 confirm "${untraced[@]}" --ranks "$ranks" --timeout 60 --library-path "$path" "$work/bin/engine"
    says before-ranks '^confirmed'
    says before-ranks 'init 0, count 4, all-reduce float32 4'
fi

echo "3. After the suggested link"
ln -s libnccl.so.2 "$work/shared/libnccl.so"
run after 0 confirm "${untraced[@]}" --timeout 60 --library-path "$path" "$work/bin/engine"
says after '^verdict: one'
says after '^confirmed'
says after 'sum right, all-reduce bfloat16 0, sum right'
if ((ranks > 1)); then
    run after-ranks 0 confirm "${untraced[@]}" --ranks "$ranks" --timeout 60 --library-path "$path" "$work/bin/engine"
    says after-ranks 'sum right, all-reduce bfloat16 0, sum right'
fi

if [[ ${MATRIX-} != no ]]; then
    echo "4. Every pair of versions"
    dangerous=()
    if [[ ${DANGEROUS-} == yes ]]; then
        dangerous=(--dangerous)
    fi
    run matrix 0 confirm --matrix "${untraced[@]}" "${dangerous[@]}" --timeout "${CELL_SECONDS:-20}" \
        ${cuda:+--library-path "$cuda"} "$libraries"/libnccl.so.2.*
fi

if ((failures)); then
    echo "on-gpu: $failures not as expected"
    exit 1
fi
echo "on-gpu: all as expected"
