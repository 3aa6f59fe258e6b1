"""Several hearthd before a coordinator and two workers: each finds at once what another one made or deleted, and tenants share.

Runs only where HEARTH_TEST_CITUS names the binaries of a PostgreSQL with Citus (docs/testing.md).
"""

import concurrent.futures
import json
import threading
import unittest

from citus_nodes import CITUS, WHY_NOT, Nodes
from pprof import Profile
from questions import CPU, QUERIER
from server import Server, Session, eventually, in_threads, now_ms

SERVERS = 3
MERGE = "/" + QUERIER + "SelectMergeStacktraces"


def one(name, value=1):
    return Profile([("cpu", "nanoseconds")], time_ns=now_ms() * 1_000_000).add(["main", name], [value]).encode()


def org(tenant):
    return {"X-Scope-OrgID": tenant}


@unittest.skipUnless(CITUS, WHY_NOT)
class CitusServers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = Nodes()
        cls.nodes.distribute()

    @classmethod
    def tearDownClass(cls):
        cls.nodes.stop()

    def start(self, n, *options):
        servers = in_threads([lambda: Server(*options, database_url=self.nodes.url())] * n)
        for server in servers:
            self.addCleanup(server.stop)
        return servers

    def test_a_push_acknowledged_by_one_server_is_in_the_next_answer_of_another(self):
        servers, start = self.start(SERVERS), now_ms()
        for round in range(45):
            writer, reader = servers[round % SERVERS], servers[(round + 1) % SERVERS]
            # In turn: a new stack in a known series, a new series, a new service. New services lie on either worker.
            labels = {"__name__": "process_cpu", "service_name": "fresh"}
            if round % 3 == 1:
                labels["pod"] = "pod-%d" % round
            elif round % 3 == 2:
                labels["service_name"] = "fresh-%d" % round
            writer.push(one("stack-%d" % round), labels)
            selector = "{%s}" % ",".join('%s="%s"' % pair for pair in labels.items())
            flame = reader.flamegraph(CPU, selector, start, now_ms() + 1000)
            self.assertIn("stack-%d" % round, flame.functions(), round)
        whole = [server.flamegraph(CPU, '{service_name=~"fresh.*"}', start, now_ms() + 1000).total for server in servers]
        self.assertEqual(whole, [45] * SERVERS)
        placed = self.nodes.sql("SELECT count(DISTINCT nodeport) FROM citus_shards c JOIN hearth_data.service s ON c.shardid ="
                                " get_shard_id_for_distribution_column('hearth_data.profile', s.service_id) WHERE s.name LIKE 'fresh%'"
                                " AND c.table_name = 'hearth_data.profile'::regclass")
        self.assertEqual(placed, [["2"]], "services on both workers")

    def test_a_deletion_on_one_server_shows_in_the_next_answer_of_another(self):
        servers, start = self.start(SERVERS, "--builder=false"), now_ms()
        for k in range(12):
            labels = {"__name__": "process_cpu", "service_name": "gone-%d" % (k % 4), "pod": str(k // 4)}
            servers[k % SERVERS].push(one("f%d" % k, 1 << k), labels)

        def totals():
            return [server.flamegraph(CPU, '{service_name=~"gone-.*"}', start, now_ms() + 1000).total for server in servers]

        left = (1 << 12) - 1
        self.assertEqual(totals(), [left] * SERVERS)
        for k in range(12):
            erase = {"labelSelector": '{service_name="gone-%d",pod="%d"}' % (k % 4, k // 4), "start": "0", "end": str(now_ms()),
                     "expectedSeries": "1"}
            servers[(k + 1) % SERVERS].connect("hearth.v1.AdminService/Erase", erase)
            left -= 1 << k
            self.assertEqual(totals(), [left] * SERVERS, k)

    def test_a_quiet_tenants_queries_are_next_on_each_server_while_another_tenant_floods_them(self):
        servers = self.start(2, "--multitenancy", "--builder=false", "--query-threads=1", "--request-timeout=0")
        for tenant in ("noisy", "quiet"):
            for k in range(6):
                servers[0].push(one("f"), {"__name__": "process_cpu", "service_name": "shared-%d" % k},
                                metadata=[("x-scope-orgid", tenant)])
        order, lock = [[], []], threading.Lock()

        def ask(n, tenant):
            body = {"profileTypeID": CPU, "labelSelector": "{}", "start": now_ms() - 600_000, "end": now_ms() + 600_000}
            status, _, text = servers[n].http("POST", MERGE, json.dumps(body), {"Content-Type": "application/json", **org(tenant)}, 240)
            with lock:
                order[n].append(tenant)
            self.assertEqual(status, 200, text)
            return json.loads(text)["flamegraph"]["total"]

        def gauge(n, name):
            return servers[n].metrics()[(name, ())]

        # While shards on all nodes are locked, the first query holds the only thread of each server. Queries name the
        # tables of shards, which LOCK TABLE does not lock.
        session = Session(self.nodes.url())
        self.addCleanup(session.close)
        session.run("BEGIN; TRUNCATE hearth_data.profile")
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            asked = [pool.submit(ask, n, "noisy") for n in range(2)]
            eventually(lambda: all(gauge(n, "hearth_query_requests_running") == 1 for n in range(2)))
            asked += [pool.submit(ask, n, "noisy") for n in range(2) for _ in range(20)]
            eventually(lambda: all(gauge(n, "hearth_query_requests_queued") >= 20 for n in range(2)))
            asked += [pool.submit(ask, n, "quiet") for n in range(2)]
            eventually(lambda: all(gauge(n, "hearth_query_requests_queued") >= 21 for n in range(2)))
            session.run("ROLLBACK")
            self.assertEqual({future.result() for future in asked}, {"6"})
        for ended in order:
            self.assertIn("quiet", ended[:4], "it was answered before the flood was drained")

    def test_a_tenant_that_floods_pushes_leaves_room_for_the_queries_and_pushes_of_another(self):
        servers = self.start(2, "--multitenancy", "--max-queue-rows", "200")
        done, start = threading.Event(), now_ms()

        def flood(thread):
            k = 0
            while not done.is_set():
                k += 1
                try:
                    servers[thread % 2].push(one("f%d" % k), {"__name__": "process_cpu", "service_name": "flood-%d" % (k % 6)},
                                             metadata=[("x-scope-orgid", "noisy")])
                except Exception as error:  # the queue is full: it is refused, which is what is wanted
                    self.assertIn("UNAVAILABLE", str(error).upper())
            return k

        def live():
            try:
                for k in range(15):
                    servers[k % 2].push(one("q"), {"__name__": "process_cpu", "service_name": "quiet-%d" % (k % 4)},
                                        metadata=[("x-scope-orgid", "quiet")])
                    status, _, text = servers[(k + 1) % 2].http("POST", MERGE, json.dumps(
                        {"profileTypeID": CPU, "labelSelector": "{}", "start": start, "end": now_ms() + 1000}),
                        {"Content-Type": "application/json", **org("quiet")})
                    self.assertEqual((status, json.loads(text)["flamegraph"]["total"]), (200, str(k + 1)))
            finally:
                done.set()

        pushed = in_threads([live] + [lambda i=i: flood(i) for i in range(8)])[1:]
        self.assertGreater(sum(pushed), 100)


if __name__ == "__main__":
    unittest.main()
