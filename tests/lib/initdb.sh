#!/bin/sh
# initdb.sh -- the initdb of a test run: runs the real one once for each list of options, and copies from then on.
#
# If HEARTH_TEST_ROOT/bin/hearthd is there, it is started once on the databases of the template that tests use. They, and
# those that are created from template1, have the schema and the leaves of today already, and no test spends a second on
# these. Tests of the migrations themselves create theirs from template0. A cluster of hearthd has neither of them: they would
# be two fifths of the files to copy.
#
# Its local.conf asks for little memory: hearthd gives its PostgreSQL an eighth of the machine, and a postmaster spends a
# tenth of a second on setting up three gigabytes. test_doctor.py looks at a cluster that the real initdb made.
# Shared memory is in files of the cluster, which are removed with it, also if its processes were killed.
#
# `./dev test` puts it into HEARTH_TEST_ROOT/bin, beside a link to postgres; hearthd gets that directory as --postgres-bin.
# Whoever comes first makes the cluster as asked, and a copy of it beside the template's place; one rename puts it there,
# so that nobody sees half of one. Copies have one system identifier: who needs another calls the real initdb.
set -eu
root=${0%/*/*}

data='' options='' previous=''
for word in "$@"; do
    if [ "$previous" = -D ]; then data=$word; else options="$options $word"; fi
    previous=$word
done
template=$root/templates/$(printf '%s' "$options" | tr -c '[:alnum:]' _)
if [ -n "$data" ] && [ -d "$template" ] && [ -z "$(ls -A "$data" 2>/dev/null)" ]; then
    [ -d "$data" ] || mkdir -p "$data"
    cp -a --reflink=auto "$template/." "$data/"
    exit
fi
real=$(dirname "$(readlink -f "$root/bin/postgres")")/initdb
if [ -z "$data" ] || [ -n "$(ls -A "$data" 2>/dev/null)" ]; then
    exec "$real" "$@" # its errors are those that a user sees
fi

# Runs PostgreSQL over the new cluster, with its socket in $1, while hearthd makes what each database lacks.
fill() {
    user=$(printf '%s' "$options" | sed -En 's/.*(-U |--username=)([^ ]+).*/\2/p')
    "$root/bin/postgres" -D "$data" -c unix_socket_directories="$1" -c listen_addresses= -c fsync=off >"$1/log" 2>&1 &
    server=$!
    for database in $databases; do
        url="host=$1 dbname=$database user=${user:-$(id -un)}"
        env -i "$root/bin/hearthd" --listen 127.0.0.1:0 --builder=false --database-url "$url" >"$1/$database" 2>&1 &
        hearthd=$!
        tries=0
        until grep -q 'msg="database is ready"' "$1/$database"; do
            tries=$((tries + 1))
            [ "$tries" -lt 1200 ] || { cat "$1/log" "$1/$database" >&2; exit 1; }
            sleep 0.1
        done
        kill "$hearthd"
        wait "$hearthd"
        # The first server of a test is the first writer of its database.
        "$(dirname "$real")/psql" -qX "$url" -c 'TRUNCATE hearth_data.writer RESTART IDENTITY'
    done
    for database in $unused; do
        "$(dirname "$real")/psql" -qX "$url" -c "ALTER DATABASE $database IS_TEMPLATE false" -c "DROP DATABASE $database"
    done
    kill -INT "$server"
    wait "$server"
}

"$real" "$@"
echo "shared_buffers = 256MB" >"$data/local.conf"
echo "dynamic_shared_memory_type = mmap" >>"$data/postgresql.conf"
unused=''
case $options in
*--data-checksums*) databases=postgres unused='template0 template1' ;; # hearthd's own: no test creates a database there
*" -U postgres "*) databases=template1 ;; # tests/lib/pg_cluster.h
*) databases="template1 postgres" ;;
esac
work=$(mktemp -d "$root/templates/XXXXXX") # the path of a socket has at most 107 bytes
if [ -e "$root/bin/hearthd" ]; then
    fill "$work"
fi
cp -a --reflink=auto --sparse=always "$data" "$work/data" # most of the log is zeros, which later copies skip
mv -T "$work/data" "$template" 2>/dev/null || true # another was faster
rm -rf "$work"
