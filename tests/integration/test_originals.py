"""Files as Datadog's clients sent them: kept with their profiles, listed, downloaded to the byte, and deleted when they must be.

The uploads are those of test_datadog.
"""

import base64
import email.parser
import email.policy
import os
import tempfile
import unittest

import wire
from server import RpcError, Server, eventually
from test_cli import hearth
from test_datadog import END, INPUT, RECORDED, START, T, cpu_profile, event, recorded
from test_ingest import form

LISTED = "hearth.v1.ProfileService/"
MB = 1 << 20


def sent_files(headers, body):
    """{name: bytes} of the files of a form."""
    head = b"Content-Type: " + headers["Content-Type"].encode() + b"\r\n\r\n"
    parts = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body).iter_parts()
    return {part.get_filename(): part.get_payload(decode=True) for part in parts if part.get_filename()}


def large_profile(n, value=30):
    """A pprof of about n bytes: most of them are a field that no reader knows."""
    return cpu_profile((value,)) + wire.encode([(99, os.urandom(n))])


class Originals(unittest.TestCase):
    def serve(self, *options):
        server = Server(*options)
        self.addCleanup(server.stop)
        return server

    def push(self, server, service, profile, headers=None):
        kind, body = form([("event", "event.json", event(service)), ("cpu.pprof", "cpu.pprof", profile)])
        status, answered, answer = server.http("POST", INPUT, body, {**kind, **(headers or {})})
        self.assertEqual(status, 200, answer)
        return answered

    def ids(self, server, service, headers=None):
        filter = {"labels": [{"name": "service_name", "value": service}], "start": START, "end": END}
        answer = server.connect(LISTED + "ListProfiles", {"filter": filter, "pageSize": 1000}, headers)
        return [row["id"] for row in answer.get("profiles", [])]

    def kept(self, server, id, headers=None):
        """[(name, size)] of an upload."""
        answer = server.connect(LISTED + "GetProfile", {"id": id}, headers)
        return [(one["name"], int(one["sizeBytes"])) for one in answer.get("originals", [])]

    def read(self, server, id, index=0, offset=0, headers=None):
        answer = server.connect(LISTED + "ReadOriginal", {"id": id, "index": index, "offset": offset}, headers)
        return base64.b64decode(answer.get("data", "")), answer["name"], int(answer["sizeBytes"])

    def refused(self, code, server, id, headers=None, **more):
        with self.assertRaises(RpcError) as refused:
            self.read(server, id, headers=headers, **more)
        self.assertEqual(refused.exception.code, code)

    def rows(self, server):
        return int(server.sql("SELECT count(*) FROM hearth_data.original")[0][0])

    # ---- keeping ----

    def test_the_files_of_every_client_are_kept_to_the_byte(self):
        server = self.serve()
        n_files = n_bytes = 0
        for client, (service, _, _) in RECORDED.items():
            with self.subTest(client=client):
                headers, body = recorded(client)
                self.assertEqual(server.http("POST", INPUT, body, headers)[0], 200)
                sent = sent_files(headers, body)
                (id,) = self.ids(server, service)
                names = [name for name, _ in self.kept(server, id)]
                self.assertGreater(len(names), 0)
                profiles = {name for name in sent if not name.endswith(".json")}
                self.assertLessEqual(set(names), profiles)
                for index, (name, size) in enumerate(self.kept(server, id)):
                    self.assertEqual(self.read(server, id, index), (sent[name], name, len(sent[name])))
                    self.assertEqual(size, len(sent[name]))
                    n_files, n_bytes = n_files + 1, n_bytes + size
                self.refused("not_found", server, id, index=len(names))
        self.assertEqual(self.rows(server), n_files)
        metrics = server.metrics()
        self.assertEqual(metrics[("hearth_originals_stored_total", ())], n_files)
        self.assertEqual(metrics[("hearth_original_bytes_total", ())], n_bytes)

    def test_a_large_file_is_read_in_parts_and_by_the_command_line(self):
        server = self.serve()
        profile = large_profile(9 * MB)
        self.push(server, "large", profile)
        (id,) = self.ids(server, "large")
        parts = [self.read(server, id, offset=offset)[0] for offset in (0, 4 * MB, 8 * MB, 12 * MB, 1 << 40)]
        self.assertEqual([len(part) for part in parts], [4 * MB, 4 * MB, len(profile) - 8 * MB, 0, 0])
        self.assertEqual(b"".join(parts), profile)
        self.refused("invalid_argument", server, id, offset=-1)
        self.refused("invalid_argument", server, id, index=-1)

        url = "http://127.0.0.1:%d" % server.port
        run = lambda *arguments: hearth("profiles", "original", *arguments, env={"HEARTH_URL": url})  # noqa: E731
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "cpu.pprof")
            self.assertEqual(run(id, file).code, 0)
            with open(file, "rb") as f:
                self.assertEqual(f.read(), profile)
            self.assertNotEqual(run(id, file).code, 0, "a file was overwritten")
            self.assertIn("name one", run(id, file + "2", "other.pprof").err)
        shown = hearth("profiles", "show", id, env={"HEARTH_URL": url}).out
        self.assertRegex(shown, r"(?m)^original %d bytes: cpu\.pprof$" % len(profile))

    def test_nothing_is_kept_if_the_option_is_off(self):
        server = self.serve("--keep-originals=")
        self.push(server, "off", cpu_profile())
        (id,) = self.ids(server, "off")
        self.assertEqual((self.kept(server, id), self.rows(server)), ([], 0))
        self.refused("not_found", server, id)

    def test_other_protocols_keep_nothing(self):
        server = self.serve()
        server.push(cpu_profile() + wire.encode([(9, T * 1_000_000)]), {"__name__": "process_cpu", "service_name": "push"})
        self.assertEqual(self.rows(server), 0)

    # ---- deleting ----

    def test_the_oldest_files_beyond_the_budget_are_deleted_and_too_large_ones_are_counted(self):
        server = self.serve("--max-originals-bytes", "350k")
        for i in range(6):
            self.push(server, "budget-%d" % i, large_profile(100_000))
        eventually(lambda: self.rows(server) <= 3, what="the budget")
        kept = [bool(self.kept(server, id)) for i in range(6) for id in self.ids(server, "budget-%d" % i)]
        self.assertEqual(kept, [False] * 3 + [True] * 3)
        dropped = self.push(server, "too-large", large_profile(400_000))["hearth-dropped"]
        self.assertIn("large_originals=1", dropped)
        (id,) = self.ids(server, "too-large")
        self.assertEqual(self.kept(server, id), [])
        self.assertEqual(server.metrics()[("hearth_discarded_total", (("reason", "large_originals"),))], 1)

    def test_files_expire_with_the_profiles_of_their_tenant(self):
        one, two = {"X-Scope-OrgID": "one"}, {"X-Scope-OrgID": "two"}
        server = self.serve("--multitenancy")
        for tenant in (one, two):
            self.push(server, "old", cpu_profile(), tenant)
        self.assertEqual(self.rows(server), 2)
        server.connect("hearth.v1.AdminService/SetRetention", {"name": "retain-raw", "durationMs": 60_000}, one)
        eventually(lambda: self.rows(server) == 1, what="retention")
        (id,) = self.ids(server, "old", two)
        self.assertEqual(self.read(server, id, headers=two)[0], cpu_profile())

    def test_erased_profiles_take_their_files_along(self):
        server = self.serve()
        for service in ("web", "api"):
            self.push(server, service, cpu_profile())
        (web,), (api,) = self.ids(server, "web"), self.ids(server, "api")
        erase = {"labelSelector": '{service_name="web"}', "start": START, "end": END}
        n = int(server.connect("hearth.v1.AdminService/Erase", {**erase, "dryRun": True})["series"])
        self.assertEqual(self.rows(server), 2)
        server.connect("hearth.v1.AdminService/Erase", {**erase, "expectedSeries": n, "requestedBy": "the test"})
        self.assertEqual(self.rows(server), 1)
        self.refused("not_found", server, web)
        self.assertEqual(self.read(server, api)[0], cpu_profile())

    # ---- who ----

    def test_tenants_do_not_see_files_of_others(self):
        one, two = {"X-Scope-OrgID": "one"}, {"X-Scope-OrgID": "two"}
        server = self.serve("--multitenancy")
        for tenant, value in ((one, 30), (two, 40)):
            self.push(server, "same", cpu_profile((value,)), tenant)
        (first,), (second,) = self.ids(server, "same", one), self.ids(server, "same", two)
        self.assertEqual(self.read(server, first, headers=one)[0], cpu_profile((30,)))
        self.assertEqual(self.read(server, second, headers=two)[0], cpu_profile((40,)))
        self.refused("not_found", server, first, headers=two)
        self.refused("not_found", server, second, headers=one)

    def test_files_are_stored_after_a_crash_if_their_profiles_are(self):
        server = self.serve()
        self.push(server, "crash", cpu_profile())
        server.kill9()
        server.start()
        (id,) = self.ids(server, "crash")
        self.assertEqual(self.read(server, id)[0], cpu_profile())


if __name__ == "__main__":
    unittest.main()
