#!/bin/sh
# initdb.sh -- the initdb of a test run: runs the real one once for each list of options, and copies from then on.
#
# If HEARTH_TEST_ROOT/bin/hearthd is there, it migrates the databases of the template, template1 among them: a database that
# is created from it has the schema already, and a test does not wait a second for it. Tests of the migrations themselves
# create theirs from template0.
#
# Its local.conf asks for little memory: hearthd gives its PostgreSQL an eighth of the machine, and a postmaster spends a
# tenth of a second on setting up three gigabytes. test_doctor.py looks at a cluster that the real initdb made.
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

# Runs a server over the new cluster, with its socket in $1, while hearthd migrates.
migrate() {
    user=$(printf '%s' "$options" | sed -En 's/.*(-U |--username=)([^ ]+).*/\2/p')
    "$root/bin/postgres" -D "$data" -c unix_socket_directories="$1" -c listen_addresses= -c fsync=off >"$1/log" 2>&1 &
    server=$!
    for database in template1 postgres; do
        url="host=$1 dbname=$database user=${user:-$(id -un)}"
        tries=0
        until env -i "$root/bin/hearthd" migrate --database-url "$url" >>"$1/log" 2>&1; do
            tries=$((tries + 1))
            [ "$tries" -lt 100 ] || { cat "$1/log" >&2; exit 1; }
            sleep 0.1
        done
    done
    kill -INT "$server"
    wait "$server"
}

"$real" "$@"
echo "shared_buffers = 256MB" >"$data/local.conf"
work=$(mktemp -d "$root/templates/XXXXXX") # the path of a socket has at most 107 bytes
if [ -e "$root/bin/hearthd" ]; then
    migrate "$work"
fi
cp -a --reflink=auto "$data" "$work/data"
mv -T "$work/data" "$template" 2>/dev/null || true # another was faster
rm -rf "$work"
