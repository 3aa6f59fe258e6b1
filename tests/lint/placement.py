#!/usr/bin/env python3
"""placement.py ROOT -- the two sets of tables (sql/placement.def) are complete, and migrations keep them apart.

placement.def, sql/README.md and the migrations name the same tables, and the first two the same sets. A data table has
service_id in each of its keys. Migrations after FREE_UNTIL neither alter storage or sequences, nor make triggers, nor
foreign keys that touch a data table: earlier ones are released and cannot change.
"""

import pathlib
import re
import sys

PLACED = re.compile(r"^HEARTH_PLACED\((\w+), (DATA|CATALOGUE)\)$", re.M)
CREATED = re.compile(r"\bCREATE\s+(?:UNLOGGED\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?hearth_data\.(\w+)", re.I)
DROPPED = re.compile(r"\bDROP\s+TABLE\s+(?:IF\s+EXISTS\s+)?hearth_data\.(\w+)", re.I)
KEY = re.compile(r"\b(?:PRIMARY\s+KEY|UNIQUE)\s*\(([^)]*)\)|\bUNIQUE\s+INDEX\b[^(;]*\(([^)]*)\)", re.I)

# The last migration to which the rules below do not apply.
FREE_UNTIL = 23
FORBIDDEN = (
    (re.compile(r"\bSET\s+(?:STORAGE|COMPRESSION|STATISTICS|TABLESPACE)\b", re.I), "alters the storage of a column"),
    (re.compile(r"\bALTER\s+SEQUENCE\b", re.I), "alters a sequence"),
    (re.compile(r"\bCREATE\s+(?:OR\s+REPLACE\s+)?(?:CONSTRAINT\s+)?TRIGGER\b", re.I), "makes a trigger"),
)


def placement(root):
    """{table: set}, in the order of placement.def"""
    return dict(PLACED.findall((root / "sql/placement.def").read_text()))


def listed(root):
    """The same, from the table of sql/README.md."""
    lines = (root / "sql/README.md").read_text().splitlines()
    found = {}
    for line in lines[lines.index("| table | set | key | one row per | grows with | trimmed |") + 2 :]:
        if not line.startswith("|"):
            break
        names, placed = line.split("|")[1:3]
        found.update((name, placed.strip().upper()) for name in re.findall(r"`(\w+)`", names))
    return found


def statements(text):
    """Statements of a migration without comments. Bodies of functions are cut at their semicolons, too."""
    text = re.sub(r"--[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    return [statement.strip() for statement in text.split(";") if statement.strip()]


def tables_of(statement):
    return re.findall(r"\bhearth_data\.(\w+)", statement)


def breaches(statement, sets):
    """What a statement of a new migration must not do."""
    for pattern, what in FORBIDDEN:
        if pattern.search(statement):
            yield what
    is_data = any(sets.get(name) == "DATA" for name in tables_of(statement))
    if re.search(r"\b(?:REFERENCES|FOREIGN\s+KEY)\b", statement, re.I) and is_data:
        yield "makes a foreign key that touches a data table"


def loose_keys(statement, sets):
    """Keys of data tables that lack service_id."""
    tables = tables_of(statement)
    if not tables or sets.get(tables[0]) != "DATA":
        return
    for columns in ("".join(found) for found in KEY.findall(statement)):
        if "service_id" not in [column.strip() for column in columns.split(",")]:
            yield "a key of %s without service_id: (%s)" % (tables[0], columns)


def check(root):
    sets, made = placement(root), {"migration"}  # which migrate.c makes
    for path in sorted((root / "sql").glob("[0-9]*.sql")):
        for statement in statements(path.read_text()):
            made.update(CREATED.findall(statement))
            made.difference_update(DROPPED.findall(statement))
            found = list(loose_keys(statement, sets))
            found += breaches(statement, sets) if int(path.name[:4]) > FREE_UNTIL else []
            yield from ("sql/%s: %s" % (path.name, what) for what in found)
    shown = listed(root)
    for name in sorted(made | set(sets) | set(shown)):
        if name not in made:
            yield "no migration makes %s, which placement.def or sql/README.md names" % name
        elif name not in sets or sets[name] != shown.get(name):
            yield "%s: placement.def says %s, sql/README.md %s" % (name, sets.get(name), shown.get(name))


def main():
    found = list(check(pathlib.Path(sys.argv[1])))
    for line in found:
        print("placement: " + line, file=sys.stderr)
    if not found:
        print("placement: ok")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
