#!/usr/bin/env python3
"""proofs.py ROOT -- the tests and files that the tables of docs/threat-model.md and docs/testing.md name are there.

A row of the threat model without a test fails, too. Names: `test_x` (C or Python), `fuzz_x`, paths below tests/ with braces;
in the column `where` of the threat model, paths below server/.
"""

import itertools
import pathlib
import re
import subprocess
import sys

TEST = re.compile(r"`((?:test|fuzz)_\w+(?:\.c|\.py)?|tests/[^`*]+\.(?:py|c|sh))`")


def unfolded(path):
    """a/{b,c}.py as a/b.py, a/c.py"""
    parts = [part.strip("{}").split(",") for part in re.split(r"(\{[^}]*\})", path)]
    return ["".join(chosen) for chosen in itertools.product(*parts)]


def rows(text, heading):
    """Cells of the first table below a heading, without its head."""
    lines = text[text.index(heading) :].splitlines()
    table = list(itertools.takewhile(lambda l: l.startswith("|"), itertools.dropwhile(lambda l: not l.startswith("|"), lines)))
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table[2:]]


def missing(root, files):
    names = {pathlib.PurePath(f).name for f in files if f.startswith("tests/")}
    threats = rows((root / "docs/threat-model.md").read_text(), "## Threats and limits")
    promises = rows((root / "docs/testing.md").read_text(), "## Where the hard promises are tested")
    for page, cells in [("threat-model.md", t) for t in threats] + [("testing.md", p) for p in promises]:
        proofs = [name for found in TEST.findall(cells[-1]) for name in unfolded(found)]
        if not proofs and "unit tests" not in cells[-1]:
            yield "%s: no test proves: %s" % (page, cells[0])
        for name in proofs:
            known = name in files if "/" in name else name in names or {name + ".c", name + ".py"} & names
            if not known:
                yield "%s: there is no %s" % (page, name)
    for cells in threats:
        folder = ""
        for path in re.findall(r"`([\w/.*]+)`", cells[2]):
            path = path if "/" in path else folder + path  # beside the one before it
            folder = path.rpartition("/")[0] + "/"
            if not list((root / "server").glob(path.rstrip("/"))):
                yield "threat-model.md: there is no server/%s" % path


def main():
    root = pathlib.Path(sys.argv[1])
    listed = subprocess.run(["git", "-C", str(root), "ls-files"], capture_output=True, text=True, check=True).stdout
    found = list(missing(root, set(listed.splitlines())))
    for line in found:
        print("proofs: " + line, file=sys.stderr)
    if not found:
        print("proofs: ok")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
