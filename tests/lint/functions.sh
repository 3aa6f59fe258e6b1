#!/bin/sh
# functions.sh ROOT -- names, paragraphs and parameters of the server's functions: functions.py.
set -eu
exec /usr/bin/python3 "$1/tests/lint/functions.py" "$1"
