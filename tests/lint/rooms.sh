#!/bin/sh
# rooms.sh ROOT [BUILD] -- no object of BUILD uses a symbol that server/LAYERS does not let it use.
set -eu
cd "$1"
/usr/bin/python3 tests/lint/rooms.py . "${2:-build}"
