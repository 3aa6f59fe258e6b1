#!/usr/bin/env python3
"""Run fuzz targets, append each run to ledger.tsv, and merge new coverage into the corpora.

    run.py [--for 10m] [--jobs N] [--fast] [--merge] [--by WHO] [TARGET...]
    run.py --ledger

Inputs that reach new code are kept in build-fuzz/found/TARGET, so that the next run starts from them; findings are
written to build-fuzz/findings/TARGET. Only --merge changes the seeds in corpus/TARGET.

--fast: programs without sanitizers, which mostly run inputs of at most 256 bytes, or of the size of half of the seeds.
Then the programs with sanitizers run each input that was kept.
"""

import argparse
import collections
import concurrent.futures
import configparser
import datetime
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build-fuzz"
FAST = HERE.parents[1] / "build-fuzz-fast"
CORPUS = HERE / "corpus"
LEDGER = HERE / "ledger.tsv"
FAMILIES = HERE / "families.tsv"

MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # on a disk, files took most of the time of small targets
UNITS = {"s": 1, "m": 60, "h": 3600}
MERGED_BYTES = 4096  # larger inputs stay out of the repository

SMALL_BYTES = 1024  # most branches need no larger inputs, and small ones run more often
SMALLEST_BYTES = 256
# libFuzzer's own accounts took half of the time of small inputs. Without them, an input is kept for new edges only: neither
# for another count of an edge, nor because it is smaller than another.
FEW_ACCOUNTS = ["-use_counters=0", "-entropic=0", "-reduce_inputs=0", "-reload=0"]


def duration(text):
    """Seconds of 90s, 10m or 8h."""
    match = re.fullmatch(r"([1-9][0-9]{0,6})([smh])", text)
    if not match:
        raise argparse.ArgumentTypeError("%r is not a duration such as 90s, 10m or 8h" % text)
    return int(match.group(1)) * UNITS[match.group(2)]


def rows(path):
    """Rows of a table as dicts by the names of its head."""
    lines = [line.rstrip("\n").split("\t") for line in path.read_text().splitlines() if not line.startswith("#")]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def targets_of_families():
    """Names of targets, by family."""
    families = collections.defaultdict(list)
    for row in rows(FAMILIES):
        families[row["family"]] += row["targets"].split()
    return families


def libfuzzer_options():
    """fuzz.options as arguments, and the seconds of processor time from which an input is slow."""
    parser = configparser.ConfigParser()
    parser.read(HERE / "fuzz.options")
    options = parser["libfuzzer"]
    return ["-%s=%s" % item for item in options.items()], options.getint("report_slow_units")


def program(target, build=BUILD):
    return build / "bin" / ("fuzz_" + target)


def directory_of(kind, target):
    path = BUILD / kind / target
    path.mkdir(parents=True, exist_ok=True)
    return path


def parts_of_run(target, fast):
    """For each part of a run: its part of the time that is left, and options of libFuzzer."""
    small, all_sizes = (1 / 2, ["-max_len=%d" % SMALL_BYTES]), (1, [])
    if not fast:
        return [small, all_sizes]
    median = statistics.median_high(path.stat().st_size for path in (CORPUS / target).iterdir())
    return [(3 / 4, ["-max_len=%d" % max(SMALLEST_BYTES, median), *FEW_ACCOUNTS]), small, all_sizes]


def cpu_seconds(command):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, used = os.wait4(process.pid, 0)
    return used.ru_utime + used.ru_stime


def source_commit():
    """The short id of HEAD, with + if the sources differ from it."""
    git = ["git", "-C", str(HERE)]
    commit = subprocess.check_output([*git, "rev-parse", "--short=8", "HEAD"], text=True).strip()
    changed = subprocess.check_output(
        [*git, "status", "--porcelain", "--", ":/server", ":/include", ":/clients", "fuzz_*.c"], text=True
    )
    return commit + ("+" if changed else "")


def fuzz(target, seconds, fast):
    """Run one target; returns its values of the ledger and the paths of findings."""
    found, findings = directory_of("found", target), directory_of("findings", target)
    for old in findings.iterdir():
        old.unlink()
    dictionary = HERE / "dictionaries" / (target + ".dict")
    log = BUILD / "findings" / (target + ".log")
    options, slow_seconds = libfuzzer_options()
    arguments = [
        *options,
        "-print_final_stats=1",
        "-artifact_prefix=%s/" % findings,
        *(["-dict=%s" % dictionary] if dictionary.exists() else []),
    ]

    environment = {**os.environ, **({"TMPDIR": MEMORY} if MEMORY else {})}
    begun = time.monotonic()
    with open(log, "wb") as file, tempfile.TemporaryDirectory(prefix="fuzz-", dir=MEMORY) as new:

        def run(build, *more):
            command = [program(target, build), *arguments, *more, new, found, CORPUS / target]
            return subprocess.run(command, env=environment, stdout=file, stderr=file, check=False).returncode == 0

        passed = True
        for part, limits in parts_of_run(target, fast):
            seconds_left = seconds - (time.monotonic() - begun)
            time_limit = "-max_total_time=%d" % max(1, round(part * seconds_left))
            passed = passed and run(FAST if fast else BUILD, *limits, time_limit)
        if fast and passed:
            run(BUILD, "-runs=0")
        shutil.copytree(new, found, dirs_exist_ok=True)
    text = log.read_text(errors="replace")

    def numbers(pattern):
        return [int(number) for number in re.findall(pattern, text)] or [0]

    # A slow input on a busy machine may only have waited for the processor.
    for path in [*findings.glob("slow-unit-*"), *findings.glob("timeout-*")]:
        if cpu_seconds([program(target), path]) < slow_seconds:
            path.unlink()
    paths = sorted(findings.iterdir())
    values = {
        "target": target,
        "seconds": str(round(time.monotonic() - begun)),
        "executions": str(sum(numbers(r"stat::number_of_executed_units: (\d+)"))),
        "edges": str(max(numbers(r"cov: (\d+)"))),
        "peak MiB": str(max(numbers(r"stat::peak_rss_mb: *(\d+)"))),
        "findings": str(len(paths)),
        "sanitizers": "no" if fast else "yes",
    }
    return values, paths


def note(values):
    """Append a run to the ledger, whose head names the columns."""
    head = LEDGER.read_text().splitlines()[0].split("\t")
    with open(LEDGER, "a", encoding="utf-8") as ledger:
        ledger.write("\t".join(values[name] for name in head) + "\n")


def merge(target):
    """Add the fewest small inputs that cover edges which the corpus does not; returns their number."""
    corpus, small = CORPUS / target, directory_of("small", target)
    for path in directory_of("found", target).iterdir():
        if path.stat().st_size <= MERGED_BYTES:
            shutil.copy(path, small)
    before = set(corpus.iterdir())
    options, _ = libfuzzer_options()
    # Counters of edges would keep an input for each number of rounds of a loop.
    command = [program(target), *options, "-set_cover_merge=1", "-use_counters=0", corpus, small]
    log = BUILD / "findings" / (target + ".merge.log")
    with open(log, "wb") as file:
        subprocess.run(command, stdout=file, stderr=file, check=True)
    shutil.rmtree(small)
    return len(set(corpus.iterdir()) - before)


def print_ledger():
    """Sums over the runs, by family."""
    runs = rows(LEDGER)
    print("%-12s %16s %16s %8s %9s  %s" % ("family", "executions", "with sanitizers", "hours", "findings", "targets"))
    for family, targets in targets_of_families().items():
        own = [run for run in runs if run["target"] in targets]
        total = {name: sum(int(run[name]) for run in own) for name in ("executions", "seconds", "findings")}
        checked = sum(int(run["executions"]) for run in own if run.get("sanitizers") != "no")
        print(
            "%-12s %16s %16s %8.2f %9d  %s"
            % (
                family,
                f"{total['executions']:,}",
                f"{checked:,}",
                total["seconds"] / 3600,
                total["findings"],
                " ".join(targets),
            )
        )


def main():
    parser = argparse.ArgumentParser(
        prog="./dev fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--for", dest="seconds", type=duration, default=60, help="of each target [60s]")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="targets that run at a time [processors]")
    parser.add_argument("--fast", action="store_true", help="without sanitizers, but for inputs that reach new code")
    parser.add_argument("--merge", action="store_true", help="then add small inputs with new coverage to the corpora")
    parser.add_argument("--by", default="./dev fuzz", help="who or what ran them, for the ledger [./dev fuzz]")
    parser.add_argument("--ledger", action="store_true", help="only print the sums of the ledger by family")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="[all]")
    options = parser.parse_args()
    if options.ledger:
        print_ledger()
        return 0

    known = sorted(path.stem[len("fuzz_"):] for path in HERE.glob("fuzz_*.c"))
    for target in options.targets:
        if target not in known:
            parser.error("there is no target %r; targets: %s" % (target, " ".join(known)))
    if re.search(r"[\t\n]", options.by):
        parser.error("--by must not contain a tab or a line break")

    about = {"date": datetime.date.today().isoformat(), "commit": source_commit(), "run by": options.by}
    n_findings = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(fuzz, target, options.seconds, options.fast) for target in options.targets or known]
        for run in concurrent.futures.as_completed(runs):
            values, paths = run.result()
            note({**about, **values})
            print("  ".join(values.values()), *("\n    " + str(path) for path in paths), flush=True)
            n_findings += len(paths)
            if options.merge and not paths:
                print("    inputs added to the corpus: %d" % merge(values["target"]), flush=True)
    return 1 if n_findings > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
