"""The profile within an HTML flame graph (clients/viewer)."""

import json
import re

PLACE = re.compile(r'<script type="application/json" id="profile">(.*?)</script>', re.DOTALL)


def embedded(page):
    """The profile of an HTML file."""
    return json.loads(PLACE.search(page).group(1))


def stacks_of(data, side=0):
    """{stack: self} of an embedded profile."""
    parents, stacks = [], {}
    for i, (name, step, own) in enumerate(zip(data["name"], data["parent"], data["self"][side])):
        parents.append(step + (parents[-1] if i else 0))
        path = []
        at = i
        while at:
            path.append(data["names"][data["name"][at]])
            at = parents[at]
        if own:
            stacks[tuple(reversed(path))] = own
    return stacks
