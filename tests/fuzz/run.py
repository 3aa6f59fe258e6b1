#!/usr/bin/env python3
"""Run fuzz targets for a time each, and note the runs in ledger.tsv.

    run.py [--seconds N] [--jobs N] [TARGET...]

Inputs that reach new code are kept in build-fuzz/found/TARGET, so that the next run starts from them; findings are
written to build-fuzz/findings/TARGET. The seeds in corpus/TARGET are not changed.
"""

import argparse
import concurrent.futures
import datetime
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build-fuzz"
LEDGER = HERE / "ledger.tsv"
HEADER = "target\tlast run\tseconds\texecutions\tedges\tpeak MiB\tfindings\n"

# A unit that needs more is a finding, as is one of more than a second.
UNIT_SECONDS = 10
SLOW_SECONDS = 1
ALLOCATION_MIB = 512
MEMORY_MIB = 2048


def cpu_seconds(command):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, used = os.wait4(process.pid, 0)
    return used.ru_utime + used.ru_stime


def fuzz(target, seconds):
    """The line of the ledger, and the paths of findings."""
    found, findings = BUILD / "found" / target, BUILD / "findings" / target
    for directory in (found, findings):
        directory.mkdir(parents=True, exist_ok=True)
    for old in findings.iterdir():
        old.unlink()
    dictionary = HERE / "dictionaries" / (target + ".dict")
    log = BUILD / "findings" / (target + ".log")
    command = [
        BUILD / "bin" / ("fuzz_" + target),
        "-max_total_time=%d" % seconds,
        "-timeout=%d" % UNIT_SECONDS,
        "-report_slow_units=%d" % SLOW_SECONDS,
        "-malloc_limit_mb=%d" % ALLOCATION_MIB,
        "-rss_limit_mb=%d" % MEMORY_MIB,
        "-print_final_stats=1",
        "-artifact_prefix=%s/" % findings,
        *(["-dict=%s" % dictionary] if dictionary.exists() else []),
        found,
        HERE / "corpus" / target,
    ]
    with open(log, "wb") as file:
        subprocess.run(command, stdout=file, stderr=file, check=False)
    text = log.read_text(errors="replace")

    def last(pattern):
        values = re.findall(pattern, text)
        return values[-1] if values else "0"

    for path in findings.glob("slow-unit-*"):
        if cpu_seconds([BUILD / "bin" / ("fuzz_" + target), path]) < SLOW_SECONDS:
            path.unlink()  # it waited for the processor
    paths = sorted(findings.iterdir())
    fields = (
        target,
        datetime.date.today().isoformat(),
        seconds,
        last(r"stat::number_of_executed_units: (\d+)"),
        last(r"cov: (\d+)"),
        last(r"stat::peak_rss_mb: *(\d+)"),
        len(paths),
    )
    return "\t".join(str(field) for field in fields) + "\n", paths


def note(line):
    """Replace the line of a target."""
    lines = LEDGER.read_text().splitlines(keepends=True)[1:] if LEDGER.exists() else []
    target = line.split("\t")[0]
    lines = sorted([old for old in lines if old.split("\t")[0] != target] + [line])
    LEDGER.write_text(HEADER + "".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="of each target [60]")
    parser.add_argument("--jobs", type=int, default=1, help="targets that run at a time [1]")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="[all]")
    options = parser.parse_args()

    known = sorted(path.stem[len("fuzz_"):] for path in HERE.glob("fuzz_*.c"))
    for target in options.targets:
        if target not in known:
            parser.error("there is no target %r; targets: %s" % (target, " ".join(known)))

    n_findings = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(fuzz, target, options.seconds) for target in options.targets or known]
        for run in concurrent.futures.as_completed(runs):
            line, paths = run.result()
            note(line)
            print(line.rstrip().replace("\t", "  "), *("\n    " + str(path) for path in paths), flush=True)
            n_findings += len(paths)
    return 1 if n_findings > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
