#!/bin/bash
# -o replaces a file as a whole; what is no file is written to, and a link stays a link.
set -u
# shellcheck source=tests/lib/cli.sh
. "$(dirname "$0")/../lib/cli.sh"

write() { "$NCCLWHICH" rules absent -o "$1" || fail "rules -o $1: status $?"; }

"$NCCLWHICH" rules absent >wanted
echo old >file
write file
cmp -s wanted file || fail "not in the file: $(cat file)"
ln -s file link
echo old >file
write link
[ -L link ] || fail 'the link was replaced'
cmp -s wanted file || fail "not where the link leads: $(cat file)"
mkfifo pipe
cat pipe >got &
write pipe
wait
[ -p pipe ] || fail 'the pipe was replaced'
cmp -s wanted got || fail "not through the pipe: $(cat got)"
mkdir folder
expect 2 'folder: ' rules absent -o folder
expect 2 'nowhere/file: ' rules absent -o nowhere/file
[ "$(find . -name '*.??????' | wc -l)" = 0 ] || fail "left behind: $(find . -name '*.??????')"
exit $failures
