#!/usr/bin/env bash
# ncclwhich on consumers that people really install: what `ncclwhich opens` lists, against what a process that imports,
# loads or runs them opens. Needs the package registries (pip, Go, npm) for the first run, no GPU, CPython 3.12 for most
# rows, and about 3 GB in the cache beside what check-real.sh keeps there (downloads of 1.7 GB with PyTorch's).
#
# usage: NCCLWHICH=path/to/ncclwhich check-corpus.sh [--markdown] [NAME...]     default: all consumers of corpus.yaml
#
# NCCLWHICH_CACHE  where downloads stay, unpacked; default ${XDG_CACHE_HOME:-~/.cache}/ncclwhich
# PYTHON312        a CPython 3.12, if python3.12 is none
#
# Prints a table, what is not explained, what was skipped and why, and last `N passed, N failed, N skipped`.
# Exit status: 0 nothing failed, 1 something did, 2 usage, 77 nothing could be checked.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${NCCLWHICH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ncclwhich}
python=${PYTHON:-python3}

if [[ -z ${NCCLWHICH-} || ! -x $NCCLWHICH ]]; then
    echo "check-corpus.sh: set NCCLWHICH to the program (build it first)" >&2
    exit 2
fi
NCCLWHICH=$(realpath "$NCCLWHICH")
if [[ $(uname -sm) != "Linux x86_64" ]]; then
    echo "check-corpus.sh: the consumers are those of x86_64, this is $(uname -sm); nothing was checked" >&2
    exit 77
fi
for tool in "$python" "${CC:-gcc}" nm readelf; do
    if ! command -v "${tool%% *}" >/dev/null; then
        echo "check-corpus.sh: $tool is not installed" >&2
        exit 2
    fi
done
if ! "$python" -c 'import yaml' 2>/dev/null; then
    echo "check-corpus.sh: $python has no module yaml" >&2
    exit 2
fi
mkdir -p "$cache"
cache=$(realpath "$cache")
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
export NCCLWHICH LC_ALL=C PYTHONDONTWRITEBYTECODE=1
unset LD_LIBRARY_PATH LD_PRELOAD LD_AUDIT LD_BIND_NOW LD_DEBUG PYTHONPATH PYTHONHOME

${CC:-gcc} -O2 -Wall -Wextra -shared -fPIC -fno-stack-protector -o "$work/record.so" "$here/record.c" -ldl
${CC:-gcc} -O1 -Wall -Wextra -o "$work/call" "$here/call.c" -ldl
status=0
"$python" "$here/check-corpus.py" --cache "$cache" --work "$work" "$@" || status=$?
exit "$status"
