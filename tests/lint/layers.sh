#!/bin/sh
# layers.sh ROOT -- every include obeys server/LAYERS.
set -eu
cd "$1"
find server include/hearth clients \( -name '*.[ch]' -o -name '*.cc' \) -print | sort |
    xargs awk -f tests/lint/layers.awk server/LAYERS
echo "layers: ok"
