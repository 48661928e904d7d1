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

# shellcheck source=tests/real/setting.sh
source "$(dirname "${BASH_SOURCE[0]}")/setting.sh"
needs_x86_64 'the consumers are those of'
needs "${CC:-gcc}" nm readelf

${CC:-gcc} -O2 -Wall -Wextra -shared -fPIC -fno-stack-protector -o "$work/record.so" "$here/record.c" -ldl
${CC:-gcc} -O1 -Wall -Wextra -o "$work/call" "$here/call.c" -ldl
status=0
"$python" "$here/check-corpus.py" --cache "$cache" --work "$work" "$@" || status=$?
exit "$status"
