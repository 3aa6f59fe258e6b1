"""bench.py --access: what authentication costs: CPU of hearthd for a push and a small call, by how its callers are known.

One hearthd has a listener for each way. Rounds alternate between the ways; a ratio is the median of the rounds', each
beside the listener with `none` of the same round: the plain one, or for certificates the one with TLS.
"""

import os
import re
import statistics
import time
from contextlib import contextmanager

from measure import Running, say

PODS = 8
TYPES = "querier.v1.QuerierService/ProfileTypes"
ACCESS = "hearth.v1.AccessService/"
LISTENERS = ("token", "oidc", "https none", "https mtls")  # behind the first, plain and with none
WAYS = {  # listener, and the way beside which it is shown
    "none": ("none", None), "token": ("token", "none"), "narrowed token": ("token", "none"), "JWT": ("oidc", "none"),
    "none, TLS": ("https none", None), "client certificate": ("https mtls", "none, TLS"),
}


@contextmanager
def environment(variables):
    """What bench_load is to send."""
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]


class Access:
    def __init__(self, bench):
        import certificates
        import issuer

        self.bench = bench
        authority = certificates.Authority(bench.directory, "ca")
        cert, key = authority.sign("server", "/CN=localhost")
        self.issuer = issuer.Issuer(issuer.Key("ES256"))
        addresses = ["https://127.0.0.1:0?auth=" + way[6:] if way.startswith("https") else "127.0.0.1:0?auth=" + way for way in LISTENERS]
        self.running = Running(
            bench, bench.directory, "--builder=false", *(part for address in addresses for part in ("--listen", address)),
            "--tls-cert-file", cert, "--tls-key-file", key, "--tls-client-auth", "request", "--tls-client-ca-file", authority.file,
            "--oidc-issuer", self.issuer.url, "--oidc-audience", "hearth",
        )
        self.server = self.running.server
        self.targets = dict(zip(("none", *LISTENERS), re.findall(r"msg=listening addr=(\S+)", self.server.log())))
        agent = authority.sign("agent", "/CN=agent", "DNS:agent.test")
        tls = {"BENCH_CA": authority.file}
        self.sent = {
            "none": {}, "token": {"BENCH_TOKEN": self.token()}, "narrowed token": {"BENCH_TOKEN": self.token('{namespace="production"}')},
            "JWT": {"BENCH_TOKEN": self.jwt()}, "none, TLS": tls,
            "client certificate": {**tls, "BENCH_CERT": agent[0], "BENCH_KEY": agent[1]},
        }
        for subject in ("oidc:robot", "cert:dns:agent.test"):
            for role in ("ingest", "viewer"):
                self.server.connect(ACCESS + "AddGrant", {"subject": subject, "tenant": "anonymous", "role": role})

    def token(self, selector=""):
        grants = [{"tenant": "anonymous", "role": role, "selector": selector} for role in ("ingest", "viewer")]
        return self.server.connect(ACCESS + "CreateToken", {"name": "bench", "grants": grants})["token"]

    def jwt(self):
        return self.issuer.jwt(exp=int(time.time()) + 3600)

    def cost(self, job, way, seconds):
        """Microseconds of hearthd for a call."""
        target = self.targets[WAYS[way][0]]
        arguments = {
            "push": ("push", target, self.bench.pool, PODS, 64, seconds, 0), "small call": ("call", target, "/" + TYPES, 32, seconds),
        }[job]
        with environment(self.sent[way]):
            before = self.running.cpu()[0]
            seen = self.bench.tool("bench_load", *arguments)[0]
            after = self.running.cpu()[0]
        if seen["failed"]:
            raise SystemExit("bench: %s, %s: %d calls failed: %s" % (job, way, seen["failed"], seen["error"]))
        return (after - before) / seen["ok"]

    def run(self):
        rounds, seconds = (4, 0.6) if self.bench.options.quick else (10, 1)
        say("warming the dictionaries and the keys of the issuer")
        for way in WAYS:
            self.cost("push", way, 2)
        found = {(job, way): [] for job in ("push", "small call") for way in WAYS}
        for i in range(rounds):
            say("authentication, round %d of %d" % (i + 1, rounds))
            for job, way in found:
                found[job, way].append(self.cost(job, way, seconds))
        self.server.terminate()
        self.issuer.stop()
        return self.report(found)

    def report(self, found):
        print("| call | callers are known by | CPU of hearthd | beside | ratio | of the rounds |\n|---|---|---|---|---|---|")
        numbers = {}
        for (job, way), costs in found.items():
            us, beside = statistics.median(costs), WAYS[way][1]
            line, numbers["%s, %s" % (job, way)] = "| %s | %s | %.1f us | " % (job, way, us), {"us": us}
            if beside:
                ratios = [cost / none for cost, none in zip(costs, found[job, beside])]
                ratio = statistics.median(ratios)
                numbers["%s, %s" % (job, way)].update(ratio=ratio, ratios=ratios)
                line += "%s | %.3f | %.3f to %.3f |" % (beside, ratio, min(ratios), max(ratios))
            else:
                line += "| | |"
            print(line)
        return numbers


def run(bench):
    bench.make_pool(60)
    return Access(bench).run()
