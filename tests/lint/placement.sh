#!/bin/sh
# placement.sh ROOT -- each table belongs to the catalogue or to the data, and migrations keep the two apart.
set -eu
cd "$1"
/usr/bin/python3 tests/lint/placement.py .
