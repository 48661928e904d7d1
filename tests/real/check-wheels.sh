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

# shellcheck source=tests/real/setting.sh
source "$(dirname "${BASH_SOURCE[0]}")/setting.sh"
needs_x86_64 'the cells were measured on wheels of'
needs "${CC:-gcc}"

${CC:-gcc} -O1 -Wall -Wextra -o "$work/opener" "$here/opener.c" -ldl
status=0
"$python" "$here/check-wheels.py" --cache "$cache" --work "$work" "$@" || status=$?
exit "$status"
