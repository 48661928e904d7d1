#!/bin/bash
# doc/rules.md has a paragraph for each rule id that the program can emit, and for no other.
set -u
: "${srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"

# A finding is made by run_add_finding(run, "rule-id", ...), and by nothing else.
emitted=$(grep -rhoE --include='*.c' 'run_add_finding\([^"]*"[a-z-]+"' "$srcdir/src" |
	sed 's/.*"\(.*\)"/\1/' | sort -u)
documented=$(sed -n 's/^## \([a-z-]*\)$/\1/p' "$srcdir/doc/rules.md" | sort)

[ -n "$emitted" ] || { echo 'src/ emits nothing'; exit 1; }
diff <(echo "$documented") <(echo "$emitted") || { echo '< doc/rules.md, > src/'; exit 1; }
