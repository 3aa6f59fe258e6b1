"""layers.py ROOT -- every include obeys server/LAYERS; exits 1 and names each one that does not.

Checked are: layers (includes of public headers count as their includer's), rooms of a layer, external headers.
"""

import pathlib
import re
import sys

from layer_table import layer_of_header, part_of, read_table

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


class Check:
    def __init__(self, root):
        self.root, self.table = pathlib.Path(root), read_table(root)
        self.errors, self.used, self.cache = list(self.table.errors), set(), {}
        # Clients include each other's headers by the name alone.
        headers = (self.root / "clients").rglob("*.h")
        self.rooms_of_clients = {file.name: part_of(file.relative_to(self.root))[1] for file in headers}

    def includes(self, path):
        """(line, is external, name) of each include of a file; nothing for a file that is generated."""
        if path not in self.cache:
            file = self.root / path
            text = file.read_text() if file.exists() else ""
            self.cache[path] = [
                (text.count("\n", 0, m.start()) + 1, m[1] == "<", m[2]) for m in INCLUDE.finditer(text)
            ]
        return self.cache[path]

    def check_external(self, where, layer, name):
        for prefix, layers in self.table.external.items():
            if name.startswith(prefix) and layer not in layers:
                self.errors.append(f"{where}: <{name}> is not allowed in {layer}")

    def check_public(self, where, layer, name):
        target = layer_of_header(name)
        if target not in self.table.may[layer]:
            self.errors.append(f"{where}: {layer} must not include {target}")
        else:
            self.check_seen(where, layer, name, target, {name})

    def check_seen(self, where, layer, header, shower, seen):
        """What the header brings along must be allowed to the layer, or be shown by the last layer that is."""
        for _, is_external, name in self.includes("include/" + header):
            if is_external or not name.startswith("hearth/") or name in seen:
                continue
            seen.add(name)
            target, short = layer_of_header(name), name.removeprefix("hearth/")
            if target in self.table.may[layer]:
                self.check_seen(where, layer, name, target, seen)
                continue
            self.used.add((shower, short))
            if short not in self.table.shown.get(shower, ()):
                self.errors.append(f"{where}: {layer} sees {short} through {header}; LAYERS has no ~{shower} for it")
            self.check_seen(where, layer, name, shower, seen)

    def check_private(self, where, layer, room, name):
        if layer == "client":
            target, is_of_layer = self.rooms_of_clients.get(name), name in self.rooms_of_clients
        else:
            target = f"{layer}/{name.split('/')[0]}"
            is_of_layer = "/" in name or (self.root / "server" / target).exists()
        if room and is_of_layer and target not in self.table.may[room]:
            self.errors.append(f"{where}: {room} must not include {target or name}")

    def check_file(self, path):
        layer, room = part_of(path)
        rooms = self.table.rooms(layer)
        if layer not in self.table.may or (rooms and room and room not in rooms):
            self.errors.append(f"{path}: {room or layer} is not in LAYERS")
            return
        for line, is_external, name in self.includes(path):
            where = f"{path}:{line}"
            if is_external:
                self.check_external(where, layer, name)
            elif name.startswith("hearth/"):
                self.check_public(where, layer, name)
            elif rooms:
                self.check_private(where, layer, room, name)

    def run(self):
        for folder in ("server", "include/hearth", "clients"):
            for file in sorted((self.root / folder).rglob("*")):
                if file.suffix in (".c", ".h", ".cc"):
                    self.check_file(file.relative_to(self.root).as_posix())
        for layer, names in self.table.shown.items():
            for name in sorted(names):
                if (layer, name) not in self.used:
                    self.errors.append(f"LAYERS: ~{layer} names {name}, which nobody sees through {layer}")
        return self.errors


def main():
    errors = Check(sys.argv[1]).run()
    print("\n".join(errors) or "layers: ok")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
