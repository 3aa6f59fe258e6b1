#!/bin/sh
# shell.sh ROOT -- shellcheck finds nothing in our scripts.
set -eu
cd "$1"
{
    printf '%s\n' dev .ci/run
    git ls-files '*.sh'
} | xargs shellcheck
echo "shell: ok"
