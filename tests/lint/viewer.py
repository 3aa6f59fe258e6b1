#!/usr/bin/env python3
"""viewer.py ROOT [--write]: the policy of the HTML viewer names its own script and style by their hashes.

A browser runs neither if a byte differs. The file also has to stay small, and has nothing that reads names as markup.
"""

import base64
import hashlib
import pathlib
import re
import sys

LARGEST = 40 << 10  # bytes without a profile
FORBIDDEN = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http:", "https:", "fetch(")


def sealed(text):
    """The text with the hashes of its script and style in its policy."""
    for tag in ("script", "style"):
        block = re.search("<%s>(.*?)</%s>" % (tag, tag), text, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()
        text = re.sub("(%s-src 'sha256-)[^']*'" % tag, lambda match: match.group(1) + digest + "'", text, count=1)
    return text


def main():
    path = pathlib.Path(sys.argv[1], "clients/viewer/viewer.html")
    text = path.read_text(encoding="utf-8")
    failures = ["%s: has %s" % (path, word) for word in FORBIDDEN if word in text]
    if len(text.encode()) > LARGEST:
        failures.append("%s: more than %d bytes" % (path, LARGEST))
    if sealed(text) != text:
        if "--write" in sys.argv:
            path.write_text(sealed(text), encoding="utf-8")
        else:
            failures.append("%s: its policy has other hashes than its script and style: run tests/lint/viewer.py . --write" % path)
    print("\n".join(failures) or "viewer: ok")
    sys.exit(bool(failures))


main()
