"""Uploads that were refused are listed for people: by RPC, by the command line, in SQL."""

import json
import subprocess
import unittest
import urllib.parse

from server import HEARTH, Cluster, RpcError, Server, eventually
from test_jfr import RECORDING

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

    def send_file(self, name, content, **arguments):
        """The state of an upload when it has ended."""
        query = urllib.parse.urlencode({"name": name, **arguments})
        status, _, answer = self.server.http("POST", "/api/v1/uploads?" + query, content, {"X-Scope-OrgID": "a"})
        self.assertEqual(status, 200, answer)
        path = "/api/v1/uploads?id=" + json.loads(answer)["uploadId"]

        def ended():
            upload = json.loads(self.server.http("GET", path, None, {"X-Scope-OrgID": "a"})[2])
            return upload if upload["state"] in ("UPLOAD_STATE_DONE", "UPLOAD_STATE_FAILED") else None
        return eventually(ended, what="the end of " + name)

    def test_a_file_that_fails_in_the_background_is_listed(self):
        first = self.send_file("bad.jfr", RECORDING[:3000])
        self.assertEqual(first["state"], "UPLOAD_STATE_FAILED")
        error = self.wait_for(1)[0]
        self.assertEqual([error[k] for k in ("client", "route", "code")], ["upload", "upload", "upload_failed"])
        self.assertEqual(error["message"], 'upload %s, file "bad.jfr": %s' % (first["uploadId"], first["reason"]))
        self.assertEqual(int(error["bodyBytes"]), 3000)
        self.assertRegex(error["bodyHash"], "^[0-9a-f]{16}$")
        self.assertEqual(self.list("b"), [])

        # Another file with the same fault shares the entry; another fault does not.
        again = self.send_file("worse.jfr", RECORDING[:2000])
        (shared,) = self.wait_for(2)
        self.assertEqual(int(shared["uploads"]), 2)
        self.assertIn(again["uploadId"], shared["message"])
        self.send_file("old.txt", b"main;work 3\n", **{"from": "2001-01-01T00:00:00Z"})
        latest = self.wait_for(3)[0]
        self.assertIn('file "old.txt": 1 of 1 profiles were refused: ', latest["message"])
        rows = self.server.sql("SELECT tenant, client, uploads FROM hearth.ingest_errors ORDER BY uploads")
        self.assertEqual(rows, [["a", "upload", "1"], ["a", "upload", "2"]])
        shown = subprocess.run([HEARTH, "admin", "errors", "--url", "http://127.0.0.1:%d" % self.server.port, "--tenant", "a"],
                               capture_output=True, text=True, timeout=60, check=True).stdout
        self.assertIn("upload_failed  upload " + again["uploadId"], shown)

    def test_a_file_that_is_parsed_is_not_listed(self):
        self.assertEqual(self.send_file("good.txt", b"main;work 3\n", **{"from": "now"})["state"], "UPLOAD_STATE_DONE")
        self.refuse()
        self.assertEqual([e["client"] for e in self.wait_for(1)], ["java"])

    def test_the_command_and_the_view_show_equal_rows(self):
        self.refuse()
        self.wait_for(1)
        url = "http://127.0.0.1:%d" % self.server.port
        shown = subprocess.run([HEARTH, "admin", "errors", "--url", url, "--tenant", "a"], capture_output=True,
                               text=True, timeout=60, check=True).stdout
        self.assertIn("java", shown)
        self.assertIn("invalid_argument  pushing IngestInput-pprof failed", shown)
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
