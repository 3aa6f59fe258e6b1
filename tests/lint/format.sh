#!/bin/sh
# format.sh ROOT -- every C source and header is as clang-format writes it.
set -eu
cd "$1"
git ls-files 'server/*.[ch]' 'include/*.h' 'clients/*.[ch]' 'tests/*.[ch]' |
    xargs clang-format --dry-run -Werror
echo "format: ok"
