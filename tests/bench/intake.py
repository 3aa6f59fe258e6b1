"""What it costs to decode files of profilers: beside their floor, and recordings of Java beside the JDK's own `jfr summary`.

The floor of a file is inflating it, if it is compressed, and one scan of its plain bytes as varints. `jfr summary` and Hearth
read the same plain file; what a JVM takes to start is that of `jfr version`.
"""

import gzip
import os
import pathlib
import shutil
import subprocess

from measure import ROOT, say

RUNS_OF_JFR = 5

# (file of the shared data, our own that takes its place without it; None: there is none)
FILES = [
    ("jfr/jdk21.jfr", "jfr/work.jfr.gz"),
    ("jfr/jdk-jmh-cpu-alloc.jfr", None),
    ("jfr/asprof-200k-samples-62-stacks.jfr.gz", None),
    ("jfr/asprof-exceptions-4876-stacks-depth-273.jfr.gz", None),
    ("jfr/dd-agent-3-chunks.jfr", None),
    ("jfr/dd-trace-java.jfr.gz", None),
    ("pprof/go-cpu-go-compiler-12k-samples.pb.gz", "pprof/go-cpu-labels.pb.gz"),
    ("pprof/go-heap-banyandb-35k-samples.pb.gz", "pprof/go-heap.pb.gz"),
    ("perf/callgraph-3.8.perf.data", "perf/work.perf.data"),
    ("perf/perf-vertx-stacks-01.txt", None),
    ("collapsed/perf-vertx-kernel-java-all.txt", None),
    ("speedscope/brook-1.3MB.speedscope.json", "files/busy.speedscope.json.gz"),
    ("speedscope/chrome65-sucrase.cpuprofile", "files/work.cpuprofile.gz"),
    (None, "files/work.heapprofile.gz"),
    ("pprof/legacy-not-protobuf/cppbench.heap", "files/debug1.heap"),
    (None, "files/gperftools.cpu"),
]

HEAD = [
    "| file | format | MB | profiles | samples | MB/s | profiles/s | samples/s | ns a sample | decoding alone | floor | ratio |",
    "|" + "---|" * 12,
]
JFR_HEAD = [
    "| recording | Hearth | `jfr summary` | times | its start-up | times, without start-up |",
    "|" + "---|" * 6,
]


def choose(shared):
    """The files to measure: of each format one or two."""
    found = []
    for of_shared, own in FILES:
        if of_shared and (shared / of_shared).exists():
            found.append(shared / of_shared)
        elif own:
            found.append(ROOT / "tests/golden" / own)
    return found


def user_ms(*command):
    """The least milliseconds of user CPU of a command, over some runs."""
    least = None
    for _ in range(RUNS_OF_JFR):
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            raise SystemExit("bench: %s failed" % " ".join(command))
        least = min(usage.ru_utime, least or usage.ru_utime)
    return 1e3 * least


def plain_copy(path, directory):
    """jfr reads plain files only."""
    if path.suffix != ".gz":
        return path
    copy = pathlib.Path(directory) / path.stem
    copy.write_bytes(gzip.decompress(path.read_bytes()))
    return copy


def report(name, one):
    seconds = (one["inflate_us"] + one["decode_us"]) / 1e6
    floor = (one["inflate_us"] + one["scan_us"]) / 1e6
    megabytes = one["plain_bytes"] / 1e6
    one["ratio"] = seconds / floor
    return "| %s | %s | %.2f | %d | %s | %.0f | %s | %s | %s | %.0f MB/s | %.0f MB/s | %.1f |" % (
        name, one["format"], megabytes, one["profiles"], format(one["samples"], ","), megabytes / seconds,
        format(one["profiles"] / seconds, ",.0f"), format(one["samples"] / seconds, ",.0f"),
        format(1e9 * seconds / one["samples"], ",.0f") if one["samples"] else "", megabytes / one["decode_us"] * 1e6,
        megabytes / floor, one["ratio"])


def report_jfr(name, one, start_ms):
    decode_ms = one["decode_us"] / 1e3
    return "| %s | %.1f ms | %.0f ms | %.1f | %.0f ms | %.1f |" % (
        name, decode_ms, one["summary_ms"], one["summary_ms"] / decode_ms, start_ms, (one["summary_ms"] - start_ms) / decode_ms)


def run(bench, paths):
    paths = [pathlib.Path(path) for path in paths] or choose(bench.server_module.SHARED)
    say("decoding %d files" % len(paths))
    numbers = {path.name: bench.tool("bench_intake", path)[0] for path in paths}
    print("\n".join(HEAD + [report(name, one) for name, one in numbers.items()]))

    recordings = [path for path in paths if numbers[path.name]["format"] == "JFR"]
    if not recordings:
        return numbers
    if shutil.which("jfr") is None:
        say("no jfr of a JDK in the path: nothing to compare recordings of Java with")
        return numbers
    start_ms = user_ms("jfr", "version")
    for path in recordings:
        say("jfr summary %s" % path.name)
        numbers[path.name]["summary_ms"] = user_ms("jfr", "summary", str(plain_copy(path, bench.directory)))
    print("\n" + "\n".join(JFR_HEAD + [report_jfr(p.name, numbers[p.name], start_ms) for p in recordings]))
    return numbers
