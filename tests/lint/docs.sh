#!/bin/sh
# docs.sh ROOT -- generated pages equal their tables, hand-written ones name everything, links lead somewhere.
set -eu
cd "$1"
/usr/bin/python3 tests/lint/gen_docs.py --check .
echo "docs: ok"
