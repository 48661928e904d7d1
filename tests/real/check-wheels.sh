#!/usr/bin/env bash
# ncclwhich on NVIDIA's NCCL wheels of eight versions: which names cross between every two of them, against the real
# loader; and what that does, against what was measured on a GPU. Needs a package registry (pip) for the first run, no
# GPU, about 2 GB in the cache, and while it runs 0.4 GB more there.
#
# usage: NCCLWHICH=path/to/ncclwhich check-wheels.sh [VERSION...]        default: all versions
#
# NCCLWHICH_CACHE  where downloads stay; default ${XDG_CACHE_HOME:-~/.cache}/ncclwhich
#
# Prints a line for every version, the misses with both answers, and last `P pairs, D differing names` and
# `C cells, M misses (U judged as undefined)`.
# Exit status: 0 nothing differs, 1 something does, 2 usage, 77 the wheels can neither be found in the cache nor
# downloaded, or are not for this machine.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${NCCLWHICH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ncclwhich}
python=${PYTHON:-python3}

if [[ -z ${NCCLWHICH-} || ! -x $NCCLWHICH ]]; then
    echo "check-wheels.sh: set NCCLWHICH to the program (build it first)" >&2
    exit 2
fi
NCCLWHICH=$(realpath "$NCCLWHICH")
if [[ $(uname -sm) != "Linux x86_64" ]]; then
    echo "check-wheels.sh: the cells were measured on x86_64 wheels, this is $(uname -sm); nothing was checked" >&2
    exit 77
fi
for tool in "$python" "${CC:-gcc}"; do
    if ! command -v "${tool%% *}" >/dev/null; then
        echo "check-wheels.sh: $tool is not installed" >&2
        exit 2
    fi
done
if ! "$python" -c 'import yaml' 2>/dev/null; then
    echo "check-wheels.sh: $python has no module yaml" >&2
    exit 2
fi
mkdir -p "$cache"
cache=$(realpath "$cache")
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
export NCCLWHICH LC_ALL=C PYTHONDONTWRITEBYTECODE=1
unset LD_LIBRARY_PATH LD_PRELOAD LD_AUDIT LD_BIND_NOW LD_DEBUG

${CC:-gcc} -O1 -Wall -Wextra -o "$work/opener" "$here/opener.c" -ldl
status=0
"$python" "$here/check-wheels.py" --cache "$cache" --work "$work" "$@" || status=$?
exit "$status"
