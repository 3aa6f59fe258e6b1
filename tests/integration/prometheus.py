"""A strict reader of the Prometheus text format 0.0.4: what a scraper would stumble over is an error here."""

import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(r"(%s)(?:\{((?:%s,)*%s)?\})? (\S+)" % (NAME, LABEL, LABEL))
PAIR = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
KINDS = ("counter", "gauge", "histogram", "summary", "untyped")


def unescape(text):
    return re.sub(r'\\(["\\n])', lambda m: "\n" if m.group(1) == "n" else m.group(1), text)


def family_of(name, kinds):
    for suffix in ("_bucket", "_sum", "_count"):
        base = name[: -len(suffix)]
        if name.endswith(suffix) and kinds.get(base) == "histogram":
            return base
    return name


def parse(text):
    """{(name, ((label, value), ...)): float}. AssertionError for anything that is not the format."""
    assert text.endswith("\n"), "the last line has no line feed"
    kinds, helps, samples, closed, last = {}, set(), {}, set(), None
    for number, line in enumerate(text.split("\n")[:-1], 1):
        where = "line %d: %r" % (number, line)
        if line.startswith("#"):
            words = line.split(" ", 3)
            assert len(words) == 4 and words[1] in ("HELP", "TYPE") and re.fullmatch(NAME, words[2]), where
            family = words[2]
            if words[1] == "HELP":
                assert family not in helps, where
                helps.add(family)
            else:
                assert family not in kinds and words[3] in KINDS, where
                kinds[family] = words[3]
        else:
            match = SAMPLE.fullmatch(line)
            assert match, where
            name, pairs, value = match.groups()
            labels = tuple(sorted((k, unescape(v)) for k, v in PAIR.findall(pairs or "")))
            assert len(dict(labels)) == len(labels), where
            family = family_of(name, kinds)
            assert family in kinds and family in helps, where
            assert (name, labels) not in samples, where
            samples[(name, labels)] = float(value)
        if family != last:
            assert family not in closed, "%s is not in one piece, %s" % (family, where)
            closed.add(last)
            last = family
    check_histograms(kinds, samples)
    for (name, _), value in samples.items():
        assert kinds[family_of(name, kinds)] != "counter" or value >= 0, name
    return samples


def check_histograms(kinds, samples):
    series = {}
    for (name, labels), value in samples.items():
        family = family_of(name, kinds)
        if kinds[family] == "histogram" and name == family + "_bucket":
            rest = tuple(pair for pair in labels if pair[0] != "le")
            series.setdefault((family, rest), []).append((float(dict(labels)["le"]), value))
    for (family, labels), buckets in series.items():
        assert [b for b, _ in buckets] == sorted(b for b, _ in buckets), family
        assert [n for _, n in buckets] == sorted(n for _, n in buckets), "%s is not cumulative" % family
        assert buckets[-1][0] == float("inf"), family
        assert samples[(family + "_count", labels)] == buckets[-1][1], family
        assert (family + "_sum", labels) in samples, family


def value(samples, name, **labels):
    return samples.get((name, tuple(sorted(labels.items()))), 0.0)


UNITS = {
    "nanoseconds", "microseconds", "milliseconds", "minutes", "hours", "days", "weeks", "kilobytes", "megabytes",
    "gigabytes", "kibibytes", "mebibytes", "bits", "percent", "percentage", "celsius", "millimeters", "kilograms",
}
ABBREVIATIONS = {"s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d"}


def lint(text):
    """What `promtool check metrics` complains about: names, units and suffixes. A list of sentences."""
    found = []
    types = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M)
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.M))
    for name, kind in types:
        parts = name.split("_")
        rules = {
            "has no help text": not helps.get(name),
            "is a counter without the suffix _total": kind == "counter" and parts[-1] != "total",
            "has the suffix _total but is no counter": kind != "counter" and parts[-1] == "total",
            "has a suffix of histograms": parts[-1] in ("bucket", "count", "sum"),
            "does not use a base unit": UNITS & set(parts),
            "abbreviates a unit": ABBREVIATIONS & set(parts),
            "names its type": {"counter", "gauge", "histogram", "summary"} & set(parts),
            "has a colon, which is for recording rules": ":" in name,
            "is not in snake_case": name != name.lower(),
        }
        found += [name + " " + rule for rule, broken in rules.items() if broken]
    return found
