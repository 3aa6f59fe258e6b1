#!/usr/bin/env bash
# demo.sh [--exit] -- hearthd profiles the PostgreSQL that it stores profiles in: pgbench reads, then writes; perf looks on.
# Called by `./dev demo`, which builds first. Where perf may not run, six recordings of the same are pushed instead.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$here/../../build/bin
seconds=3 # of one profile

stay=false
[ -t 1 ] && stay=true
case ${1:-} in
--exit) stay=false ;;
"") ;;
*) echo "usage: demo.sh [--exit]" >&2; exit 2 ;;
esac

work=$(mktemp -d /tmp/hearth-demo-XXXXXX)
chmod 755 "$work" # the database's user must get to its own directories below
server=
bench=
finish() {
    trap - EXIT HUP INT TERM
    [ -z "$bench" ] || kill "$bench" 2>/dev/null || true
    [ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server"; } || true
    rm -rf "$work"
}
trap finish EXIT
trap 'finish; exit 0' HUP INT TERM

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
# A word as a shell takes it: in single quotes where it needs some.
quoted() { case $1 in *[!A-Za-z0-9_./:=-]*) printf "'%s'" "${1//\'/\'\\\'\'}" ;; *) printf '%s' "$1" ;; esac; }
ask() {
    local word line=hearth
    for word; do line="$line $(quoted "$word")"; done
    printf '\033[2m$ %s\033[0m\n' "$line"
    "$bin/hearth" "$@" 2>/dev/null </dev/null # not interactive
}

# ---- the server ----
port=4040
while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
export HEARTH_URL=http://127.0.0.1:$port
"$bin/hearthd" --listen "127.0.0.1:$port" --data-dir "$work/data" 2>"$work/hearthd.log" &
server=$!
for _ in $(seq 600); do
    kill -0 "$server" 2>/dev/null || { cat "$work/hearthd.log" >&2; exit 1; }
    [ "$(curl -s -o /dev/null -w '%{http_code}' "$HEARTH_URL/ready")" = 200 ] && break
    sleep 0.1
done
[ "$(curl -s -o /dev/null -w '%{http_code}' "$HEARTH_URL/ready")" = 200 ] || {
    echo "hearthd did not become ready:" >&2; cat "$work/hearthd.log" >&2; exit 1; }
say "hearthd runs at $HEARTH_URL with its own PostgreSQL below $work"

# ---- the program to profile: PostgreSQL under pgbench ----
pg=$(dirname "$(find /usr/lib/postgresql -path "*/bin/pgbench" | sort -V | tail -n 1)")
database=(-h "$work/data/run" -U hearth)

start_load() { # pgbench arguments
    "$pg/pgbench" "${database[@]}" "$@" -T 600 demo >/dev/null 2>&1 &
    bench=$!
    sleep 1
}

stop_load() {
    kill "$bench" 2>/dev/null || true
    wait "$bench" 2>/dev/null || true
    bench=
}

record() { # output file: one profile of the processes that serve pgbench
    local pids
    pids=$(pgrep -d, -f '^postgres: .* demo ') || return 1
    perf record -q -o "$work/perf.data" -e cpu-clock -F 99 --call-graph dwarf,8192 -p "$pids" \
        -- sleep "$seconds" >/dev/null 2>&1 &&
        perf script -i "$work/perf.data" --max-stack 64 2>/dev/null | gzip -c >"$1"
    [ "$(gzip -dc "$1" 2>/dev/null | head -c 200 | wc -c)" -gt 0 ]
}

# push FILE LOAD
push() {
    "$bin/hearth" upload "$1" --time now --label service_name=postgres --label "load=$2" \
        --label source="$source"
}

source=perf
"$pg/createdb" "${database[@]}" demo
"$pg/pgbench" "${database[@]}" -i -q -s 5 demo >/dev/null 2>&1
start_load -S -c 2
if record "$work/try.gz"; then
    say "Recording six profiles of $seconds s with perf: three while pgbench reads, three while it writes"
    for i in 1 2 3; do record "$work/$i.gz" && push "$work/$i.gz" read; done
    stop_load
    start_load -N -c 4
    for i in 4 5 6; do record "$work/$i.gz" && push "$work/$i.gz" write; done
    stop_load
else
    stop_load
    source=recording
    say "perf may not run here: pushing six recordings of the same (made with perf on another machine)"
    for i in 1 2 3; do push "$here/recording/$i.txt.gz" read; sleep 1; done
    for i in 4 5 6; do push "$here/recording/$i.txt.gz" write; sleep 1; done
fi
[ -z "${DEMO_KEEP:-}" ] || cp "$work"/[1-6].gz "$DEMO_KEEP"/ 2>/dev/null || true

# ---- the answers ----
say "Which services are there?"
ask query values service_name
say "How does the cost move?"
ask query timeline '{service_name="postgres"}' --since 2m --step 4s
say "By load:"
ask query timeline '{service_name="postgres"}' --since 2m --step 4s --by load
say "Where does it go? The exact table:"
ask query top '{service_name="postgres"}' --limit 12
say "The flame graph of the writing half:"
ask flame '{service_name="postgres", load="write"}' --min-percent 4

if ! $stay; then
    say "Done; the server ends with this report. Run ./dev demo on a terminal and it stays"
    exit 0
fi
say "hearthd stays until Ctrl-C. Open $HEARTH_URL in a browser, or in another terminal:"
cat <<NEXT
  export HEARTH_URL=$HEARTH_URL PATH=$(cd "$bin" && pwd):\$PATH
  hearth flame '{service_name="postgres", load="read"}'
  hearth query profile '{service_name="postgres"}' -o pprof=postgres.pb.gz
  hearth upload YOUR.pb.gz --label service_name=mine
  curl $HEARTH_URL/metrics
  psql -h $work/data/run -U hearth postgres
Grafana: add a data source of type Pyroscope with URL $HEARTH_URL
NEXT
wait "$server"
