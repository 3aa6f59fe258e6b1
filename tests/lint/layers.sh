#!/bin/sh
# layers.sh ROOT -- every include obeys server/LAYERS.
set -eu
cd "$1"
/usr/bin/python3 tests/lint/layers.py .
