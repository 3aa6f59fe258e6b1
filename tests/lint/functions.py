#!/usr/bin/env python3
"""functions.py ROOT -- static functions of a layer have different names; a function of more than 15 lines has a blank
line within it, and no function has more than eight parameters."""

import collections
import pathlib
import re
import subprocess
import sys

MAX_LINES_IN_ONE_PARAGRAPH = 15
MAX_PARAMETERS = 8
HEAD = re.compile(r"^(static\b)?[^\n;{}=#/]*?\b(\w+)\(([^;{}]*?)\)\s*\{$", re.M)


def functions(text):
    """(is static, name, parameters, line of the head, lines of the whole) of each function."""
    for found in HEAD.finditer(text):
        if found.group(0).startswith((" ", "typedef", "struct {", "enum {")):
            continue
        end = text.find("\n}", found.end())
        body = text[found.start() : end + 2].split("\n")
        yield bool(found.group(1)), found.group(2), found.group(3), text.count("\n", 0, found.start()) + 1, body


def is_one_statement(lines):
    """A switch, a loop or a return has its own structure."""
    begun = [line for line in lines[1:] if re.match(r"    [^ }/*.]", line) and not re.match(r"    (case|default)\b", line)]
    return len(begun) <= 1


def count_parameters(text):
    depth, n = 0, 1 if text.strip() not in ("", "void") else 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        n += character == "," and depth == 0
    return n


def check(root, paths):
    """The complaints about these files, whose second part of the path is the layer."""
    complaints, where = [], collections.defaultdict(list)
    for path in paths:
        layer = path.split("/")[1]
        for is_static, name, parameters, line, lines in functions((root / path).read_text()):
            if is_static:
                where[layer, name].append("%s:%d" % (path, line))
            has_paragraphs = any(not part.strip() for part in lines[1:-1])
            if len(lines) > MAX_LINES_IN_ONE_PARAGRAPH and not has_paragraphs and not is_one_statement(lines):
                complaints.append("%s:%d: %s has %d lines and no paragraph" % (path, line, name, len(lines)))
            if count_parameters(parameters) > MAX_PARAMETERS:
                complaints.append("%s:%d: %s has %d parameters" % (path, line, name, count_parameters(parameters)))
    for (layer, name), places in sorted(where.items()):
        if len({place.rsplit(":", 1)[0] for place in places}) > 1:
            complaints.append("%s: %s is the name of several static functions: %s" % (layer, name, ", ".join(places)))
    return complaints


def main():
    root = pathlib.Path(sys.argv[1])
    listed = subprocess.run(["git", "ls-files", "server/*.c"], cwd=root, check=True, capture_output=True, text=True)
    complaints = check(root, listed.stdout.split())
    for complaint in complaints:
        print("functions: " + complaint, file=sys.stderr)
    if complaints:
        sys.exit(1)
    print("functions: ok")


if __name__ == "__main__":
    main()
