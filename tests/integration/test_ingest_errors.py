"""Uploads that were refused are listed for people: by RPC, by the command line, in SQL."""

import json
import subprocess
import unittest

from server import HEARTH, Cluster, RpcError, Server, eventually

LIST = "hearth.v1.AdminService/IngestErrors"
DAMAGED = b"\x0a\xff\xff\xff\x0fdamaged"


class IngestErrors(unittest.TestCase):
    def setUp(self):
        self.server = Server("--multitenancy", "--max-ingest-errors=3")
        self.addCleanup(self.server.stop)

    def refuse(self, spy="javaspy"):
        status, _, _ = self.server.http("POST", "/ingest?format=pprof&name=app&spyName=" + spy, DAMAGED,
                                        {"X-Scope-OrgID": "a"})
        self.assertEqual(status, 422)

    def list(self, tenant="a", **request):
        return self.server.connect(LIST, request, {"X-Scope-OrgID": tenant}).get("errors", [])

    def wait_for(self, n, tenant="a"):
        """The list, when it has n uploads."""
        def find():
            errors = self.list(tenant)
            return errors if sum(int(e["uploads"]) for e in errors) == n else None
        return eventually(find, what="%d refused uploads" % n)

    def test_a_refused_upload_is_listed_for_its_tenant(self):
        self.refuse()
        error = self.wait_for(1)[0]
        self.assertEqual((error["client"], error["route"], error["code"]), ("java", "/ingest", "invalid_argument"))
        self.assertIn("IngestInput-pprof", error["message"])
        self.assertEqual(int(error["bodyBytes"]), len(DAMAGED))
        self.assertRegex(error["bodyHash"], "^[0-9a-f]{16}$")
        self.assertEqual(error["firstMs"], error["lastMs"])
        self.assertEqual(self.list("b"), [])

    def test_equal_errors_share_an_entry_and_others_do_not(self):
        for _ in range(3):
            self.refuse()
        self.refuse("gospy")
        errors = self.wait_for(4)
        self.assertEqual([(e["client"], int(e["uploads"])) for e in errors], [("go", 1), ("java", 3)])
        self.assertEqual([e["client"] for e in self.list(client="java")], ["java"])
        self.assertEqual(self.list(route="/v1/traces"), [])

    def test_a_tenant_keeps_its_latest_kinds_only(self):
        for name in "abcde":
            status, _, _ = self.server.http("POST", "/ingest?name=app.%s" % name, b"a;b 1\n", {"X-Scope-OrgID": "a"})
            self.assertEqual(status, 400)
            eventually(lambda: any('"app.%s"' % name in e["message"] for e in self.list()), what=name)
        self.assertEqual([e["message"].split('"')[1] for e in self.list()], ["app.e", "app.d", "app.c"])

    def test_a_refused_push_is_listed(self):
        with self.assertRaises(RpcError):
            self.server.push(b"damaged", {"__name__": "process_cpu", "service_name": "api"},
                             metadata=(("x-scope-orgid", "a"),))
        error = self.wait_for(1)[0]
        self.assertEqual(error["route"], "/push.v1.PusherService/Push")

    def test_the_command_and_the_view_show_the_same(self):
        self.refuse()
        self.wait_for(1)
        url = "http://127.0.0.1:%d" % self.server.port
        shown = subprocess.run([HEARTH, "admin", "errors", "--url", url, "--tenant", "a"], capture_output=True,
                               text=True, timeout=60, check=True).stdout
        self.assertIn("java", shown)
        self.assertIn("invalid_argument: pushing IngestInput-pprof failed", shown)
        answer = json.loads(subprocess.run([HEARTH, "admin", "errors", "--url", url, "--tenant", "a", "-o", "json"],
                                           capture_output=True, text=True, timeout=60, check=True).stdout)
        error = answer["errors"][0]
        rows = self.server.sql("SELECT tenant, client, uploads, body_hash FROM hearth.ingest_errors")
        self.assertEqual(rows, [["a", "java", "1", error["bodyHash"]]])

    def test_errors_outlive_the_server_that_stops(self):
        self.refuse()
        self.server.terminate()
        self.server.start()
        self.wait_for(1)


class WithoutDatabase(unittest.TestCase):
    def test_errors_wait_while_the_database_is_away(self):
        cluster = Cluster()
        self.addCleanup(cluster.stop)
        server = Server("--database-url", cluster.url())
        self.addCleanup(server.stop)
        cluster.stop()
        status, _, _ = server.http("POST", "/ingest?format=pprof&name=app", DAMAGED)
        self.assertEqual(status, 422)
        cluster.start()
        self.assertEqual(len(eventually(lambda: server.connect(LIST, {}).get("errors"), what="the error")), 1)


if __name__ == "__main__":
    unittest.main()
