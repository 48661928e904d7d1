#!/bin/bash
# A loader that hides its names is `unsure`; fifteen lines of YAML settle it, without a new build.
set -u
# shellcheck source=tests/lib/cli.sh
. "$(dirname "$0")/../lib/cli.sh"

# The names of the library and of its functions are pieces; only the functions' can be seen.
cat >engine.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
const char functions[] = "ncclCommInitRankncclGetUniqueId";
const char marker[] = "acme collectives engine";
int main(int argc, char **argv)
{
	char name[64];
	(void)argc;
	snprintf(name, sizeof(name), "lib%s.so.%d", getenv("ACME") ? getenv("ACME") : argv[0] + 1, 2);
	return dlopen(name, RTLD_LAZY) ? 0 : functions[0] == marker[0];
}
C
mkdir lib
# shellcheck disable=SC2086 # CC may be a compiler with options
mock_copy lib/libnccl.so.2 &&
	$CC engine.c -o engine -ldl || { echo 'cannot compile'; exit 1; }

checks 3 'under a name that it does not show' --library-path lib ./engine
checks 3 'verdict: unsure' --library-path lib ./engine
checks 0 'verdict: one' --library-path lib --dlopen libnccl.so.2,lazy ./engine

cat >acme.yaml <<'YAML'
name: acme
target: nccl
about: the engine of ACME
strings:
  - acme collectives engine
flags:
  - lazy
  - local
versions:
  - override: ACME_NCCL
    names:
      - "{env:ACME_DIR}/libnccl.so.2"
      - libnccl.so.2
YAML
[ "$(wc -l <acme.yaml)" -le 15 ] || { echo 'more than 15 lines'; failures=$((failures + 1)); }
checks 0 'known from its profile: acme' --library-path lib --profile acme.yaml ./engine
checks 0 'verdict: one' --library-path lib --profile acme.yaml ./engine
checks 1 'verdict: absent' --library-path lib --env ACME_NCCL=/nowhere/libnccl.so.2 --profile acme.yaml ./engine
checks 0 "opens $work/lib/libnccl.so.2" --env ACME_DIR="$work/lib" --profile acme.yaml ./engine
mkdir -p data/profiles && cp acme.yaml data/profiles/
checks 0 'verdict: one' --library-path lib --data-dir data ./engine

# A profile that does not fit is an error that names the file, never silence.
echo 'flag: [lazy]' >>acme.yaml
checks 2 'acme.yaml' --library-path lib --profile acme.yaml ./engine
checks 2 'nowhere.yaml' --library-path lib --profile nowhere.yaml ./engine

# The note that include/ncclwhich-dlopen-note.h writes does the same from inside.
cat >noted.c <<'C'
#include "ncclwhich-dlopen-note.h"
NCCLWHICH_DLOPEN_NOTE("nccl", "collectives", "required", "libnccl.so.2", "libnccl.so")
C
# shellcheck disable=SC2086
$CC -I"$srcdir/include" engine.c noted.c -o noted -ldl || { echo 'cannot compile the note'; exit 1; }
checks 0 'declared in it, by a note' --library-path lib ./noted
checks 0 'verdict: one' --library-path lib ./noted
exit $((failures > 0))
