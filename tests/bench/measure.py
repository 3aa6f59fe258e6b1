"""What the benches share: a private hearthd, CPU and memory of processes, the pool of profiles, the tools of the build."""

import hashlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TICK = os.sysconf("SC_CLK_TCK")
SERVICES, PROFILES = 10, 240  # of the pool

# Recorded Go CPU profiles whose stacks are resampled: the shared ones when they are there, else our own.
SHARED_SEEDS = [
    "pprof/go-cpu-gdu-v1.pb.gz",
    "pprof/go-cpu-concourse-60-deep.pb.gz",
    "pprof/go-cpu-label-grpcmethod.pb.gz",
    "pprof/go-cpu-prometheus-server-12k-samples.pb.gz",
    "pprof/go-cpu-go-compiler-12k-samples.pb.gz",
]
OWN_SEEDS = ["tests/golden/pprof/go-cpu-labels.pb.gz"]


def process_cpu(pid, with_children=False):
    """Seconds of CPU, which the kernel counts in nanoseconds; with those of children that have ended, in ticks."""
    own = time.clock_gettime(~pid << 3 | 2)  # the clock of the process, as clock_getcpuclockid() names it
    if not with_children:
        return own
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return own + sum(int(n) for n in fields[13:15]) / TICK


def cluster_cpu(postmaster):
    total = process_cpu(postmaster, True)
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit():
                with open("/proc/%s/stat" % entry) as f:
                    if int(f.read().rsplit(")", 1)[1].split()[1]) == postmaster:
                        total += process_cpu(int(entry))
        except OSError:  # it has just ended
            pass
    return total


def resident_mib(pid, field="VmRSS"):
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(field + r":\s+(\d+)", f.read()).group(1)) / 1024


def say(text):
    print("bench: " + text, file=sys.stderr, flush=True)


class Setting:
    """The build's programs, a temporary directory, and a pool of profiles in it."""

    def __init__(self, options):
        self.options = options
        self.bin = pathlib.Path(options.build).resolve() / "bin"
        os.environ["HEARTHD"] = str(self.bin / "hearthd")
        sys.path.insert(0, str(ROOT / "tests" / "integration"))
        import server

        self.server_module = server
        self.directory = server.temporary_directory()
        self.pool = os.path.join(self.directory, "pool")
        shared = [server.SHARED / name for name in SHARED_SEEDS]
        self.missing = [path for path in shared if not path.exists()]
        self.has_shared = not self.missing
        self.seeds = shared if self.has_shared else [ROOT / name for name in OWN_SEEDS]

    def make_pool(self, profiles=PROFILES):
        say("making profiles from %s recordings" % ("the shared" if self.has_shared else "our own"))
        self.tool("bench_make_pool", self.pool, SERVICES, profiles, *self.seeds)

    def tool(self, name, *arguments):
        """The JSON lines that a program of the build prints."""
        done = subprocess.run([str(self.bin / name), *map(str, arguments)], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise SystemExit("bench: %s failed" % name)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


class Running:
    """A hearthd with its own PostgreSQL that is measured; `server` may be stopped and started with other options."""

    def __init__(self, setting, directory, *options):
        self.setting = setting
        self.server = setting.server_module.Server(*options, directory=directory, hearthd=str(setting.bin / "hearthd"))
        self.postmaster = self.server.postmaster_pid()

    def restart(self, *options, evict=False):
        self.server.terminate()
        if evict:
            evict_files(self.server.directory)
        self.server.options = list(options)
        self.server.start()
        self.postmaster = self.server.postmaster_pid()

    def cpu(self):
        """(hearthd, PostgreSQL) in microseconds."""
        return 1e6 * process_cpu(self.server.process.pid), 1e6 * cluster_cpu(self.postmaster)

    def metric(self, name, **labels):
        """The sum over the series of that name with these labels; None when there are none."""
        found = [
            value
            for (metric, pairs), value in self.server.metrics().items()
            if metric == name and set(labels.items()) <= set(pairs)
        ]
        return sum(found) if found else None

    def rss(self):
        return resident_mib(self.server.process.pid)

    def ask(self, method, fields, seconds=1.2, warm=2, least=5):
        """Times of a question over gRPC with the answer read, in milliseconds, and the CPU of one."""
        import wire

        request = wire.encode(fields)
        answer = self.server.grpc_bytes(method, request)[0]
        for _ in range(warm - 1):
            self.server.grpc_bytes(method, request)
        walls, began = [], time.monotonic()
        before = self.cpu()
        while len(walls) < least or (time.monotonic() - began < seconds and len(walls) < 200):
            start = time.monotonic()
            self.server.grpc_bytes(method, request)
            walls.append(1000 * (time.monotonic() - start))
        after = self.cpu()
        hearthd, postgres = ((b - a) / 1000 / len(walls) for a, b in zip(before, after))
        return {
            "ms": statistics.median(walls), "best_ms": min(walls), "p99_ms": sorted(walls)[(99 * len(walls) - 1) // 100], "hearthd_ms": hearthd, "postgres_ms": postgres,
            "bytes": len(answer), "digest": hashlib.sha256(answer).hexdigest()[:16],
        }

    def ask_once(self, method, fields):
        import wire

        request = wire.encode(fields)
        start = time.monotonic()
        self.server.grpc_bytes(method, request)
        return 1000 * (time.monotonic() - start)


def evict_files(directory):
    """Nothing of the files stays in memory: the kernel is asked for all of its cache, or file by file where it refuses."""
    os.sync()
    try:
        with open("/proc/sys/vm/drop_caches", "w") as f:
            f.write("1\n")
        return
    except OSError:
        pass
    for path, _, names in os.walk(directory):
        for name in names:
            try:
                fd = os.open(os.path.join(path, name), os.O_RDONLY)
            except OSError:
                continue
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
