"""rooms.py ROOT BUILD -- no object uses a symbol of a layer or room that server/LAYERS does not let it use.

Exact where layers.py sees includes only: the linker's own table of each object, by nm. Exits 1 and names each use.
Generated sources belong to no room: a layer's rooms may use them.
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


def main():
    root, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    found = objects(root, build)
    if not found:
        print("rooms: no objects: build first")
        return 1
    errors = check(read_table(root), [(found[file], name, kind) for file, name, kind in read_symbols(found)])
    print("\n".join(errors) or "rooms: ok")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
