"""The questions of querier.v1 and what their answers say, decoded by hand: field numbers from the public interface."""

import struct

import wire

QUERIER = "querier.v1.QuerierService/"
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
SAMPLES = "process_cpu:samples:count:cpu:nanoseconds"

FLAMEGRAPH, TREE, DOT, PPROF = 1, 2, 3, 4
SUM, AVERAGE = 0, 1


class Node:
    """A node of a flame graph: children in the order of the answer."""

    def __init__(self, name, start, total, self_value):
        self.name, self.start, self.total, self.self_value = name, start, total, self_value
        self.children = []

    def plain(self):
        """(name, self, total, [children]) for comparisons."""
        return (self.name, self.self_value, self.total, [c.plain() for c in self.children])


class FlameGraph:
    """FlameGraph message: 1 names, 2 levels {1 packed values}, 3 total, 4 max_self."""

    def __init__(self, data):
        f = wire.decode(data)
        self.names = wire.texts(f.get(1, []))
        self.levels = [wire.ints(wire.decode(level).get(1, [])) for level in f.get(2, [])]
        self.total = wire.signed(f.get(3, [0])[-1])
        self.max_self = wire.signed(f.get(4, [0])[-1])
        self.root = self._build()

    def _build(self):
        """Offsets are deltas to the end of the node before; a child lies within its parent, behind the parent's self."""
        parents = []
        root = None
        for depth, values in enumerate(self.levels):
            assert len(values) % 4 == 0, "a level of %d numbers" % len(values)
            nodes, end, holder = [], 0, 0
            for k in range(0, len(values), 4):
                delta, total, self_value, name = values[k : k + 4]
                node = Node(self.names[name], end + delta, total, self_value)
                end = node.start + node.total
                nodes.append(node)
                if depth == 0:
                    assert root is None, "several roots"
                    root = node
                    continue
                # Both levels go from left to right.
                while parents[holder].start + parents[holder].total < end:
                    holder += 1
                parent = parents[holder]
                expected = parent.start + parent.self_value
                if parent.children:
                    expected = parent.children[-1].start + parent.children[-1].total
                assert node.start == expected, "%s does not stand at %d within %s" % (node.name, expected, parent.name)
                parent.children.append(node)
            parents = nodes
        return root

    def functions(self):
        """{name: (self, total)}; a function below itself counts once in total."""
        out = {}

        def walk(node, above):
            own, total = out.get(node.name, (0, 0))
            out[node.name] = (own + node.self_value, total + (0 if node.name in above else node.total))
            for child in node.children:
                walk(child, above | {node.name})

        for child in self.root.children:
            walk(child, frozenset())
        return out

    def count(self):
        """Nodes without the root."""
        return sum(len(level) // 4 for level in self.levels[1:])


def read_tree(data):
    """The TREE bytes as a Node: depth-first, uvarint name length, name, uvarint self, uvarint number of children."""
    if not data:
        return None
    at = 0

    def number():
        nonlocal at
        value, at = wire.read_varint(data, at)
        return value

    def node():
        nonlocal at
        size = number()
        name = data[at : at + size].decode()
        at += size
        out = Node(name, 0, 0, number())
        out.children = [node() for _ in range(number())]
        out.total = out.self_value + sum(c.total for c in out.children)
        return out

    root = node()
    assert at == len(data), "%d bytes behind the tree" % (len(data) - at)
    return root


def read_labels(pairs):
    out = []
    for pair in pairs:
        f = wire.decode(pair)
        out.append((f.get(1, [b""])[-1].decode(), f.get(2, [b""])[-1].decode()))
    return tuple(out)


def read_exemplar(data):
    """(timestamp, profile id, span id, value, labels, trace id)"""
    f = wire.decode(data)
    text = {n: f.get(n, [b""])[-1].decode() for n in (2, 3, 6)}
    return (wire.signed(f.get(1, [0])[-1]), text[2], text[3], wire.signed(f.get(4, [0])[-1]), read_labels(f.get(5, [])), text[6])


def read_series(answer):
    """SelectSeriesResponse: [(labels, [(timestamp ms, value)])] in the order of the answer."""
    out = []
    for raw in answer.get(1, []):
        f = wire.decode(raw)
        points = []
        for point in f.get(2, []):
            p = wire.decode(point)
            points.append((wire.signed(p.get(2, [0])[-1]), p.get(1, [0.0])[-1]))
        out.append((read_labels(f.get(1, [])), points))
    return out


def seven(data):
    """FlameGraphDiff: ([[(left delta, total, self, right delta, total, self, name)]], total, largest self, left, right)."""
    f = wire.decode(data)
    names = wire.texts(f.get(1, []))
    levels = []
    for level in f.get(2, []):
        v = wire.ints(wire.decode(level).get(1, []))
        levels.append([tuple(v[k : k + 6]) + (names[v[k + 6]],) for k in range(0, len(v), 7)])
    return (levels,) + tuple(wire.signed(f.get(n, [0])[-1]) for n in (3, 4, 5, 6))


class Questions:
    """Mixed into Server; `metadata` is [(key, value)]."""

    def profile_types(self, start=0, end=0, metadata=None):
        """[(ID, name, sample type, sample unit, period type, period unit)]"""
        answer = self.call(QUERIER + "ProfileTypes", [(1, start), (2, end)], metadata)
        out = []
        for raw in answer.get(1, []):
            f = wire.decode(raw)
            out.append(tuple(f.get(n, [b""])[-1].decode() for n in (1, 2, 4, 5, 6, 7)))
        return out

    def label_names(self, start, end, matchers=(), metadata=None):
        fields = [(1, m) for m in matchers] + [(2, start), (3, end)]
        return wire.texts(self.call(QUERIER + "LabelNames", fields, metadata).get(1, []))

    def label_values(self, name, start, end, matchers=(), metadata=None):
        fields = [(1, name)] + [(2, m) for m in matchers] + [(3, start), (4, end)]
        return wire.texts(self.call(QUERIER + "LabelValues", fields, metadata).get(1, []))

    def series(self, start, end, matchers=(), names=(), metadata=None):
        fields = [(1, m) for m in matchers] + [(2, n) for n in names] + [(3, start), (4, end)]
        answer = self.call(QUERIER + "Series", fields, metadata)
        return [read_labels(wire.decode(raw).get(1, [])) for raw in answer.get(2, [])]

    def stacktraces(
        self, profile_type, selector, start, end, max_nodes=None, format=0, call_site=(), metadata=None,
        profiles=(), traces=(), spans=(),
    ):
        """The decoded SelectMergeStacktracesResponse: 1 flame graph, 2 tree, 5 pprof."""
        fields = [(1, profile_type), (2, selector), (3, start), (4, end)]
        if max_nodes is not None:
            fields.append((5, max_nodes))
        if format:
            fields.append((6, format))
        if call_site:
            fields.append((7, [(1, [(1, name)]) for name in call_site]))
        fields += [(8, v) for v in profiles] + [(10, v) for v in traces] + [(11, v) for v in spans]
        return self.call(QUERIER + "SelectMergeStacktraces", fields, metadata)

    def flamegraph(self, *arguments, **options):
        return FlameGraph(self.stacktraces(*arguments, **options)[1][-1])

    def tree(self, *arguments, **options):
        answer = self.stacktraces(*arguments, format=TREE, **options)
        return read_tree(answer.get(2, [b""])[-1])

    def heatmap(self, profile_type, selector, start, end, step, group_by=(), spans=False, limit=None, exemplars=False):
        """[(labels, [(timestamp, lower ends, counts, exemplars)])]"""
        kind = 2 if spans else 1
        fields = [(1, profile_type), (2, selector), (3, start), (4, end), (5, float(step))] + [(6, name) for name in group_by]
        fields += [(7, kind)] + ([(8, kind + 1)] if exemplars else []) + ([(9, limit)] if limit else [])
        out = []
        for raw in self.call(QUERIER + "SelectHeatmap", fields).get(1, []):
            f = wire.decode(raw)
            slots = []
            for slot in f.get(2, []):
                s = wire.decode(slot)
                y_min = [v for part in s.get(2, []) for v in struct.unpack("<%dd" % (len(part) // 8), part)]
                slots.append((wire.signed(s.get(1, [0])[-1]), y_min, wire.ints(s.get(3, [])), [read_exemplar(e) for e in s.get(4, [])]))
            out.append((read_labels(f.get(1, [])), slots))
        return out

    def diff(self, left, right, max_nodes=(None, None)):
        """left, right: (type, selector, start, end)."""
        sides = []
        for number, side, nodes in zip((1, 2), (left, right), max_nodes):
            sides.append((number, list(enumerate(side, 1)) + ([] if nodes is None else [(5, nodes)])))
        return seven(self.call(QUERIER + "Diff", sides)[1][-1])

    def select_series(
        self, profile_type, selector, start, end, step, group_by=(), aggregation=None, limit=None, call_site=(),
        metadata=None,
    ):
        fields = [(1, profile_type), (2, selector), (3, start), (4, end)]
        fields += [(5, name) for name in group_by] + [(6, float(step))]
        if aggregation is not None:
            fields.append((7, aggregation))
        if call_site:
            fields.append((8, [(1, [(1, name)]) for name in call_site]))
        if limit is not None:
            fields.append((9, limit))
        return read_series(self.call(QUERIER + "SelectSeries", fields, metadata))
