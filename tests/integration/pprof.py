"""pprof files in and out, by hand (wire.py): what the tests push and what they check answers against.

Numbers of profile.proto: Profile 1 sample_type, 2 sample, 3 mapping, 4 location, 5 function, 6 string_table, 9 time_nanos,
10 duration_nanos, 11 period_type, 12 period, 14 default_sample_type; Sample 1 location_id, 2 value, 3 label; Label 1 key,
2 str, 3 num; Mapping 1 id, 2 start, 3 limit, 5 filename, 6 build_id; Location 1 id, 2 mapping_id, 3 address, 4 line;
Line 1 function_id, 2 line; Function 1 id, 2 name, 3 system_name, 4 filename, 5 start_line.
"""

import collections
import gzip
import os
import shutil

from wire import decode, encode, ints, signed


def go_command():
    """A Go whose `go tool pprof` reads profiles, or None. Debian's has it compiled; newer ones compile it when it is first used,
    which takes a minute of processor time."""
    debian = "/usr/lib/go-1.19/bin/go"
    return debian if os.path.exists(debian) else shutil.which("go")


class Profile:
    """sample_types [(type, unit)], samples [(leaf-first locations, values, labels)]; a location is a tuple of lines
    ((function, file, line), ...) innermost first, and possibly a mapping file at its end; or ("0x..", mapping file)."""

    def __init__(self, sample_types, period_type=("cpu", "nanoseconds"), period=10_000_000, time_ns=0, duration_ns=0):
        self.sample_types = sample_types
        self.period_type = period_type
        self.period = period
        self.time_ns = time_ns
        self.duration_ns = duration_ns
        self.samples = []
        self.start_lines = {}  # (name, file) of a function -> its first line

    def add(self, stack, values, labels=None):
        """stack: root-first function names."""
        locations = [((name, name + ".c", 1),) for name in reversed(stack)]
        self.samples.append((locations, values, labels or {}))
        return self

    def totals(self):
        return [sum(s[1][k] for s in self.samples) for k in range(len(self.sample_types))]

    @staticmethod
    def frames(lines):
        return [line for line in lines if not isinstance(line, str)]

    def encode(self, compress=True):
        strings = {"": 0}

        def string(text):
            return strings.setdefault(text, len(strings))

        functions, locations, mappings = {}, {}, {}
        out = []
        for kind, unit in self.sample_types:
            out.append((1, [(1, string(kind)), (2, string(unit))]))
        for stack, values, labels in self.samples:
            ids = []
            for lines in stack:
                if isinstance(lines[0], str):
                    mappings.setdefault(lines[1], len(mappings) + 1)
                    ids.append(locations.setdefault(lines, len(locations) + 1))
                    continue
                if isinstance(lines[-1], str):
                    mappings.setdefault(lines[-1], len(mappings) + 1)
                for name, file, _ in self.frames(lines):
                    functions.setdefault((name, file), len(functions) + 1)
                ids.append(locations.setdefault(lines, len(locations) + 1))
            sample = [(1, ("packed", ids)), (2, ("packed", values))]
            for key, value in labels.items():
                if isinstance(value, int):
                    sample.append((3, [(1, string(key)), (3, value)]))
                else:
                    sample.append((3, [(1, string(key)), (2, string(value))]))
            out.append((2, sample))
        for file, number in mappings.items():
            start = number << 32
            out.append((3, [(1, number), (2, start), (3, start + 0x100000), (5, string(file)), (6, string("id of " + file))]))
        for lines, number in locations.items():
            body = [(1, number)]
            if isinstance(lines[0], str):
                out.append((4, body + [(2, mappings[lines[1]]), (3, int(lines[0], 16))]))
                continue
            if isinstance(lines[-1], str):
                body.append((2, mappings[lines[-1]]))
            for name, file, line in self.frames(lines):
                body.append((4, [(1, functions[(name, file)]), (2, line)]))
            out.append((4, body))
        for (name, file), number in functions.items():
            start = self.start_lines.get((name, file), 0)
            out.append((5, [(1, number), (2, string(name)), (3, string(name)), (4, string(file)), (5, start)]))
        out.append((9, self.time_ns))
        out.append((10, self.duration_ns))
        if self.period_type:
            out.append((11, [(1, string(self.period_type[0])), (2, string(self.period_type[1]))]))
            out.append((12, self.period))
        table = [(6, text) for text in strings]
        data = encode(out + table)
        return gzip.compress(data, 1) if compress else data


def inflate(data):
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


class Decoded:
    """A pprof message as tables; stacks resolved to names."""

    def __init__(self, data):
        f = decode(inflate(data))
        self._kept = None
        self.strings = [s.decode("utf-8", "replace") for s in f.get(6, [])]

        def one(fields, number, default=0):
            return signed(fields[number][-1]) if number in fields else default

        def text(index):
            return self.strings[index] if self.strings else ""

        self.sample_types = []
        for raw in f.get(1, []):
            v = decode(raw)
            self.sample_types.append((text(one(v, 1)), text(one(v, 2))))
        functions = {}
        for raw in f.get(5, []):
            v = decode(raw)
            functions[one(v, 1)] = (text(one(v, 2)), text(one(v, 4)), text(one(v, 3)), one(v, 5))
        mappings, ranges = {}, {}
        for raw in f.get(3, []):
            v = decode(raw)
            mappings[one(v, 1)] = (text(one(v, 5)), text(one(v, 6)), one(v, 7), one(v, 8), one(v, 9), one(v, 10))
            ranges[one(v, 1)] = (one(v, 2), one(v, 3), one(v, 4))
        nothing = ("",)
        self.locations = {}
        self.exact = {}
        for raw in f.get(4, []):
            v = decode(raw)
            mapping = mappings.get(one(v, 2), nothing)
            lines, exact = [], []
            for line in v.get(4, []):
                lv = decode(line)
                name, file = functions[one(lv, 1)][:2]
                lines.append((name, file, one(lv, 2)))
                exact.append(functions[one(lv, 1)] + (one(lv, 2), mapping))
            if not lines:
                # Where code with lines was loaded differs from process to process and says nothing about its stacks.
                # Its offset in the file, where the mapping says where that lies.
                address = one(v, 3) & (1 << 64) - 1
                start, limit, offset = (n & (1 << 64) - 1 for n in ranges.get(one(v, 2), (0, 0, 0)))
                at = address - start + offset if start <= address < limit else address
                lines.append(("0x%x" % at, mapping[0], None))
                exact.append((lines[0][0], mapping + ranges.get(one(v, 2), ())))
            self.locations[one(v, 1)] = lines
            self.exact[id(lines)] = tuple(exact)
        self.samples = []
        for raw in f.get(2, []):
            v = decode(raw)
            stack = [self.locations.get(i) for i in ints(v.get(1, []))]
            labels = {}
            for label in v.get(3, []):
                lv = decode(label)
                labels[text(one(lv, 1))] = text(one(lv, 2)) if one(lv, 2) else one(lv, 3)
            self.samples.append((stack, ints(v.get(2, [])), labels))
        self.time_ns = one(f, 9)
        self.duration_ns = one(f, 10)
        self.period = one(f, 12)
        self.period_type = None
        if 11 in f:
            v = decode(f[11][-1])
            self.period_type = (text(one(v, 1)), text(one(v, 2)))
        self.default_type = text(one(f, 14))

    def kept(self):
        """Samples that survive normalisation: no negative value, not all zero, no dangling location."""
        if self._kept is None:
            self._kept = [s for s in self.samples if None not in s[0] and min(s[1]) >= 0 and any(s[1])]
        return self._kept

    def totals(self):
        return [sum(s[1][k] for s in self.kept()) for k in range(len(self.sample_types))]

    def by_function(self, k, by_line=False, frame=lambda line: line[0]):
        """{frame: (self, total)} of value k over kept samples; recursion counts once. A frame is a name, or the line."""
        flat, cum = collections.Counter(), collections.Counter()
        for stack, values, _ in self.kept():
            frames = [line if by_line else frame(line) for lines in stack for line in lines]
            if frames and values[k]:
                flat[frames[0]] += values[k]
                for name in set(frames):
                    cum[name] += values[k]
        return {name: (flat[name], cum[name]) for name in cum}

    def by_stack(self, k, exact=False):
        """{leaf-first tuple of frames: value}; exact: of locations, with all that a function and its mapping say."""
        out = collections.Counter()
        for stack, values, _ in self.kept():
            if values[k] and exact:
                out[tuple(self.exact[id(lines)] for lines in stack)] += values[k]
            elif values[k]:
                out[tuple(line for lines in stack for line in lines)] += values[k]
        return dict(out)
