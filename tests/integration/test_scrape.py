"""Profiles that the server fetches from targets: deltas of totals, failures, several servers, a name."""

import http.server
import json
import os
import pathlib
import subprocess
import threading
import time
import unittest

from pprof import Decoded, Profile
from server import (
    HEARTH, HEARTHD, Cluster, Server, eventually, now_ms, sanitizer, server_environment, temporary_directory,
)

HERE = pathlib.Path(__file__).resolve().parent
TARGETS = "hearth.v1.AdminService/ScrapeTargets"
HEAP = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
ALLOC = "memory:alloc_space:bytes:space:bytes"
INUSE = "memory:inuse_space:bytes:space:bytes"
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


class Target:
    """A process with net/http/pprof: its total of allocations grows by 100 bytes with each fetch."""

    def __init__(self):
        self.fetches, self.total, self.broken, self.paths, self.delay, self.moved_to = 0, 0, None, [], 0, None
        target = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                target.paths.append(self.path)
                time.sleep(target.delay)
                body = target.broken if target.broken is not None else target.answer(self.path)
                self.send_response(302 if target.moved_to else 200 if body else 404)
                if target.moved_to:
                    self.send_header("Location", "http://%s%s" % (target.moved_to, self.path))
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = "127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, path):
        if path.startswith("/debug/pprof/allocs"):
            self.fetches += 1
            self.total += 100
            profile = Profile(HEAP, ("space", "bytes"), 524288)
            return profile.add(["main", "make"], [self.total // 10, self.total, 1, 64]).encode()
        if path.startswith("/debug/pprof/profile"):
            profile = Profile([("samples", "count"), ("cpu", "nanoseconds")], duration_ns=10**9)
            return profile.add(["main", "work"], [1, 10_000_000]).encode()
        return b""

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def write_config(job, **more):
    """A file with one job; JSON is YAML."""
    path = os.path.join(temporary_directory(), "scrape.yaml")
    off = {name: {"enabled": False} for name in ("block", "goroutine", "mutex", "process_cpu", "memory")}
    off.update(more.pop("profiles", {}))
    job = {"scrape_interval": "1s", "scrape_timeout": "2s", "profiling_config": {"pprof_config": off}, **job}
    with open(path, "w") as file:
        json.dump({"scrape_configs": [job]}, file)
    os.chmod(path, 0o644)
    return path


class Scrape(unittest.TestCase):
    def setUp(self):
        self.target = Target()
        self.addCleanup(self.target.stop)

    def start(self, job=None, profiles=None, *options, env=None):
        job = job or {"job_name": "shop", "static_configs": [{"targets": [self.target.address], "labels": {"env": "test"}}]}
        path = write_config(job, profiles=profiles or {"memory": {"enabled": True}})
        server = Server("--scrape-config", path, *options, env=env)
        self.addCleanup(server.stop)
        return server

    def total(self, server, profile_type, selector='{service_name="shop"}'):
        found = Decoded(server.merge_pprof(profile_type, selector, now_ms() - 3600_000, now_ms() + 60_000))
        return sum(found.totals())

    def state(self, server):
        return server.connect(TARGETS, {}).get("targets", [])

    def test_totals_are_stored_as_differences_and_gauges_unchanged(self):
        server = self.start()
        eventually(lambda: self.target.fetches >= 4, what="four fetches")
        server.terminate()  # no scrape is under way after this
        self.target.stop()
        fetches = self.target.fetches
        server.start()
        stored = self.total(server, ALLOC)
        self.assertIn(stored, (100 * (fetches - 1), 100 * (fetches - 2)))  # the last may have been cut off
        rows = server.sql("SELECT DISTINCT labels->>'job', labels->>'instance', labels->>'env' FROM hearth.series")
        self.assertEqual(rows, [["shop", self.target.address, "test"]])

    def test_a_process_that_starts_again_counts_from_its_start(self):
        server = self.start()
        eventually(lambda: self.total(server, ALLOC) >= 200, what="two differences")
        self.target.total = 0
        before = self.target.fetches
        eventually(lambda: self.target.fetches >= before + 3, what="three more fetches")
        eventually(lambda: self.state(server)[0].get("failure") is None and self.total(server, ALLOC) >= 500,
                   what="the sum over both processes")
        self.assertLessEqual(self.total(server, ALLOC), 100 * self.target.fetches)

    def test_a_cpu_profile_is_measured_for_the_interval(self):
        server = self.start(profiles={"process_cpu": {"enabled": True}})
        eventually(lambda: self.total(server, CPU) >= 20_000_000, what="two profiles")
        self.assertEqual(self.target.paths[0], "/debug/pprof/profile?seconds=1")

    def test_a_failure_is_shown_and_noted(self):
        self.target.broken = b"<html>not a profile</html>"
        server = self.start()
        target = eventually(lambda: next((t for t in self.state(server) if t.get("failure")), None), what="a failure")
        self.assertIn("invalid_argument", target["failure"])
        self.assertTrue(target["claimed"])
        errors = eventually(lambda: server.connect("hearth.v1.AdminService/IngestErrors", {}).get("errors"),
                            what="an ingest error")
        self.assertEqual((errors[0]["client"], errors[0]["route"]), ("scraper", "scrape"))
        self.assertIn(self.target.address, errors[0]["message"])
        shown = subprocess.run([HEARTH, "admin", "targets", "--url", "http://127.0.0.1:%d" % server.port],
                               capture_output=True, text=True, timeout=60, check=True).stdout
        self.assertIn("/debug/pprof/allocs", shown)
        self.assertIn("invalid_argument", shown)

        # It recovers.
        self.target.broken = None
        eventually(lambda: self.total(server, ALLOC) > 0, what="profiles")
        eventually(lambda: not self.state(server)[0].get("failure"), what="the end of the failure")

    def test_an_unreachable_target_and_a_missing_path_have_different_errors(self):
        job = {"job_name": "shop", "static_configs": [{"targets": [self.target.address, "127.0.0.1:1"]}]}
        server = self.start(job, {"mine": {"path": "/none"}})
        failures = eventually(lambda: len([t for t in self.state(server) if t.get("failure")]) == 2 and self.state(server),
                              what="two failures")
        by_address = {t["address"]: t["failure"] for t in failures}
        self.assertIn("HTTP status 404", by_address[self.target.address])
        self.assertIn("the request failed", by_address["127.0.0.1:1"])

    def test_a_target_cannot_send_the_server_elsewhere(self):
        other = Target()
        self.addCleanup(other.stop)
        self.target.moved_to = other.address
        server = self.start()
        target = eventually(lambda: next((t for t in self.state(server) if t.get("failure")), None), what="a failure")
        self.assertIn("HTTP status 302", target["failure"])
        self.assertEqual(other.paths, [])

    def test_an_answer_beyond_the_limit_is_refused(self):
        self.target.broken = b"x" * 100_000
        server = self.start(None, None, "--max-request-bytes=64k")
        target = eventually(lambda: next((t for t in self.state(server) if t.get("failure")), None), what="a failure")
        self.assertIn("max-request-bytes", target["failure"])

    def test_every_target_has_its_turn_when_one_at_a_time_may_run(self):
        others = [Target() for _ in range(3)]
        for other in others:
            self.addCleanup(other.stop)
        self.target.delay = 1.3  # the first of the list is due again when it ends
        job = {"job_name": "shop", "static_configs": [{"targets": [t.address for t in [self.target, *others]]}]}
        self.start(job, None, "--scrape-concurrency=1")
        eventually(lambda: min(t.fetches for t in [self.target, *others]) >= 2, what="two fetches of each")

    def test_a_name_is_resolved(self):
        port = int(self.target.address.split(":")[1])
        job = {"job_name": "shop", "dns_sd_configs": [{"names": ["localhost"], "type": "A", "port": port}]}
        server = self.start(job)
        eventually(lambda: self.total(server, ALLOC) > 0, what="profiles")
        self.assertIn(self.target.address, [t["address"] for t in self.state(server)])

    def test_a_name_server_that_does_not_answer_delays_no_profile_of_other_targets(self):
        stuck = os.path.join(temporary_directory(), "stuck")
        library = stuck + ".so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, HERE / "stuck_names.c"], check=True)
        open(stuck, "w").close()
        job = {
            "job_name": "shop", "static_configs": [{"targets": [self.target.address]}],
            "dns_sd_configs": [{"names": ["shop%d.test" % i for i in range(8)], "type": "A", "port": 80}],
        }
        env = {"STUCK_NAMES": stuck, "LD_PRELOAD": "%s %s" % (sanitizer(), library)}
        server = self.start(job, env=env)
        self.addCleanup(os.unlink, stuck)  # before the server stops
        eventually(lambda: self.target.fetches >= 4, what="fetches one after the other")
        eventually(lambda: self.total(server, ALLOC) > 0, what="profiles")

    def test_a_mistake_in_the_file_stops_the_start(self):
        for job, message in [({"relabel_configs": []}, "is unknown here"),
                             ({"tenant": "a/b"}, 'job \\"shop\\" of --scrape-config: tenant ID')]:
            path = write_config({"job_name": "shop", **job})
            done = subprocess.run([HEARTHD, "--listen", "127.0.0.1:0", "--data-dir", temporary_directory(),
                                   "--scrape-config", path],
                                  capture_output=True, text=True, timeout=60, env=server_environment({}))
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(message, done.stderr)


class TwoServers(unittest.TestCase):
    def test_one_of_two_servers_fetches_a_target_and_the_other_takes_over(self):
        target, cluster = Target(), Cluster()
        self.addCleanup(target.stop)
        self.addCleanup(cluster.stop)
        job = {"job_name": "shop", "static_configs": [{"targets": [target.address]}]}
        path = write_config(job, profiles={"memory": {"enabled": True}})
        servers = [Server("--scrape-config", path, database_url=cluster.url()) for _ in range(2)]
        for server in servers:
            self.addCleanup(server.stop)

        eventually(lambda: target.fetches >= 3, what="three fetches")
        counts = [sum(s.metrics().get("hearth_scrapes_total", {}).values()) for s in servers]
        self.assertEqual(sorted(counts)[0], 0, counts)

        # The holder gives up its claims when it stops.
        holder = servers[0] if counts[0] > 0 else servers[1]
        holder.terminate()
        before = target.fetches
        eventually(lambda: target.fetches >= before + 2, what="fetches by the other server")


if __name__ == "__main__":
    unittest.main()
