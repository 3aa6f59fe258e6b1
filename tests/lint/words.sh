#!/bin/sh
# words.sh ROOT -- no marks of unfinished work, no paths of somebody's machine, no calls
# that write without bounds, hide errors or share state between threads, and in documents none of
# the phrases that docs/style.md replaces. docs/style.md names marks and phrases to forbid them. The engine asks the
# label index in one place, which applies the view of the call.
set -eu
cd "$1"
marks='(TO''DO|FIX''ME|XX''X|HA''CK)'
paths='(^|[^A-Za-z0-9_.~-])/(home|Users|root|work|workspace)/[A-Za-z]'
banned='(strn?cpy|strn?cat|strtok|v?sprintf|gets|gmtime|localtime|ctime|asctime|ato[ilf]|s?rand|system|strerror|alloca)'
phrases='(?<!there )\b(is|are) none\b|not looked at|\bfrom when on\b|\banew\b|\bwhat (waits|comes|asks)\b|\b(who|nobody) asks\b'
phrases="$phrases"'|[.:;] Of [a-z]|\b[Qq]uestions?\b(?!\.svg)'
failed=0
git grep -nIwE "$marks" -- . ':!docs/style.md' ':!tests/fuzz/corpus' && failed=1
git grep -nIE "$paths" -- . ':!tests/lint/words.sh' && failed=1
git grep -nE "\\b$banned\\(" -- 'server/*.[ch]' 'include/*.h' 'clients/*.[ch]' && failed=1
git grep -nIP "$phrases" -- '*.md' ':!docs/style.md' && failed=1
git grep -nE 'hearth_label_index_[a-z_]+\(|hearth_store_index_lock\(' -- 'server/engine/*.[ch]' \
    ':!server/engine/common/call_index*' && failed=1
[ "$failed" = 0 ] || { echo "words: see above" >&2; exit 1; }
echo "words: ok"
