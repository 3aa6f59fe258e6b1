#!/bin/sh
# initdb.sh -- the initdb of a test run: runs the real one once for each list of options, and copies from then on.
#
# `./dev test` puts it into HEARTH_TEST_ROOT/bin, beside a link to postgres; hearthd gets that directory as --postgres-bin.
# Whoever comes first makes the cluster as asked, and a copy of it beside the template's place; one rename puts it there,
# so that nobody sees half of one. Copies have one system identifier: who needs another calls the real initdb.
set -eu
root=$(dirname "$(dirname "$0")")
real=$(dirname "$(readlink -f "$root/bin/postgres")")/initdb

data='' options='' previous=''
for word in "$@"; do
    if [ "$previous" = -D ]; then data=$word; else options="$options $word"; fi
    previous=$word
done
if [ -z "$data" ] || [ -n "$(ls -A "$data" 2>/dev/null)" ]; then
    exec "$real" "$@" # its errors are those that a user sees
fi

template=$root/templates/$(printf '%s' "$options" | tr -c '[:alnum:]' _)
if [ -d "$template" ]; then
    mkdir -p "$data"
    cp -a --reflink=auto "$template/." "$data/"
    exit
fi
"$real" "$@"
copy=$(mktemp -d "$template.XXXXXX")
cp -a --reflink=auto "$data/." "$copy/"
mv -T "$copy" "$template" 2>/dev/null || rm -rf "$copy" # another was faster
