#!/bin/bash
# The manual and --help know the same options.
set -u
: "${srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
status=0

options() {
	grep -oE '(^|[^A-Za-z-])--[a-z][a-z0-9-]+' | grep -oE -- '--.*' |
		grep -vxE -- '--(help|version)' | sort -u
}

helped=$({ "$NCCLWHICH" --help; for c in check tree explain opens confirm rules; do "$NCCLWHICH" $c --help; done; } | options)
manual=$(sed 's/\\-/-/g' "$srcdir"/doc/ncclwhich*.1 | options)

for o in $helped; do
	grep -qxF -- "$o" <<<"$manual" || { echo "not in the manual: $o"; status=1; }
done
for o in $manual; do
	grep -qxF -- "$o" <<<"$helped" || { echo "in the manual, not in --help: $o"; status=1; }
done
[ -n "$helped" ] || { echo '--help names no option'; status=1; }

version=$("$NCCLWHICH" --version | head -n 1)
[[ $version == *"$NCCLWHICH_VERSION"* ]] || { echo "--version says: $version"; status=1; }
for page in "$srcdir"/doc/*.1; do
	grep -q "^\.TH .*\"ncclwhich $NCCLWHICH_VERSION\"" "$page" ||
		{ echo "$page is not of version $NCCLWHICH_VERSION"; status=1; }
done
exit $status
