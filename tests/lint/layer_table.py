"""layer_table.py -- server/LAYERS as a table; shared by layers.py and rooms.py."""

import pathlib
import re


class Table:
    """may[part] names the layers or rooms that a part may use, itself among them.

    A part is a layer ("store") or a room of one ("store/pg"). A room's line names rooms of its layer
    without the layer. circles are sets of files that call each other in a circle. Mistakes in the file itself are in
    `errors`.
    """

    def __init__(self, text):
        self.may, self.external, self.shown, self.circles, self.errors = {}, {}, {}, [], []
        for line in text.splitlines():
            name, colon, rest = line.partition("#")[0].partition(":")
            name, words = name.strip(), rest.split()
            if not colon:
                continue
            if name.startswith("!"):
                self.external[name[1:]] = set(words)
            elif name == "@circle":
                self.circles.append(set(words))
            elif name.startswith("~"):
                self.shown.setdefault(name[1:], set()).update(words)
            else:
                self._add_part(name, words)

    def _add_part(self, name, words):
        layer, _, room = name.partition("/")
        parts = [f"{layer}/{word}" if room else word for word in words]
        if room and layer not in self.may:
            self.errors.append(f"LAYERS: {name} stands before {layer}")
        for part in parts:
            if part not in self.may:
                self.errors.append(f"LAYERS: {name} names {part} before it is defined")
        self.may[name] = {name, *parts}

    def rooms(self, layer):
        return {part for part in self.may if part.startswith(layer + "/")}


def read_table(root):
    return Table((pathlib.Path(root) / "server/LAYERS").read_text())


def part_of(path):
    """("store", "store/pg") of "server/store/pg/pool.c"; the room is "" for a file at the root of its layer, which is
    clients/cli for clients."""
    parts = pathlib.PurePosixPath(path).parts
    if parts[0] == "clients":
        room = parts[2] if parts[1] == "cli" else parts[1]
        return "client", f"client/{room}" if len(parts) > 3 or room == "lib" else ""
    if parts[:3] == ("include", "hearth", "client.h"):
        return "client", ""
    if parts[0] == "include":
        return parts[2], ""
    return parts[1], "/".join(parts[1:3]) if len(parts) > 3 else ""


def layer_of_header(name):
    """The layer of "hearth/store/read.h"."""
    return re.sub(r"\.h$", "", name.split("/")[1])
