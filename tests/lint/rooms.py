"""rooms.py ROOT BUILD -- no object uses a symbol of a layer or room that server/LAYERS does not let it use, and no files
use each other in a circle but those that it names.

Exact where layers.py sees includes only: the linker's own table of each object, by nm. Exits 1 and names each use.
Generated sources belong to no room: a layer's rooms may use them, and they are in no circle.
"""

import pathlib
import subprocess
import sys

from layer_table import part_of, read_table


def objects(root, build):
    """{object: source} of all layers; a source that was removed left its object behind."""
    found = {}
    for target in sorted([*build.glob("server/*/CMakeFiles/*.dir"), *build.glob("clients/CMakeFiles/*.dir")]):
        folder = target.parent.parent.relative_to(build)
        for file in target.rglob("*.o"):
            source = folder / file.relative_to(target).with_suffix("")
            if (root / source).exists() or source.parts[2] == "__":
                found[file] = source.as_posix()
    return found


def read_symbols(files):
    """[(object, symbol, kind)] of global symbols."""
    out = subprocess.run(["nm", "-A", "-P", "-g", *files], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        file, name, kind = line.split()[:3]
        yield pathlib.Path(file.rstrip(":")), name, kind


def place(source):
    layer, room = part_of(source)
    return layer, "generated" if room.endswith("/__") else room


def may_use(table, user, used):
    if user[0] != used[0]:
        return used[0] in table.may[user[0]]
    if not table.rooms(user[0]) or "generated" in (user[1], used[1]) or not user[1]:
        return True
    return used[1] in table.may[user[1]]


def check(table, symbols):
    """symbols: [(source, symbol, kind as nm prints it)]."""
    home = {name: source for source, name, kind in symbols if kind in "TDBR"}
    uses = sorted({(source, name) for source, name, kind in symbols if kind == "U" and name in home})
    errors = []
    for source, name in uses:
        user, used = place(source), place(home[name])
        if not may_use(table, user, used):
            errors.append(f"{source}: {user[1] or user[0]} must not use {name}, defined in {home[name]}")
    return errors


def find_circles(uses):
    """The sets of two files and more that use each other, directly or through others. uses: {file: set of files}."""
    reached = {}
    for start in uses:
        reached[start], left = set(), [start]
        while left:
            new = uses.get(left.pop(), set()) - reached[start]
            reached[start] |= new
            left += new
    circles = {frozenset(b for b in reached[a] if a in reached.get(b, ())) for a in uses if a in reached[a]}
    return sorted(circles, key=sorted)


def check_circles(table, symbols):
    home = {name: source for source, name, kind in symbols if kind in "TDBR"}
    uses = {}
    for source, name, kind in symbols:
        if kind == "U" and name in home and "generated" not in (place(source)[1], place(home[name])[1]):
            uses.setdefault(source, set()).add(home[name])
    known, errors = [frozenset(circle) for circle in table.circles], []
    for circle in find_circles(uses):
        if circle not in known:
            errors.append("files use each other in a circle: " + " ".join(sorted(circle)))
        else:
            known.remove(circle)
    return errors + ["LAYERS: there is no such circle: " + " ".join(sorted(circle)) for circle in known]


def main():
    root, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    found = objects(root, build)
    if not found:
        print("rooms: no objects: build first")
        return 1
    table, symbols = read_table(root), [(found[file], name, kind) for file, name, kind in read_symbols(found)]
    errors = check(table, symbols) + check_circles(table, symbols)
    print("\n".join(errors) or "rooms: ok")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
