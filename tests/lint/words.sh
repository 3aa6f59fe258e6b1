#!/bin/sh
# words.sh ROOT -- no marks of unfinished work, no paths of somebody's machine. docs/style.md names
# the marks to forbid them.
set -eu
cd "$1"
marks='(TO''DO|FIX''ME|XX''X|HA''CK)'
paths='(^|[^A-Za-z0-9_.~-])/(home|Users|root|work|workspace)/[A-Za-z]'
failed=0
git grep -nIwE "$marks" -- . ':!docs/style.md' ':!tests/fuzz/corpus' && failed=1
git grep -nIE "$paths" -- . ':!tests/lint/words.sh' && failed=1
[ "$failed" = 0 ] || { echo "words: see above" >&2; exit 1; }
echo "words: ok"
