#!/bin/sh
# dev_help.sh ROOT -- each command of `./dev help` explains itself by --help, and neither installs nor builds anything for it.
set -eu
cd "$1"
stubs=$(mktemp -d)
trap 'rm -rf "$stubs"' EXIT
for name in dpkg-query apt-get sudo cmake ninja; do
    printf '%s\n' '#!/bin/sh' "touch '$stubs/called'" 'exit 1' >"$stubs/$name"
    chmod 755 "$stubs/$name"
done

failed=0
for command in $(./dev help | sed -En 's/^\.\/dev ([a-z]+( \| [a-z]+)*).*/\1/p' | tr -d '|' | sort -u); do
    if ! said=$(PATH=$stubs:$PATH ./dev "$command" --help 2>&1) || [ -e "$stubs/called" ]; then
        echo "./dev $command --help did something else: $said" >&2
        failed=1
    fi
    rm -f "$stubs/called"
    case $said in
    *"$command"*) ;;
    *) echo "./dev $command --help does not explain it: $said" >&2; failed=1 ;;
    esac
done
[ "$failed" = 0 ] && echo "dev_help: ok"
