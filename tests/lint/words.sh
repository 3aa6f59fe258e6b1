#!/bin/sh
# words.sh ROOT -- no marks of unfinished work, no paths of somebody's machine, no calls
# that write without bounds, hide errors or share state between threads. docs/style.md names the
# marks to forbid them.
set -eu
cd "$1"
marks='(TO''DO|FIX''ME|XX''X|HA''CK)'
paths='(^|[^A-Za-z0-9_.~-])/(home|Users|root|work|workspace)/[A-Za-z]'
banned='(strn?cpy|strn?cat|strtok|v?sprintf|gets|gmtime|localtime|ctime|asctime|ato[ilf]|s?rand|system|strerror|alloca)'
failed=0
git grep -nIwE "$marks" -- . ':!docs/style.md' ':!tests/fuzz/corpus' && failed=1
git grep -nIE "$paths" -- . ':!tests/lint/words.sh' && failed=1
git grep -nE "\\b$banned\\(" -- 'server/*.[ch]' 'include/*.h' 'clients/*.[ch]' && failed=1
[ "$failed" = 0 ] || { echo "words: see above" >&2; exit 1; }
echo "words: ok"
