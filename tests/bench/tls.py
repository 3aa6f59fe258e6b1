#!/usr/bin/python3
"""What TLS costs: CPU of hearthd for a push, a small call, a large body and a connection, beside the same without TLS.

tls.py [CALLS]: 3000 by default. HEARTHD names the binary. One client, one call at a time. Each figure is the least of
three rounds.
"""

import os
import pathlib
import random
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

import certificates  # noqa: E402
import grpc  # noqa: E402
import pprof  # noqa: E402
import wire  # noqa: E402
from server import PUSH, Server, temporary_directory  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")


def cpu_s(pid):
    fields = pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def profile():
    """About 20 KB as sent."""
    rng = random.Random(1)
    made = pprof.Profile([("cpu", "nanoseconds")], time_ns=time.time_ns())
    names = ["pkg%d.Function%x" % (i % 40, rng.getrandbits(40)) for i in range(800)]
    for _ in range(700):
        made.add([rng.choice(names) for _ in range(rng.randrange(4, 20))], [rng.randrange(1, 100) * 10_000_000])
    return made.encode()


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    directory = temporary_directory()
    authority = certificates.Authority(directory, "ca")
    cert, key = authority.sign("server", "/CN=localhost")
    server = Server("--listen", "https://127.0.0.1:0", "--tls-cert-file", cert, "--tls-key-file", key)
    port = int(re.search(r"addr=127\.0\.0\.1:(\d+) scheme=https", server.log()).group(1))
    credentials = grpc.ssl_channel_credentials(pathlib.Path(authority.file).read_bytes())
    options = [("grpc.use_local_subchannel_pool", 1)]
    ways = {
        "plain": lambda: grpc.insecure_channel("127.0.0.1:%d" % server.port, options=options),
        "tls": lambda: grpc.secure_channel("localhost:%d" % port, credentials, options=options),
    }
    body = profile()
    pairs = [(1, [(1, "__name__"), (2, "process_cpu")]), (1, [(1, "service_name"), (2, "bench")])]
    push = wire.encode([(1, pairs + [(2, [(1, body)])])])
    large = b"\x00" * (8 << 20)
    health = "/grpc.health.v1.Health/Check"

    def cost(n, work):
        before = cpu_s(server.process.pid)
        for _ in range(n):
            work()
        return (cpu_s(server.process.pid) - before) / n * 1e6

    def connect(way):
        channel = ways[way]()
        channel.unary_unary(health)(b"", timeout=60)
        channel.close()

    def refused(call):
        try:
            call(large, timeout=60)
        except grpc.RpcError:
            pass

    def jobs(way, channel):
        small, pushes = channel.unary_unary(health), channel.unary_unary("/" + PUSH)
        return {
            "small call": cost(calls, lambda: small(b"", timeout=60)),
            "push of %d KB" % (len(body) // 1000): cost(calls // 4, lambda: pushes(push, timeout=60)),
            "message of 8 MiB": cost(20, lambda: refused(pushes)),
            "connection with a small call": cost(100, lambda: connect(way)),
        }

    found = {way: {} for way in ways}
    for _ in range(3):
        for way, make in ways.items():
            channel = make()
            for job, us in jobs(way, channel).items():
                found[way][job] = min(us, found[way].get(job, us))
            channel.close()
    for job, plain in found["plain"].items():
        print("%-30s plain %8.0f us  tls %8.0f us  ratio %.2f" % (job, plain, found["tls"][job], found["tls"][job] / plain))
    server.stop()


if __name__ == "__main__":
    main()
