"""What a soak says: soak.py --report. Slopes of memory with their intervals, bounds, errors, counts, and a picture.

A slope is one of least squares over all pieces, each with an intercept of its own, without the warm-up of each piece;
a second one is without the first hour of each, in which threads get their first large pushes and queries.
Neighbouring looks resemble each other, so the interval is widened by the autocorrelation r of the residuals: as many
looks as there are count like n (1 - r) / (1 + r) independent ones.
"""

import csv
import math
import pathlib

from plots import Picture

WARM_UP_SECONDS = 900
HOUR_SECONDS = 3600
SERIES = {"hearthd_mib": "hearthd", "heap_mib": "allocated by it", "postgres_mib": "PostgreSQL, private"}
COLORS = {"hearthd_mib": "#1f6f8b", "heap_mib": "#8a8a2b", "postgres_mib": "#b3541e", "lag_s": "#5b7f3a", "query_p99_ms": "#7a5ea8"}


def read(path):
    """Rows of a TSV as dicts of the numbers that they have."""
    with open(path) as file:
        return [{key: float(value) for key, value in row.items() if value} for row in csv.DictReader(file, delimiter="\t")]


def student(freedom):
    """The 97.5 % quantile of Student's distribution, by the expansion of Cornish and Fisher: within 1 % from 4 on."""
    z = 1.959964
    return (z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
            + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3))


def pieces_of(rows):
    found = {}
    for row in rows:
        found.setdefault(int(row["piece"]), []).append(row)
    return list(found.values())


def slope(pieces, column):
    """(slope per hour, half of its 95 % interval), or None if there are too few looks."""
    x, y, ends = [], [], []
    for piece in pieces:
        piece = [row for row in piece if column in row]
        if len(piece) < 3:
            continue
        hours = [row["seconds"] / 3600 for row in piece]
        values = [row[column] for row in piece]
        x += [hour - sum(hours) / len(hours) for hour in hours]
        y += [value - sum(values) / len(values) for value in values]
        ends.append(len(x))
    spread = sum(a * a for a in x)
    freedom = len(x) - len(ends) - 1
    if freedom < 4 or not spread:
        return None
    found = sum(a * b for a, b in zip(x, y)) / spread
    rest = [b - found * a for a, b in zip(x, y)]
    square = sum(e * e for e in rest)
    products = sum(rest[k] * rest[k - 1] for k in range(1, len(rest)) if k not in ends)
    r = min(max(products / square, 0), 0.99) if square else 0
    wider = (1 + r) / (1 - r)
    return found, student(max(4, freedom / wider)) * math.sqrt(square / freedom / spread * wider)


def slope_text(found):
    if not found:
        return "too few looks"
    return "%+.2f ± %.2f MiB/h%s" % (*found, "" if abs(found[0]) > found[1] else ": not different from 0")


def table(rows, pieces, warm, checks):
    late = [[row for row in piece if row["seconds"] >= HOUR_SECONDS] for piece in pieces]
    seconds = sum(piece[-1]["seconds"] for piece in pieces)
    total = lambda column: sum(piece[-1][column] for piece in pieces)
    highest = lambda column: max(row[column] for row in rows if column in row)
    last = checks[-1] if checks else None
    yield "run, of 24 h", "%.2f h in %d %s" % (seconds / 3600, len(pieces), "piece" if len(pieces) == 1 else "pieces")
    yield "profiles acknowledged", "%s, %.0f a second" % (format(int(total("acknowledged")), ","), total("acknowledged") / seconds)
    if last:
        yield "of them lost, doubled; sums that differ", "%d, %d; %d of %d" % (
            max(c["lost"] for c in checks), max(c["doubled"] for c in checks), max(c["wrong_sums"] for c in checks), last["entries"])
        yield "spans acknowledged, stored", "%s, %s" % (format(int(last["spans"]), ","), format(int(last["spans_stored"]), ","))
    yield "queries; tasks; tasks that policies started", "%s; %d; %d" % (
        format(int(total("queries")), ","), total("tasks"), total("policies"))
    yield "calls that failed (errors.txt); background steps that failed", "%d; %d" % (
        total("errors"), total("builder_errors"))
    for column, name in SERIES.items():
        if column not in rows[-1]:
            continue  # measured by an older soak.py
        yield "memory of %s: at the end, highest" % name, "%.0f, %.0f MiB" % (rows[-1][column], highest(column))
        yield "its slope after the warm-up, 95 %", slope_text(slope(warm, column))
        yield "its slope after the first hour of each piece, 95 %", slope_text(slope(late, column))
    yield "roll-up lag: highest", "%.0f s" % highest("lag_s")
    yield "late profiles waiting: highest", "%.0f" % highest("late_rows")
    yield "rows queued for a commit: highest", "%.0f" % highest("queued_rows")
    yield "rows compacted", format(int(total("compacted_rows")), ",")
    yield "99 % of queries within, median and highest of the looks", "%.0f, %.0f ms" % (
        sorted(row["query_p99_ms"] for row in rows)[len(rows) // 2], highest("query_p99_ms"))
    yield "CPU of hearthd, of PostgreSQL", "%.2f, %.2f cores" % (
        total("hearthd_cpu_s") / seconds, total("postgres_cpu_s") / seconds)
    yield "load of the machine: median, highest", "%.1f, %.1f" % (
        sorted(row["load"] for row in rows)[len(rows) // 2], highest("load"))


def draw(rows, pieces, path):
    """Memory, lag and the time of queries over the hours that were run; a dashed line is a restart."""
    width, height, left, top = 620, 120, 60, 70
    picture = Picture(left + width + 30, top + 3 * (height + 50), "course of a soak")
    picture.text(14, 24, "Course of the soak by hours of run time", 15, bold=True)
    hours, before = [], 0.0
    starts = []
    for piece in pieces:
        starts.append(before)
        hours += [before + row["seconds"] / 3600 for row in piece]
        before = hours[-1]
    panels = (
        ("Memory, MiB", list(SERIES)), ("Lag of roll-ups, s", ["lag_s"]), ("99 % of queries within, ms", ["query_p99_ms"]),
    )
    for k, (title, columns) in enumerate(panels):
        y0 = top + k * (height + 50)
        most = max(1.0, max(row[column] for row in rows for column in columns if column in row)) * 1.1
        picture.text(left - 46, y0 - 10, title, 11, bold=True)
        for share in (0, 0.5, 1):
            y = y0 + height * (1 - share / 1.1)
            picture.line(left, y, left + width, y)
            picture.text(left - 5, y + 4, "%.0f" % (most / 1.1 * share), 10, "end", "#777777")
        x_of = lambda hour: left + hour / before * width
        for start in starts:
            picture.line(x_of(start), y0, x_of(start), y0 + height, "#999999", 1.0, "4 3")
        for n, column in enumerate(columns):
            points = [
                (x_of(hour), y0 + height * (1 - row[column] / most)) for hour, row in zip(hours, rows) if column in row
            ]
            if not points:
                continue  # no look has it
            picture.parts.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="1.2"/>' % (
                " ".join("%.1f,%.1f" % point for point in points), COLORS[column]))
            picture.text(left + width - 150 * n, y0 - 10, SERIES.get(column, ""), 10, "end", COLORS[column])
        picture.text(left, y0 + height + 15, "0", 10, "middle", "#777777")
        picture.text(left + width, y0 + height + 15, "%.1f h" % before, 10, "middle", "#777777")
    picture.save(path)


def report(state, svg):
    rows = read(state / "course.tsv")
    checks = read(state / "checks.tsv") if (state / "checks.tsv").exists() else []
    pieces = pieces_of(rows)
    warm = [[row for row in piece if row["seconds"] >= min(WARM_UP_SECONDS, piece[-1]["seconds"] / 2)] for piece in pieces]
    print("| | |\n|---|---|")
    for name, value in table(rows, pieces, warm, checks):
        print("| %s | %s |" % (name, value))
    cut = {int(piece[0]["piece"]) for piece in pieces} - {int(check["piece"]) for check in checks}
    if cut:
        print("\nPieces that run, or were killed before they were counted: %s" % ", ".join(map(str, sorted(cut))))
    if svg:
        draw(rows, pieces, pathlib.Path(svg))
    return 1 if any(c["lost"] or c["doubled"] or c["wrong_sums"] for c in checks) else 0
