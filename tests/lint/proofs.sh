#!/bin/sh
# proofs.sh ROOT -- the tests that the threat model and the table of promises name are there.
set -eu
cd "$1"
/usr/bin/python3 tests/lint/proofs.py .
