"""Tenants share a server: one that floods it does not delay another, and everybody sees what they use."""

import concurrent.futures
import json
import threading
import unittest

from pprof import Profile
from server import QUERIER, Server, Session, eventually, now_ms

JSON = {"Content-Type": "application/json"}
TOTALS = "/" + QUERIER + "SelectMergeStacktraces"
USAGE = "hearth.v1.AdminService/Usage"
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


def profile():
    return Profile([("cpu", "nanoseconds")], time_ns=now_ms() * 1_000_000).add(["main", "work"], [7]).encode()


def org(tenant):
    return {"X-Scope-OrgID": tenant}


class FairShare(unittest.TestCase):
    options = ()

    def setUp(self):
        self.server = Server("--multitenancy", "--builder=false", *self.options)
        self.addCleanup(self.server.stop)
        for tenant in ("noisy", "quiet"):
            self.push(tenant)

    def push(self, tenant, service="api"):
        self.server.push(profile(), {"__name__": "process_cpu", "service_name": service}, metadata=[("x-scope-orgid", tenant)])

    def hold(self):
        """Until the returned function is called, every query waits for its first profile."""
        session = Session(self.server.postgres_url())
        session.run("BEGIN; LOCK TABLE hearth_data.profile, hearth_data.profile_late IN ACCESS EXCLUSIVE MODE")

        def release():
            session.run("COMMIT")
            session.close()

        return release

    def query(self, tenant, timeout=240):
        body = json.dumps({"profileTypeID": CPU, "labelSelector": '{service_name="api"}', "start": now_ms() - 600_000,
                           "end": now_ms() + 600_000})
        return self.server.http("POST", TOTALS, body, {**JSON, **org(tenant)}, timeout=timeout)

    def gauge(self, name):
        return self.server.metrics()[(name, ())]

    def usage(self, tenant):
        return self.server.connect(USAGE, {}, org(tenant))

    def limit(self, tenant, name):
        return next(u for u in self.usage(tenant)["limits"] if u["limit"] == name)

    def use(self, tenant, name):
        return next(u for u in self.usage(tenant)["uses"] if u["name"] == name)


class OneThread(FairShare):
    """No clock: the only thread for queries is held by the first of a flood, and the order of the others is seen."""

    options = ("--query-threads=1", "--request-timeout=0")

    def test_a_quiet_tenants_query_is_next_after_the_one_that_runs(self):
        order, lock = [], threading.Lock()

        def ask(tenant):
            status, _, text = self.query(tenant)
            with lock:
                order.append((tenant, status))
            return status

        release = self.hold()
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            first = pool.submit(ask, "noisy")
            eventually(lambda: self.gauge("hearth_query_requests_running") == 1)
            flood = [pool.submit(ask, "noisy") for _ in range(30)]
            eventually(lambda: self.gauge("hearth_query_requests_queued") >= 30)
            quiet = pool.submit(ask, "quiet")
            eventually(lambda: self.gauge("hearth_query_requests_queued") >= 31)
            release()
            for future in [first, quiet, *flood]:
                self.assertEqual(future.result(), 200)
        self.assertIn(("quiet", 200), order[:4], "the quiet tenant's query ran before the flood was drained")


class Limits(FairShare):
    options = ("--query-threads=4", "--request-timeout=0")

    def test_a_tenants_queries_wait_in_its_own_queue_and_others_do_not(self):
        self.server.connect("hearth.v1.AdminService/SetLimits", {"changes": [
            {"name": "max-queries", "value": "1"}, {"name": "max-queued-queries", "value": "2"}]}, org("noisy"))
        release = self.hold()
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            waiting = [pool.submit(self.query, "noisy") for _ in range(1)]
            eventually(lambda: self.gauge("hearth_query_requests_running") >= 1)
            waiting += [pool.submit(self.query, "noisy") for _ in range(2)]
            eventually(lambda: self.gauge("hearth_query_requests_queued") >= 2)

            # One more is refused at once, with the option's name and a hint.
            status, headers, text = self.query("noisy")
            self.assertEqual((status, headers["retry-after"]), (429, "1"))
            self.assertEqual(json.loads(text)["code"], "resource_exhausted")
            self.assertIn("max-queued-queries is 2", json.loads(text)["message"])

            # Threads are left for others: this one does not read profiles.
            queued = self.limit("quiet", "max-queued-queries")
            self.assertEqual(int(queued.get("used", 0)), 0)
            release()
            self.assertEqual([w.result()[0] for w in waiting], [200, 200, 200])
        refused = self.limit("noisy", "max-queued-queries")
        self.assertEqual((int(refused["refused"]), int(refused["refusedLastMinute"]), int(refused["max"])), (1, 1, 2))

    def test_usage_shows_pushes_and_queries_beside_their_limits(self):
        self.push("quiet", "other")
        self.assertEqual(self.query("quiet")[0], 200)
        self.assertEqual(int(self.use("quiet", "profiles")["total"]), 2)
        self.assertEqual(int(self.use("quiet", "profiles")["lastMinute"]), 2)
        self.assertGreater(int(self.use("quiet", "ingest_bytes")["total"]), 100)
        self.assertGreaterEqual(int(self.use("quiet", "queries")["total"]), 1)
        self.assertEqual(int(self.limit("quiet", "max-series")["used"]), 2)
        self.assertEqual(int(self.limit("quiet", "max-series")["max"]), 500000)
        self.assertEqual(int(self.limit("nobody", "max-series").get("used", 0)), 0)


class Share(FairShare):
    options = ("--queries-memory-bytes=64m", "--metrics-tenants=1", "--max-tenant-query-memory-bytes=1")

    def test_a_tenants_queries_together_have_their_own_memory(self):
        # More than the first, free megabyte.
        many = Profile([("cpu", "nanoseconds")], time_ns=now_ms() * 1_000_000)
        for i in range(60_000):
            many.add(["main", "f%d" % i], [1])
        self.server.push(many.encode(), {"__name__": "process_cpu", "service_name": "api"}, metadata=[("x-scope-orgid", "noisy")])
        status, _, text = self.query("noisy")
        self.assertEqual(status, 429)
        self.assertIn("all running requests of the tenant together need more than max-tenant-query-memory-bytes (1)", text.decode())
        self.assertEqual(int(self.limit("noisy", "max-tenant-query-memory-bytes")["refused"]), 1)

        # A limit of its own.
        self.server.connect("hearth.v1.AdminService/SetLimits", {"changes": [
            {"name": "max-tenant-query-memory-bytes", "value": "60m"}]}, org("noisy"))
        self.assertEqual(self.query("noisy")[0], 200)

        # The first tenant has metrics of its own, all others share a label.
        metrics = self.server.metrics()
        stored = {labels: value for (name, labels), value in metrics.items() if name == "hearth_tenant_profiles_total"}
        self.assertEqual(stored, {(("tenant", "noisy"),): 2, (("tenant", "other"),): 1})


if __name__ == "__main__":
    unittest.main()
