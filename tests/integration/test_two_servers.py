"""Several hearthd on one database: what one acknowledged, the next question to any other finds."""

import os
import shutil
import subprocess
import unittest

from pprof import Profile
from questions import CPU
from server import Cluster, RpcError, Server, eventually, in_threads, now_ms, sql, temporary_directory

TYPES = [("samples", "count"), ("cpu", "nanoseconds")]


def one(name, value=1):
    return Profile(TYPES).add(["main", name], [1, value]).encode()


class TwoServers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        # At once, on an empty database: one of them migrates.
        sql(cls.cluster.url(), "CREATE DATABASE shared TEMPLATE template0")
        cls.url = cls.cluster.url("shared")
        cls.servers = in_threads([lambda: Server(database_url=cls.url)] * 3)

    @classmethod
    def tearDownClass(cls):
        for server in cls.servers:
            server.stop()
        cls.cluster.stop()

    def database(self, name):
        sql(self.cluster.url(), 'CREATE DATABASE "%s"' % name)
        return self.cluster.url(name)

    def test_an_empty_database_is_migrated_once(self):
        rows = sql(self.url, "SELECT count(*), count(DISTINCT writer_id) FROM hearth_data.writer")
        self.assertEqual(rows, [["3", "3"]])
        for server in self.servers:
            self.assertNotIn("level=error", server.log())

    def test_a_push_to_one_server_is_in_the_next_answer_of_another(self):
        start = now_ms()
        for round in range(100):
            writer, reader = self.servers[round % 3], self.servers[(round + 1) % 3]
            # In turn: a new stack in a known series, a new series, a new service.
            labels = {"__name__": "process_cpu", "service_name": "fresh"}
            if round % 3 == 1:
                labels["pod"] = "pod-%d" % round
            elif round % 3 == 2:
                labels["service_name"] = "fresh-%d" % round
            name = "stack-%d" % round
            writer.push(one(name), labels)
            selector = "{%s}" % ",".join('%s="%s"' % pair for pair in labels.items())
            end = now_ms() + 1000
            flame = reader.flamegraph(CPU, selector, start, end)
            self.assertIn(name, flame.functions(), round)
            last = "pod" if "pod" in labels else "service_name"
            self.assertIn(labels[last], reader.label_values(last, start, end, [selector]), round)

    def test_two_writers_of_one_series_are_merged(self):
        start = now_ms()
        labels = {"__name__": "process_cpu", "service_name": "both"}
        in_threads([lambda s=s: [s.push(one("f%d" % k), labels) for k in range(20)] for s in self.servers])
        for server in self.servers:
            flame = server.flamegraph(CPU, '{service_name="both"}', start, now_ms() + 1)
            self.assertEqual(flame.functions(), {"main": (0, 60), **{"f%d" % k: (3, 3) for k in range(20)}})
            found = server.series(start, now_ms() + 1, ['{service_name="both"}'], ["service_name"])
            self.assertEqual(found, [(("service_name", "both"),)])

    def test_an_answer_of_one_server_is_that_of_the_other_byte_for_byte(self):
        start = now_ms()
        for k, server in enumerate(self.servers):
            server.push(one("g%d" % k, k + 1), {"__name__": "process_cpu", "service_name": "same", "pod": str(k)})
        end = now_ms() + 1
        answers = [
            (
                server.stacktraces(CPU, '{service_name="same"}', start, end),
                server.series(start, end, ['{service_name="same"}']),
                server.select_series(CPU, '{service_name="same"}', start, end, 1, ["pod"]),
            )
            for server in self.servers
        ]
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(answers[0], answers[2])

    def test_a_server_waits_for_a_database_that_is_not_there_yet(self):
        server = Server(database_url=self.cluster.url("later"), wait=False)
        self.addCleanup(server.stop)
        status, _, reason = server.http("GET", "/ready")
        self.assertEqual(status, 503)
        self.assertIn(b"waiting for the database", reason)
        eventually(lambda: b"later" in server.http("GET", "/ready")[2], what="a reason that names the database")
        self.assertEqual(server.http("GET", "/healthz")[0], 200)
        for ask in (lambda: server.push(one("x"), {"__name__": "process_cpu"}), lambda: server.profile_types(1, 2)):
            with self.assertRaises(RpcError) as caught:
                ask()
            self.assertEqual(caught.exception.code, "unavailable")
            self.assertIn("waiting for the database", caught.exception.message)
        self.database("later")
        server.wait_ready()
        server.push(one("x"), {"__name__": "process_cpu"})
        self.assertEqual(server.flamegraph(CPU, "{}", now_ms() - 3_600_000, now_ms() + 1).total, 1)

    def test_a_server_waits_for_a_postgresql_that_does_not_run_yet(self):
        cluster = Cluster(start=False)
        self.addCleanup(cluster.stop)
        server = Server(database_url=cluster.url(), wait=False)
        status, _, reason = server.http("GET", "/ready")
        self.assertEqual(status, 503)
        self.assertIn(b"waiting for the database", reason)
        cluster.start()
        server.wait_ready()
        server.push(one("x"), {"__name__": "process_cpu"})
        # It goes away and comes back.
        cluster.stop()
        eventually(lambda: server.http("GET", "/ready")[0] == 503, what="/ready notices")
        cluster.start()
        server.wait_ready()
        server.push(one("y"), {"__name__": "process_cpu"})
        self.assertEqual(server.flamegraph(CPU, "{}", now_ms() - 3_600_000, now_ms() + 1).total, 2)
        self.assertEqual(server.terminate(), 0)

    def test_a_server_without_its_database_still_stops_at_once(self):
        server = Server(database_url="host=%s user=hearth" % temporary_directory(), wait=False)
        self.assertEqual(server.terminate(), 0)

    def test_a_database_of_another_history_is_left_alone(self):
        url = self.database("history")
        server = Server(database_url=url)
        self.assertEqual(server.terminate(), 0)
        history = "SELECT number, name, checksum FROM hearth_data.migration ORDER BY 1"
        before = sql(url, history)
        sql(url, "UPDATE hearth_data.migration SET checksum = 'of another text' WHERE number = 1")
        changed = sql(url, history)
        server = Server(database_url=url, wait=False)
        eventually(lambda: b"migrated with another text" in server.http("GET", "/ready")[2], 10, what="a reason that says so")
        self.assertEqual(server.http("GET", "/ready")[0], 503)
        self.assertEqual(server.terminate(), 0)
        self.assertEqual(sql(url, history), changed)
        sql(url, "UPDATE hearth_data.migration SET checksum = '%s' WHERE number = 1" % before[0][2])
        server = Server(database_url=url)
        self.assertEqual(server.terminate(), 0)


@unittest.skipUnless(shutil.which("pgbouncer"), "pgbouncer is not installed")
class PgBouncer(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.stop)
        directory = temporary_directory()
        with open(os.path.join(directory, "users.txt"), "w") as users:
            users.write('"hearth" ""\n')
        with open(os.path.join(directory, "bouncer.ini"), "w") as ini:
            ini.write(
                "[databases]\n* = host=%s\n[pgbouncer]\nlisten_addr =\nunix_socket_dir = %s\nlisten_port = 6432\n"
                "auth_type = trust\nauth_file = %s/users.txt\npool_mode = transaction\ndefault_pool_size = 4\n"
                "ignore_startup_parameters = extra_float_digits\n" % (self.cluster.directory, directory, directory)
            )
        if self.cluster.as_user:
            shutil.chown(directory, "postgres", "postgres")
        with open(os.path.join(directory, "log"), "ab") as log:
            self.bouncer = subprocess.Popen(
                [*self.cluster.as_user, shutil.which("pgbouncer"), os.path.join(directory, "bouncer.ini")],
                stdout=log, stderr=log, cwd="/",
            )
        self.addCleanup(self.bouncer.wait)
        self.addCleanup(self.bouncer.terminate)
        self.url = "host=%s port=6432 user=hearth dbname=postgres" % directory
        eventually(lambda: os.path.exists(os.path.join(directory, ".s.PGSQL.6432")), what="pgbouncer's socket")

    def test_everything_works_through_a_pooler_in_transaction_mode(self):
        servers = in_threads([lambda: Server(database_url=self.url)] * 2)
        start = now_ms()

        def push(server, part):
            for k in range(40):
                labels = {"__name__": "process_cpu", "service_name": "s%d" % (k % 3), "pod": str(k % 5)}
                server.push(one("f%d" % k), labels, id="%d-%d" % (part, k))
                if k % 10 == 0:
                    server.push(one("f%d" % k), labels, id="%d-%d" % (part, k))

        in_threads([lambda s=s, k=k: push(s, k) for k in range(2) for s in servers])
        for server in servers:
            # The two servers pushed the same IDs for the same labels.
            flame = server.flamegraph(CPU, "{}", start, now_ms() + 1)
            self.assertEqual(flame.total, 80)
            self.assertEqual(flame.functions()["f0"], (2, 2))
            self.assertEqual(server.label_values("pod", start, now_ms() + 1), ["0", "1", "2", "3", "4"])
            self.assertEqual(sum(v for _, p in server.select_series(CPU, "{}", start, now_ms() + 1000, 1) for _, v in p), 80)
        for server in servers:
            self.assertNotIn("level=error", server.log())
            self.assertEqual(server.terminate(), 0)


if __name__ == "__main__":
    unittest.main()
