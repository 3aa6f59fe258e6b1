# awk -f layers.awk server/LAYERS FILE... -- checks #include lines against the table; exits 1 on a breach.
FNR == NR {
    sub(/#.*/, "")
    if (!match($0, /:/)) next
    name = substr($0, 1, RSTART - 1); rest = substr($0, RSTART + 1)
    n = split(rest, word, " ")
    if (name ~ /^!/) { ext[substr(name, 2)] = " " rest " "; next }
    known[name] = 1; may[name, name] = 1
    for (i = 1; i <= n; i++) {
        if (!known[word[i]]) { print "LAYERS: " name " names " word[i] " before it is defined"; bad = 1 }
        may[name, word[i]] = 1
    }
    next
}
FNR == 1 {
    split(FILENAME, part, "/")
    from = part[1] == "include" ? part[3] : part[1] == "clients" ? "client" : part[2]
    if (from == "client.h") from = "client"
    if (!(from in known)) { print FILENAME ": layer " from " is not in LAYERS"; bad = 1 }
}
/^[ \t]*#[ \t]*include[ \t]*"hearth\// {
    split($0, q, "\""); split(q[2], p, "/")
    to = p[2] == "client.h" ? "client" : p[2]
    if (!((from, to) in may)) { print FILENAME ":" FNR ": " from " must not include " to; bad = 1 }
}
/^[ \t]*#[ \t]*include[ \t]*</ {
    split($0, q, /[<>]/)
    for (e in ext)
        if (index(q[2], e) == 1 && index(ext[e], " " from " ") == 0) {
            print FILENAME ":" FNR ": <" q[2] "> is not allowed in " from; bad = 1
        }
}
END { exit bad }
