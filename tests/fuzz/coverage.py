#!/usr/bin/env python3
"""Line coverage of each parser by the corpora of the fuzz targets.

    coverage.py [--missing] [FILE...]    per file: lines, covered lines; with --missing the lines that no input reaches
    coverage.py --record                 write the result to coverage.tsv
    coverage.py --check                  fail if a parser has less than coverage.tsv says

Replays every corpus with the programs of build-coverage, and counts by gcov. families.tsv lists the parsers.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

import run

ROOT = run.HERE.parents[1]
BUILD = ROOT / "build-coverage"
RECORD = run.HERE / "coverage.tsv"
HEADER = "file\tlines\tpercent\n"
SLACK = 0.5  # percent: a new line without an input in a small file


def replay(target):
    corpus = run.CORPUS / target
    done = subprocess.run([BUILD / "bin" / ("replay_" + target), corpus], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit("coverage: the corpus of %s fails:\n%s" % (target, done.stderr[-2000:]))


def count_lines(note_file):
    """Executions of the lines of one object's sources, by path in the tree and line."""
    output = subprocess.check_output(["gcov", "--json-format", "--stdout", note_file], stderr=subprocess.DEVNULL)
    counts = {}
    for file in json.loads(output)["files"] if output else []:
        path = pathlib.Path(os.path.normpath(BUILD / file["file"]))
        if path.is_relative_to(ROOT):
            lines = counts.setdefault(str(path.relative_to(ROOT)), {})
            for line in file["lines"]:
                number = line["line_number"]
                lines[number] = lines.get(number, 0) + line["count"]
    return counts


def measure(pool):
    """Executions by line, by file, of all parsers."""
    sources = [path for row in run.rows(run.FAMILIES) for glob in row["sources"].split() for path in ROOT.glob(glob)]
    wanted = {str(path.relative_to(ROOT)) for path in sources}
    for old in BUILD.rglob("*.gcda"):
        old.unlink()
    list(pool.map(replay, [name for names in run.targets_of_families().values() for name in names]))

    # An object is named after its source; gcov reads the counts that lie beside its notes.
    names = {path.name for path in sources}
    notes = [path for path in BUILD.rglob("*.gcno") if path.name[: -len(".gcno")] in names]
    counts = {}
    for one in pool.map(count_lines, notes):
        for path in wanted.intersection(one):
            counts[path] = one[path]
    if lost := wanted.difference(counts):
        sys.exit("coverage: no object of build-coverage was made of %s" % " ".join(sorted(lost)))
    return counts


def percent(lines):
    return 100 * sum(count > 0 for count in lines.values()) / len(lines)


def print_missing(path, lines):
    text = (ROOT / path).read_text().splitlines()
    for number in sorted(lines):
        if lines[number] == 0:
            print("%6d  %s" % (number, text[number - 1]))


def check(counts):
    recorded = {row["file"]: float(row["percent"]) for row in run.rows(RECORD)}
    failures = 0
    for path, lines in sorted(counts.items()):
        if path not in recorded:
            print("coverage: %s is not in coverage.tsv: ./dev coverage --record" % path)
            failures += 1
        elif percent(lines) < recorded[path] - SLACK:
            print("coverage: %s fell from %.1f %% to %.1f %%" % (path, recorded[path], percent(lines)))
            failures += 1
    return failures


def main():
    parser = argparse.ArgumentParser(
        prog="./dev coverage", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--missing", action="store_true", help="print the lines that no input reaches")
    parser.add_argument("--record", action="store_true", help="write coverage.tsv")
    parser.add_argument("--check", action="store_true", help="compare with coverage.tsv")
    parser.add_argument("files", nargs="*", metavar="FILE", help="a part of a path [all]")
    options = parser.parse_args()

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = measure(pool)
    for path, lines in sorted(counts.items()):
        if not options.files or any(part in path for part in options.files):
            print("%6.1f %%  %5d  %s" % (percent(lines), len(lines), path))
            if options.missing:
                print_missing(path, lines)
    total = {(path, number): count for path, lines in counts.items() for number, count in lines.items()}
    print("%6.1f %%  %5d  all parsers" % (percent(total), len(total)))

    if options.record:
        rows = ["%s\t%d\t%.1f\n" % (path, len(lines), percent(lines)) for path, lines in sorted(counts.items())]
        RECORD.write_text(HEADER + "".join(rows))
    return 1 if options.check and check(counts) > 0 else 0


if __name__ == "__main__":
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)
