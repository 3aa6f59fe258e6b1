#!/usr/bin/python3
"""Draw what `./dev bench --sets 20k,200k,2m --json FILE` measured: plots.py FILE [DIRECTORY]

Writes questions.svg (time by size of the set, one panel a query, one line a state), disk.svg (bytes of a profile by
table) and memory.svg to docs/pictures, with nothing but the standard library.
"""

import json
import math
import pathlib
import sys

PICTURES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "pictures"
STATES = {"raw": "#b3541e", "rolled": "#1f6f8b", "compacted": "#5b7f3a"}
TABLES = {
    "profile": "#b3541e", "profile indexes": "#d9a27e", "segment": "#5b7f3a", "dict_chunk": "#8a8a8a", "roll_10m": "#1f6f8b",
    "roll_1h": "#5fa3b8", "roll_1d": "#a5cdd9", "hour_totals": "#7a5ea8", "series_hour": "#c4b5dd",
}


class Picture:
    def __init__(self, width, height, title):
        self.parts = [
            '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" '
            'font-family="Helvetica, Arial, sans-serif">' % (width, height, width, height),
            '<title>%s</title><rect width="100%%" height="100%%" fill="#ffffff"/>' % escape(title),
        ]

    def text(self, x, y, text, size=11, anchor="start", color="#333333", bold=False):
        self.parts.append('<text x="%.1f" y="%.1f" font-size="%d" text-anchor="%s" fill="%s"%s>%s</text>' % (
            x, y, size, anchor, color, ' font-weight="bold"' if bold else "", escape(text)))

    def line(self, x1, y1, x2, y2, color="#dddddd", width=1.0, dash=""):
        self.parts.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%.1f"%s/>' % (
            x1, y1, x2, y2, color, width, ' stroke-dasharray="%s"' % dash if dash else ""))

    def path(self, points, color):
        self.parts.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>' % (
            " ".join("%.1f,%.1f" % p for p in points), color))
        for x, y in points:
            self.parts.append('<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (x, y, color))

    def box(self, x, y, width, height, color, title=""):
        self.parts.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"><title>%s</title></rect>' % (
            x, y, width, height, color, escape(title)))

    def save(self, path):
        path.write_text("\n".join(self.parts + ["</svg>"]) + "\n")


def escape(text):
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def label(value):
    return "%g" % value if value < 1000 else "%gk" % (value / 1000)


def legend(picture, x, y, colors):
    for name, color in colors.items():
        picture.box(x, y - 9, 10, 10, color)
        picture.text(x + 14, y, name)
        x += 30 + 6.2 * len(name)


def questions(sets, path):
    names = list(next(iter(sets.values()))["states"]["raw"]["questions"])
    columns, width, height, left, top = 4, 235, 190, 46, 70
    rows = -(-len(names) // columns)
    picture = Picture(columns * width + 20, top + rows * height + 20, "time of a query by size of the set")
    picture.text(14, 24, "Time of a query (ms, warm) by profiles in the set", 15, bold=True)
    legend(picture, 14, 46, {**STATES, "goal": "#999999"})
    for i, name in enumerate(names):
        x0, y0 = i % columns * width + left, top + i // columns * height + 24
        panel(picture, sets, name, x0, y0, width - left - 8, height - 62)
    picture.save(path)


def panel(picture, sets, name, x0, y0, width, height):
    sizes = sorted((one["rows"], one) for one in sets.values())
    found = {state: [(n, one["states"][state]["questions"][name]["ms"]) for n, one in sizes if state in one["states"]]
             for state in STATES}
    goal = max(one["states"]["raw"]["questions"][name]["goal"] or 0 for _, one in sizes)
    values = [ms for points in found.values() for _, ms in points] + ([goal] if goal else [])
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values) * 1.01))
    high = max(high, low + 1)
    first, last = math.log10(sizes[0][0]), math.log10(sizes[-1][0])

    def at(n, ms):
        share = (math.log10(n) - first) / (last - first) if last > first else 0.5
        return x0 + 8 + share * (width - 16), y0 + height - (math.log10(ms) - low) / (high - low) * height

    picture.text(x0 - 36, y0 - 8, name, 11, bold=True)
    for power in range(low, high + 1):
        y = at(sizes[0][0], 10.0**power)[1]
        picture.line(x0, y, x0 + width, y)
        picture.text(x0 - 5, y + 4, label(10.0**power), 10, "end", "#777777")
    for n, _ in sizes:
        x = at(n, 10.0**low)[0]
        picture.line(x, y0 + height, x, y0 + height + 4, "#777777")
        picture.text(x, y0 + height + 15, "%.3gk" % (n / 1000) if n < 999500 else "%.2gM" % (n / 1e6), 10, "middle", "#777777")
    if goal:
        y = at(sizes[0][0], goal)[1]
        picture.line(x0, y, x0 + width, y, "#999999", 1.2, "4 3")
    below = y0 + height
    for state, points in sorted(found.items(), key=lambda pair: pair[1][-1][1] if pair[1] else 0):
        if points:
            picture.path([at(*p) for p in points], STATES[state])
            x, y = at(*points[-1])
            below = min(y - 6, below - 11)  # the numbers of lines that meet stand one above the other
            ms = points[-1][1]
            picture.text(x + 2, below, format(ms, ",.0f" if ms >= 100 else ".3g"), 10, "end", STATES[state])


def disk(sets, path):
    bars = [(name, state, one) for name, one in sets.items() for state in one["states"]]
    width, height, left, top = 74, 300, 60, 84
    totals = [sum(one["states"][state]["sizes"].get(t, 0) for t in TABLES if t != "profile indexes") / one["rows"]
              for _, state, one in bars]
    most = max(totals) * 1.06
    picture = Picture(max(left + width * len(bars) + 30, 560), top + height + 70, "bytes of a profile on disk")
    picture.text(14, 24, "Bytes of a profile on disk, by table", 15, bold=True)
    half = len(TABLES) // 2 + 1
    legend(picture, 14, 46, dict(list(TABLES.items())[:half]))
    legend(picture, 14, 64, dict(list(TABLES.items())[half:]))
    for value in range(0, int(most) + 1, 250):
        y = top + height - value / most * height
        picture.line(left, y, left + width * len(bars), y)
        picture.text(left - 6, y + 4, format(value, ","), 10, "end", "#777777")
    for i, (name, state, one) in enumerate(bars):
        sizes, y = one["states"][state]["sizes"], top + height
        x = left + i * width + 12
        for table, color in TABLES.items():
            n = sizes.get(table, 0) / one["rows"]
            if table == "profile":
                n -= sizes.get("profile indexes", 0) / one["rows"]
            y -= n / most * height
            picture.box(x, y, width - 24, n / most * height, color, "%s: %.0f bytes" % (table, n))
        picture.text(x + (width - 24) / 2, y - 5, format(totals[i], ",.0f"), 10, "middle")
        picture.text(x + (width - 24) / 2, top + height + 16, state, 10, "middle")
        picture.text(x + (width - 24) / 2, top + height + 31, name, 11, "middle", bold=True)
    picture.save(path)


def memory(sets, path):
    bars = [(name, state, one) for name, one in sets.items() for state in one["states"]]
    width, height, left, top = 74, 200, 60, 66
    most = max(n["rss"] for _, state, one in bars for n in [one["states"][state]]) * 1.1
    picture = Picture(max(left + width * len(bars) + 30, 560), top + height + 50, "memory of hearthd")
    picture.text(14, 24, "Resident memory of hearthd, MiB", 15, bold=True)
    legend(picture, 14, 46, {"after a start": "#a5cdd9", "after the queries": "#1f6f8b"})
    step = 10 ** math.floor(math.log10(most)) / 2
    for k in range(int(most / step) + 1):
        y = top + height - k * step / most * height
        picture.line(left, y, left + width * len(bars), y)
        picture.text(left - 6, y + 4, label(k * step), 10, "end", "#777777")
    for i, (name, state, one) in enumerate(bars):
        for k, key in enumerate(("rss_idle", "rss")):
            n = one["states"][state][key]
            x = left + i * width + 10 + k * 27
            picture.box(x, top + height - n / most * height, 25, n / most * height, ("#a5cdd9", "#1f6f8b")[k])
            picture.text(x + 12, top + height - n / most * height - 4, "%.0f" % n, 10, "middle")
        picture.text(left + i * width + 36, top + height + 16, state, 10, "middle")
        picture.text(left + i * width + 36, top + height + 31, name, 11, "middle", bold=True)
    picture.save(path)


def draw(sets, directory=PICTURES):
    directory.mkdir(parents=True, exist_ok=True)
    questions(sets, directory / "questions.svg")
    disk(sets, directory / "disk.svg")
    memory(sets, directory / "memory.svg")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    with open(sys.argv[1]) as f:
        sets = json.load(f)["sets"]
    draw(sets, *map(pathlib.Path, sys.argv[2:]))


if __name__ == "__main__":
    main()
