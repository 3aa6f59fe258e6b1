#!/bin/sh
# headers.sh ROOT BUILD COMPILER FLAG... -- every public header compiles alone and twice, in the
# strict set. BUILD holds the generated ones.
set -eu
cd "$1"
build=$2
shift 2
# shellcheck disable=SC2046 # several flags
set -- "$@" -std=c17 -D_GNU_SOURCE -I include -isystem "$build/generated" -isystem "$build/generated/hearth/pb" \
    $(pkg-config --cflags libpq libprotobuf-c libmicrohttpd) -fsyntax-only -x c -
failed=0
for header in $(git ls-files 'include/*.h'); do
    name=${header#include/}
    printf '#include "%s"\n#include "%s"\nextern int hearth_lint;\n' "$name" "$name" | "$@" || {
        echo "headers: $header does not compile alone" >&2
        failed=1
    }
done
[ "$failed" = 0 ]
echo "headers: ok"
