#!/bin/sh
# secrets.sh ROOT -- the text of a secret is taken in the listed files only, each with what it is needed for.
set -eu
cd "$1"
allowed='
server/base/secret.c                    # defines it
server/app/config_print.c               # a database URL, to print it with its password masked
server/store/pg/pg_connect.c            # a database URL, for libpq
server/store/nodes/nodes.c              # its parts, for the addresses of nodes
server/store/session/replica.c          # a database URL, to add target_session_attrs
clients/cli/query/psql_url.c            # a database URL, for psql
server/front/scrape/scrape_transfer.c   # the bearer token of a job, for libcurl
server/front/oidc/oidc.c                # the secret of the client, to derive the key of log-in cookies
server/front/oidc/oidc_login.c          # the secret of the client, for the issuer
'
files=$(printf '%s' "$allowed" | sed 's/ *#.*//; /^$/d')
failed=0
for file in $(git grep -lw 'hearth_secret_reveal' -- 'server/*.[ch]' 'clients/*.[ch]'); do
    printf '%s\n' "$files" | grep -qxF "$file" || {
        echo "secrets: $file calls hearth_secret_reveal and is not listed in tests/lint/secrets.sh" >&2
        failed=1
    }
done
for file in $files; do
    if ! grep -qw hearth_secret_reveal "$file"; then
        echo "secrets: $file is listed in tests/lint/secrets.sh and does not call hearth_secret_reveal" >&2
        failed=1
    fi
done
[ "$failed" = 0 ] || exit 1
echo "secrets: ok"
