#!/bin/sh
# sizes.sh ROOT -- no source file is longer than 1000 lines, no folder of the server holds too many, no two have one
# name. Functions of more than 80 lines are only named.
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

# Comments have at most 100 columns, like the code, which the formatter breaks where it can.
git ls-files 'server/*.[ch]' 'include/*.h' | xargs awk '
    length > 100 && !/__/ { print "sizes: " FILENAME ":" FNR ": a line of " length " columns"; failed = 1 }
    END { exit failed }'

# A room, or a layer without rooms, has at most 25 .c files; the root of a layer with rooms has at most 6.
git ls-files 'server/*.c' | awk -F/ '
    NF == 3 { n_root[$2]++ }
    NF > 3  { n_room[$2 "/" $3]++; has_rooms[$2] = 1 }
    END {
        for (layer in n_root) {
            limit = has_rooms[layer] ? 6 : 25
            if (n_root[layer] > limit) {
                print "sizes: server/" layer " has " n_root[layer] " .c files, the limit is " limit; failed = 1
            }
        }
        for (room in n_room)
            if (n_room[room] > 25) {
                print "sizes: server/" room " has " n_room[room] " .c files, the limit is 25"; failed = 1
            }
        exit failed
    }'

# A file is named by its base name in backtraces and comments.
twice=$(git ls-files 'server/*.[ch]' 'include/*.h' 'clients/*.[ch]' | sed 's|.*/||' | sort | uniq -d)
[ -z "$twice" ] || { echo "sizes: several files are called" "$twice" >&2; exit 1; }
echo "sizes: ok"
