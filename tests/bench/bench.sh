#!/usr/bin/env bash
# Times `ncclwhich tree --each` beside libtree, both over all ELF files of this system, in alternating runs.
#
# usage: NCCLWHICH=path/to/ncclwhich bench.sh [-n ROUNDS] [DIRECTORY...]        default: 7 rounds, /usr /opt
#
# Exit status: 0 timed, 1 a program failed or printed nothing, 2 usage, 77 libtree is not installed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [[ -z ${NCCLWHICH-} || ! -x $NCCLWHICH ]]; then
    echo "bench.sh: set NCCLWHICH to the program (build it first)" >&2
    exit 2
fi
if ! command -v libtree >/dev/null; then
    echo "bench.sh: libtree is not installed (Debian: apt-get install libtree)" >&2
    exit 77
fi
exec python3 "$here/bench.py" "$@"
