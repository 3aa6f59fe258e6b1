"""What the answers must be, computed naively from what was pushed: the second opinion of test_oracle.py.

Written from the public description of the query API alone (docs/reference/api-querier.md says the same in our words); it shares no code with
the server, is slow on purpose, and holds everything in dictionaries. Stack traces are tuples, root first. Times are
nanoseconds where a profile is meant and milliseconds where a question is.
"""

import collections
import math
import os
import re

from wire import varint

OTHER = "other"


# ---- what was pushed ----


class Taken:
    """One stored profile: labels of its series (of one label set), and samples [(locations leaf first, values, attributes)].

    A location is a tuple of lines (function, file, line), innermost first; line None: an address in a mapped file.
    """

    def __init__(self, number, time_ns, labels, types, period_type, samples):
        self.number, self.time_ns, self.labels = number, time_ns, labels
        self.types, self.period_type, self.samples = types, period_type, samples

    def type_ids(self):
        return [":".join((self.labels["__name__"],) + t + self.period_type) for t in self.types]


ATTRIBUTES = ("span_id", "trace_id", "thread_name")


def take(number, decoded, labels):
    """A pushed profile (pprof.Decoded) as the profiles that are stored: one for each set of text labels of its samples."""
    split = collections.defaultdict(list)
    for locations, values, sample_labels in decoded.kept():
        own = {k: v for k, v in sample_labels.items() if isinstance(v, str) and k not in ATTRIBUTES}
        own = tuple(sorted((k, v) for k, v in own.items() if k not in labels))
        attributes = {k: v for k, v in sample_labels.items() if k in ATTRIBUTES}
        split[own].append((tuple(tuple(lines) for lines in locations), values, attributes))
    return [
        Taken(number, decoded.time_ns, {**labels, **dict(own)}, decoded.sample_types, decoded.period_type or ("", ""), samples)
        for own, samples in split.items()
    ]


def frame_name(line):
    """What a flame graph of querier.v1 calls a line of a location; a function without a name stays without one."""
    name, file, number = line
    return "%s+%s" % (os.path.basename(file), name) if number is None and file else name


def is_address(name):
    """True for the name of a location without a function."""
    return re.search(r"(^|\+)0x[0-9a-f]+$", name) is not None


def shown(name):
    """What everything else calls it."""
    return name or "[unknown]"


def names_of(locations):
    """Root-first names of a stack: inlined lines are frames, the outermost first."""
    return tuple(reversed([frame_name(line) for lines in locations for line in lines]))


# ---- which of it ----


class Matcher:
    def __init__(self, name, op, value):
        self.name, self.op, self.value = name, op, value

    def text(self):
        return '%s%s"%s"' % (self.name, self.op, self.value)

    def matches(self, labels):
        value = labels.get(self.name, "")
        if self.op in ("=", "!="):
            return (value == self.value) == (self.op == "=")
        return bool(re.fullmatch(self.value, value, re.S)) == (self.op == "=~")


def selector(matchers):
    return "{%s}" % ",".join(m.text() for m in matchers)


FUNCTION, LINE, FILE, DIRECTORY, THREAD = 1, 2, 3, 4, 8  # tables, numbered as in hearth.v1.TopKind


def rows_of(kind, locations, attributes):
    """The names of the rows of a table that a sample is counted in."""
    if kind == THREAD:
        return {attributes.get("thread_name", "")}
    out = set()
    for lines in locations:
        for line in [lines] if isinstance(lines[0], str) else lines:
            name, file, number = line
            file = "" if number is None else file
            head, slash, _ = file.rpartition("/")
            out.add({
                FUNCTION: shown(frame_name(line)), LINE: "%s:%d" % (shown(frame_name(line)), number or 0), FILE: file,
                DIRECTORY: head or slash,
            }[kind])
    return out


class Rows:
    """A condition on the rows of a table that a sample is counted in; all that are given must hold."""

    def __init__(self, kind, names=(), without=(), regex="", without_regex=""):
        self.kind, self.names, self.without, self.regex, self.without_regex = kind, names, without, regex, without_regex

    def fields(self):
        """As hearth.v1.RowFilter."""
        lists = [(2, name) for name in self.names] + [(3, name) for name in self.without]
        return [(1, self.kind)] + lists + [(4, self.regex), (5, self.without_regex)]

    def passes(self, locations, attributes):
        rows = rows_of(self.kind, locations, attributes)
        if self.names and not rows & {*self.names} or rows & {*self.without}:
            return False
        if self.regex and not any(re.search(self.regex, row) for row in rows):
            return False
        return not (self.without_regex and any(re.search(self.without_regex, row) for row in rows))


class Stacks:
    """A filter by stack trace; all conditions that are given must hold."""

    def __init__(self, call_site=(), functions=(), all_functions=False, without=(), regex="", without_regex="", rows=()):
        self.rows = rows
        self.call_site, self.functions, self.all_functions = tuple(call_site), functions, all_functions
        self.without, self.regex, self.without_regex = without, regex, without_regex

    def passes(self, names):
        if names[: len(self.call_site)] != self.call_site:
            return False
        some = all if self.all_functions else any
        if self.functions and not some(f in names for f in self.functions):
            return False
        if any(f in names for f in self.without):
            return False
        if self.regex and not any(re.search(self.regex, n) for n in names):
            return False
        return not (self.without_regex and any(re.search(self.without_regex, n) for n in names))


class Asked:
    """What a question selects: (taken, value of a sample, its locations, its attributes)."""

    def __init__(self, taken, type_id, matchers, start_ms, end_ms, stacks=None, spans=(), traces=(), numbers=None):
        self.type_id = type_id
        self.rows = []
        for profile in taken:
            if not start_ms * 1_000_000 <= profile.time_ns <= end_ms * 1_000_000:
                continue
            if numbers is not None and profile.number not in numbers:
                continue
            if type_id not in profile.type_ids() or not all(m.matches(profile.labels) for m in matchers):
                continue
            k = profile.type_ids().index(type_id)
            if not any(values[k] for _, values, _ in profile.samples):
                continue  # a series has the types that are not 0
            for locations, values, attributes in profile.samples:
                if spans and attributes.get("span_id") not in spans:
                    continue
                if traces and attributes.get("trace_id") not in traces:
                    continue
                if stacks and not all(rows.passes(locations, attributes) for rows in stacks.rows):
                    continue
                if stacks is None or stacks.passes(names_of(locations)):
                    self.rows.append((profile, values[k], locations, attributes))

    def by_names(self):
        out = collections.Counter()
        for _, value, locations, _ in self.rows:
            out[names_of(locations)] += value
        return +out

    def by_locations(self):
        """{leaf-first lines: value}, as pprof.Decoded.by_stack has it."""
        out = collections.Counter()
        for _, value, locations, _ in self.rows:
            out[tuple(line for lines in locations for line in lines)] += value
        return dict(+out)

    def total(self):
        return sum(value for _, value, _, _ in self.rows)


# ---- flame graphs and trees ----


class Tree:
    """A node. Children by name."""

    def __init__(self, name=""):
        self.name, self.self_value, self.children = name, 0, {}

    @property
    def total(self):
        return self.self_value + sum(c.total for c in self.children.values())

    def add(self, names, value):
        node = self
        for name in names:
            node = node.children.setdefault(name, Tree(name))
        node.self_value += value

    def below(self):
        """All nodes but this one."""
        for child in self.children.values():
            yield child
            yield from child.below()


def tree_of(by_names):
    root = Tree()
    for names, value in by_names.items():
        root.add(names, value)
    return root


# ---- Go's stacks ----

OVERLAP = 16


def short_names(names):
    return tuple(re.sub(r"\[go\.shape\..*\]", "[...]", name) for name in names)


def is_cut(locations, limit):
    """Whether Go's runtime, which records `limit` frames, may have cut a stack (leaf-first lines of each location)."""
    frames = sum(len(lines) for lines in locations)
    return len(locations) <= limit and frames >= limit - 4 and locations[-1][-1][1].endswith(".go")


def repaired(stacks):
    """[(root-first names, value, cut)] -> ({names: value}, number of cut stacks that were joined)."""
    stacks = [(short_names(names), value, cut) for names, value, cut in stacks if value]
    rest, cuts = collections.Counter(), collections.Counter()
    for names, value, cut in stacks:
        for depth in range(OVERLAP, len(names) + 1):
            (cuts if cut else rest)[names[:depth]] += value
    anchors = {names[:OVERLAP] for names in cuts}
    places = collections.defaultdict(list)
    for path in {*rest, *cuts}:
        if len(path) > OVERLAP and path[-OVERLAP:] in anchors and path[:OVERLAP] != path[-OVERLAP:]:
            places[path[-OVERLAP:]].append(path)

    moved = {}  # anchor: the path that it has

    def path_of(path):
        return path if rest[path] else moved[path[:OVERLAP]] + path[OVERLAP:]

    def weight(path):
        return rest[path] or (cuts[path] if path[:OVERLAP] in moved else 0)

    for _ in range(16):
        found = {}
        for anchor in anchors - {*moved}:
            of = [path for path in places[anchor] if weight(path)]
            if of:
                found[anchor] = path_of(min(of, key=lambda p: (-weight(p), len(p), [name.encode() for name in p])))
        moved.update(found)

    out, joined = collections.Counter(), set()
    for names, value, cut in stacks:
        is_joined = cut and names[:OVERLAP] in moved
        out[moved[names[:OVERLAP]] + names[OVERLAP:] if is_joined else names] += value
        joined |= {names} if is_joined else set()
    return out, len(joined)


def smallest_kept(totals, max_nodes):
    """The max_nodes-th largest total; 0 keeps everything."""
    if max_nodes < 1 or len(totals) <= max_nodes:
        return 0
    return sorted(totals, reverse=True)[max_nodes - 1]


def cut(node, smallest):
    """A copy in which what is smaller, and what is really called "other", is summed into one child "other"."""
    out = Tree(node.name)
    out.self_value = node.self_value
    dropped = 0
    for child in node.children.values():
        if child.total < smallest or child.name == OTHER:
            dropped += child.total
        else:
            out.children[child.name] = cut(child, smallest)
    if dropped:
        out.children[OTHER] = Tree(OTHER)
        out.children[OTHER].self_value = dropped
    return out


def truncated(tree, max_nodes):
    return cut(tree, smallest_kept([n.total for n in tree.below()], max_nodes))


def in_order(children):
    """By the bytes of their names, "other" last."""
    return sorted(children, key=lambda c: (c.name == OTHER, c.name.encode()))


def levels_of(tree):
    """[[(x delta, total, self, name), ..] of a level, ..], as on the wire but with names instead of indexes."""
    levels = []

    def walk(node, depth, x):
        if depth == len(levels):
            levels.append([])
        levels[depth].append((x, node.total, node.self_value, node.name if depth else "total"))
        x += node.self_value
        for child in in_order(node.children.values()):
            walk(child, depth + 1, x)
            x += child.total

    walk(tree, 0, 0)
    out = []
    for level in levels:
        end, boxes = 0, []
        for x, total, own, name in level:
            boxes.append((x - end, total, own, name))
            end = x + total
        out.append(boxes)
    return out


def largest_self(tree):
    return max([n.self_value for n in tree.below()], default=0)


def tree_bytes(tree):
    """Pre-order, siblings from last to first; nothing at all for an empty tree."""
    if not tree.children:
        return b""
    out = bytearray()

    def walk(node):
        name = node.name.encode()
        out.extend(varint(len(name)) + name + varint(node.self_value) + varint(len(node.children)))
        for child in reversed(in_order(node.children.values())):
            walk(child)

    walk(tree)
    return bytes(out)


def cut_stacks(asked, max_nodes):
    """{names: value} of a pprof cut to max_nodes: of a stack stay the locations all of whose frames are large enough, from
    the root; one frame "other" stands for the rest."""
    tree = tree_of(asked.by_names())
    smallest = smallest_kept([n.total for n in tree.below()], max_nodes)
    out = collections.Counter()
    for _, value, locations, _ in asked.rows:
        node, kept = tree, ()
        if value == 0:
            continue
        for lines in reversed(locations):
            names = names_of([lines])
            for name in names:
                node = node.children[name]
            if node.total < smallest or OTHER in names:
                kept += (OTHER,)
                break
            kept += names
        out[kept] += value
    return dict(+out)


# ---- two sides ----


class Pair:
    """A node of a diff: self and total of the left and the right side."""

    def __init__(self, name):
        self.name, self.own, self.children = name, [0, 0], {}

    def total(self, side):
        return self.own[side] + sum(c.total(side) for c in self.children.values())

    def below(self):
        for child in self.children.values():
            yield child
            yield from child.below()


def pair_of(left, right):
    root = Pair("")
    for side, by_names in enumerate((left, right)):
        for names, value in by_names.items():
            node = root
            for name in names:
                node = node.children.setdefault(name, Pair(name))
            node.own[side] += value
    return root


def cut_pair(node, smallest):
    out = Pair(node.name)
    out.own = list(node.own)
    dropped = [0, 0]
    for child in node.children.values():
        if max(child.total(0), child.total(1)) < smallest or child.name == OTHER:
            dropped = [dropped[0] + child.total(0), dropped[1] + child.total(1)]
        else:
            out.children[child.name] = cut_pair(child, smallest)
    if any(dropped):
        out.children[OTHER] = Pair(OTHER)
        out.children[OTHER].own = dropped
    return out


def diff_of(left, right, max_nodes):
    """(levels of seven values a box, largest self): left x delta, total, self, the same of the right, name."""
    root = pair_of(left, right)
    root = cut_pair(root, smallest_kept([max(n.total(0), n.total(1)) for n in root.below()], max_nodes))
    levels = []

    def walk(node, depth, x):
        if depth == len(levels):
            levels.append([])
        levels[depth].append((list(x), node, node.name if depth else "total"))
        x = [x[0] + node.own[0], x[1] + node.own[1]]
        for child in in_order(node.children.values()):
            walk(child, depth + 1, x)
            x = [x[0] + child.total(0), x[1] + child.total(1)]

    walk(root, 0, [0, 0])
    out = []
    for level in levels:
        ends, boxes = [0, 0], []
        for x, node, name in level:
            box = []
            for side in (0, 1):
                box += [x[side] - ends[side], node.total(side), node.own[side]]
                ends[side] = x[side] + node.total(side)
            boxes.append(tuple(box) + (name,))
        out.append(boxes)
    return out, max([max(n.own) for n in root.below()], default=0)


# ---- over time ----


def group_labels(labels, group_by):
    return tuple(sorted((n, labels[n]) for n in set(group_by) if labels.get(n)))


def point_of(ts_ms, start_ms, end_ms, step_ms):
    """The t of the point that sums (t - step, t]; the first also takes start - step. None: behind the last whole step."""
    if ts_ms < start_ms - step_ms:
        return None
    t = start_ms + max(0, -((start_ms - ts_ms) // step_ms)) * step_ms
    return t if t <= end_ms else None


def series_of(taken, type_id, matchers, start_ms, end_ms, step_ms, group_by=(), average=False, stacks=None, limit=0):
    """[(labels, [(t, value)])] by sum descending, then labels."""
    asked = Asked(taken, type_id, matchers, start_ms - step_ms, end_ms, stacks)
    sums = collections.defaultdict(lambda: collections.defaultdict(list))
    by_profile = collections.Counter()
    for profile, value, _, _ in asked.rows:
        by_profile[id(profile)] += value
    for profile in {id(r[0]): r[0] for r in asked.rows}.values():
        t = point_of(profile.time_ns // 1_000_000, start_ms, end_ms, step_ms)
        # A profile has no point where all that is asked for is 0, as one whose stack traces it lacks.
        if t is not None and by_profile[id(profile)]:
            sums[group_labels(profile.labels, group_by)][t].append(by_profile[id(profile)])
    out = []
    for labels, points in sums.items():
        values = [(t, sum(v) / len(v) if average else float(sum(v))) for t, v in sorted(points.items())]
        out.append((labels, values))
    out.sort(key=lambda s: (-sum(v for _, v in s[1]), s[0]))
    return out[:limit] if limit else out


CELLS = 20


def heatmap_of(asked, start_ms, end_ms, step_ms, group_by=(), spans=False, limit=0):
    """[(labels, [(t, [lower ends], [counts])])]: a point is a profile, or a span of a stored profile."""
    points = collections.Counter()
    groups = {}
    for profile, value, _, attributes in asked.rows:
        labels = group_labels(profile.labels, group_by)
        if spans:
            if "span_id" not in attributes or not value:  # a span without a value of the type has no point
                continue
            key = (labels, id(profile), attributes["span_id"])
        else:
            key = (labels, profile.number)
        points[key] += value
        groups[key] = (labels, profile.time_ns // 1_000_000)
    if not points:
        return []
    low, high = min(points.values()), max(points.values())
    high = low + 1 if high == low else high
    size = (high - low) / CELLS
    y_min = [float(low + math.trunc(i * size)) for i in range(CELLS)]
    last = start_ms + -((start_ms - end_ms) // step_ms) * step_ms
    slots = collections.defaultdict(lambda: collections.defaultdict(lambda: [0] * CELLS))
    for key, value in points.items():
        labels, ts = groups[key]
        t = min(start_ms + max(0, -((start_ms - ts) // step_ms)) * step_ms, last)
        slots[labels][t][max(i for i in range(CELLS) if y_min[i] <= value)] += 1
    out = [(labels, [(t, y_min, counts) for t, counts in sorted(of.items())]) for labels, of in slots.items()]
    out.sort(key=lambda s: (-sum(sum(c) for _, _, c in s[1]), s[0]))
    return out[:limit] if limit else out


# ---- tables ----


def top_of(asked, frame):
    """{row: (self, total)}; `frame` names a line of a location, a sample counts once for each of its rows."""
    own, total = collections.Counter(), collections.Counter()
    for _, value, locations, _ in asked.rows:
        frames = [frame(line) for lines in locations for line in lines]
        own[frames[0] if frames else None] += value
        for row in set(frames):
            total[row] += value
    return {row: (own[row], total[row]) for row in total}


def sandwich_of(asked, function):
    """(self, total, callers, callees): trees that begin with the function; callers lead away from it."""
    callers, callees = Tree(), Tree()
    own = total = 0
    for names, value in asked.by_names().items():
        if function not in names:
            continue
        first = names.index(function)
        last = len(names) - 1 - names[::-1].index(function)
        total += value
        own += value if last == len(names) - 1 else 0
        callers.add(tuple(reversed(names[: first + 1])), value)
        callees.add(names[last:], value)
    return own, total, callers, callees


def totals_by_path(tree):
    """{path of names: total} of all nodes below."""
    out = {}

    def walk(node, path):
        for child in node.children.values():
            out[path + (child.name,)] = child.total
            walk(child, path + (child.name,))

    walk(tree, ())
    return out


def lines_of(asked, function):
    """{(file, line): (self, total)} of one function; a sample counts once for each line."""
    own, total = collections.Counter(), collections.Counter()
    for _, value, locations, _ in asked.rows:
        lines = [line for location in locations for line in location]
        of = {(line[1], line[2]) for line in lines if frame_name(line) == function}
        if lines and frame_name(lines[0]) == function:
            own[lines[0][1], lines[0][2]] += value
        for line in of:
            total[line] += value
    return {line: (own[line], total[line]) for line in total}


def label_stats_of(taken, type_id, matchers, label, start_ms, end_ms):
    """{value: (count, sum, mean, deviation, max, min)} over profiles; parts of a split one are one for each value."""
    asked = Asked(taken, type_id, matchers, start_ms, end_ms)
    values = collections.Counter()
    for profile, value, _, _ in asked.rows:
        values[profile.labels.get(label, ""), profile.number] += value
    by_value = collections.defaultdict(list)
    for (text, _), value in values.items():
        by_value[text].append(value)
    out = {}
    for text, numbers in by_value.items():
        mean = sum(numbers) / len(numbers)
        deviation = math.sqrt(sum((n - mean) ** 2 for n in numbers) / len(numbers))
        out[text] = (len(numbers), sum(numbers), mean, deviation, max(numbers), min(numbers))
    return out
