#!/bin/sh
# sizes.sh ROOT -- no source file is longer than 1000 lines. Functions of more than 80 are only named.
set -eu
cd "$1"
git ls-files '*.[ch]' '*.cc' '*.py' '*.sh' '*.awk' '*.sql' '*.re' '*.y' '*.def' '*.proto' dev | xargs awk '
    FNR == 1      { file = FILENAME; begun = 0 }
    FNR == 1001   { print "sizes: " file " has more than 1000 lines"; failed = 1 }
    /^\{/         { begun = FNR }
    /^\}/ && begun {
        if (file ~ /\.c$/ && FNR - begun - 1 > 80)
            print "sizes: note: " file ":" begun ": a function of " FNR - begun - 1 " lines"
        begun = 0
    }
    END { exit failed }'
echo "sizes: ok"
