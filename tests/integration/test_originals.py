"""Files as clients sent them: kept with their profiles, listed, downloaded to the byte, and deleted when they must be.

The uploads of Datadog's clients are those of test_datadog.
"""

import base64
import email.parser
import email.policy
import gzip
import os
import tempfile
import unittest
import urllib.parse

import wire
from server import RpcError, Server, eventually
from test_access import AccessServer, bearer
from test_cli import hearth
from test_datadog import END, INPUT, RECORDED, START, T, cpu_profile, event, recorded, rfc3339
from test_ingest import form
from test_jfr import RECORDING

LISTED = "hearth.v1.ProfileService/"
MB = 1 << 20


def sent_files(headers, body):
    """{name: bytes} of the files of a form."""
    head = b"Content-Type: " + headers["Content-Type"].encode() + b"\r\n\r\n"
    parts = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body).iter_parts()
    return {part.get_filename(): part.get_payload(decode=True) for part in parts if part.get_filename()}


def timed_profile(value=30, filler=0):
    """A plain pprof of the time of the test, with filler of a field that no reader knows."""
    return cpu_profile((value,)) + wire.encode([(9, T * 1_000_000)] + [(99, os.urandom(filler))] * bool(filler))


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

    def test_a_clients_metadata_of_its_process_is_listed_with_the_originals(self):
        tags = "service:s,runtime-id:529f:344a,process_id:7,env:test,profiler_version:1.2,runtime_os:"
        expected = [("runtime-id", "529f:344a"), ("process_id", "7"), ("profiler_version", "1.2")]
        as_event = [("event", "event.json", event("s", tags_profiler=tags))]
        as_form = [("tags[]", None, tags.encode()), ("family", None, b"python"),
                   ("recording-start", None, rfc3339(T).encode()), ("recording-end", None, rfc3339(T + 5000).encode())]
        for keep, parts in (("datadog", as_event), ("datadog", as_form), ("", as_event)):
            with self.subTest(keep=keep, parts=parts):
                server = self.serve("--keep-originals=" + keep)
                headers, body = form([*parts, ("cpu.pprof", "cpu.pprof", timed_profile())])
                self.assertEqual(server.http("POST", INPUT, body, headers)[0], 200)
                (id,) = self.ids(server, "s")
                answer = server.connect(LISTED + "GetProfile", {"id": id})
                said = [(tag["name"], tag["value"]) for tag in answer.get("clientTags", [])]
                self.assertEqual(said, expected if keep else [])
                shown = hearth("profiles", "show", id, env={"HEARTH_URL": "http://127.0.0.1:%d" % server.port}).out
                self.assertEqual("client runtime-id: 529f:344a" in shown.splitlines(), keep != "")

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
        self.assertRegex(shown, r"(?m)^original %.2f MiB: cpu\.pprof$" % (len(profile) / 2**20))

    def test_no_original_is_kept_if_the_option_is_off(self):
        server = self.serve("--keep-originals=")
        self.push(server, "off", cpu_profile())
        (id,) = self.ids(server, "off")
        self.assertEqual((self.kept(server, id), self.rows(server)), ([], 0))
        self.refused("not_found", server, id)

    def test_originals_of_unlisted_protocols_are_not_kept(self):
        server = self.serve()
        server.push(timed_profile(), {"__name__": "process_cpu", "service_name": "push"})
        self.ingest(server, "ingest", timed_profile())
        self.assertEqual(self.rows(server), 0)
        server = self.serve("--keep-originals=push,ingest")
        self.push(server, "datadog", cpu_profile())
        self.assertEqual(self.rows(server), 0)

    def test_a_protocol_that_cannot_be_kept_is_refused_at_the_start(self):
        with self.assertRaisesRegex(Exception, r'keep-originals has .*otlp.*; its protocols are datadog, ingest \(POST /ingest\) and push'):
            self.serve("--keep-originals=push,otlp")

    # ---- push.v1 and /ingest ----

    def ingest(self, server, service, body, headers=None, **arguments):
        query = urllib.parse.urlencode({"name": service, "from": T // 1000, "until": T // 1000 + 10, **arguments})
        status, answered, answer = server.http("POST", "/ingest?" + query, body, headers)
        self.assertEqual(status, 200, answer)
        return answered

    def the_original(self, server, service):
        """(name, bytes) of the only file of the only upload."""
        (id,) = self.ids(server, service)
        ((name, size),) = self.kept(server, id)
        found = self.read(server, id)
        self.assertEqual(found[1:], (name, size))
        return name, found[0]

    def test_every_profile_of_a_push_keeps_its_bytes(self):
        server = self.serve("--keep-originals=datadog,push")
        plain = timed_profile(filler=1000)
        sent = {"plain": ("profile.pb", plain), "zipped": ("profile.pb.gz", gzip.compress(plain, 9))}
        series = [
            {"labels": [{"name": "__name__", "value": "process_cpu"}, {"name": "service_name", "value": service}],
             "samples": [{"rawProfile": base64.b64encode(profile).decode()}]}
            for service, (_, profile) in sent.items()
        ]
        server.connect("push.v1.PusherService/Push", {"series": series})
        for service, original in sent.items():
            self.assertEqual(self.the_original(server, service), original)
        server.push(plain, {"__name__": "process_cpu", "service_name": "grpc"}, id="once")
        server.push(plain, {"__name__": "process_cpu", "service_name": "grpc"}, id="once")
        self.assertEqual(self.the_original(server, "grpc"), ("profile.pb", plain))
        self.assertEqual(self.rows(server), 3)
        self.push(server, "datadog", cpu_profile())
        self.assertEqual(self.rows(server), 4)

    def test_bodies_of_ingest_are_kept_as_they_were_sent(self):
        server = self.serve("--keep-originals=ingest")
        profile, text = timed_profile(filler=1000), b"main;work 5\n"
        twice = gzip.compress(gzip.compress(profile))
        recording = gzip.compress(RECORDING)
        sent = {  # service: (name, body, headers, arguments)
            "pprof": ("profile.pb", profile, {}, {"format": "pprof"}),
            "recognised": ("profile.pb", profile, {}, {}),
            "twice": ("profile.pb.gz", twice, {}, {}),
            "encoded": ("profile.collapsed.gz", gzip.compress(text), {"Content-Encoding": "gzip"}, {"format": "folded"}),
            "text": ("profile.collapsed", text, {}, {}),
            "lines": ("profile.lines", b"main;work\n", {}, {"format": "lines"}),
            "jfr": ("profile.jfr.gz", recording, {}, {"format": "jfr"}),
        }
        for service, (name, body, headers, arguments) in sent.items():
            with self.subTest(service):
                self.ingest(server, service, body, headers, **arguments)
                self.assertEqual(self.the_original(server, service), (name, body))

    def test_the_file_of_a_form_is_kept_and_not_the_form(self):
        server = self.serve("--keep-originals=ingest")
        profile, zipped = timed_profile(filler=1000), gzip.compress(timed_profile(filler=2000))
        recording = gzip.compress(RECORDING)
        cases = {
            "go": ("profile.pprof", profile, [("profile", "profile.pprof", profile), ("sample_type_config", "c.json", b"{}")]),
            "zipped": ("cpu.pb.gz", zipped, [("profile", "cpu.pb.gz", zipped)]),
            "java": ("app.jfr", recording, [("labels", "labels", gzip.compress(b"")), ("jfr", "app.jfr", recording)]),
            "plain": ("work.jfr", RECORDING, [("jfr", "work.jfr", RECORDING)]),
        }
        for service, (name, content, files) in cases.items():
            headers, body = form(files)
            with self.subTest(service):
                self.ingest(server, service, body, headers)
                self.assertEqual(self.the_original(server, service), (name, content))
                headers["Content-Encoding"] = "gzip"
                self.ingest(server, service + "-encoded", gzip.compress(body), headers)
                self.assertEqual(self.the_original(server, service + "-encoded"), (name, content))

    def test_a_refused_profile_and_an_empty_one_keep_nothing(self):
        server = self.serve("--keep-originals=ingest,push")
        status, _, answer = server.http("POST", "/ingest?name=bad&format=pprof", b"\x0a\xff\xff\xff\x0fdamaged")
        self.assertEqual(status, 422, answer)
        self.ingest(server, "empty", timed_profile(value=0), format="pprof")
        with self.assertRaises(RpcError):
            server.push(b"damaged", {"__name__": "process_cpu", "service_name": "bad"})
        self.assertEqual(self.rows(server), 0)

    def test_the_budget_and_the_size_hold_for_pushes(self):
        server = self.serve("--keep-originals=ingest,push", "--max-originals-bytes", "350k")
        for i in range(3):
            server.push(timed_profile(filler=100_000), {"__name__": "process_cpu", "service_name": "budget-%d" % i})
            self.ingest(server, "budget-%d" % (i + 3), timed_profile(filler=100_000))
        eventually(lambda: self.rows(server) <= 3, what="the budget")
        kept = [bool(self.kept(server, id)) for i in range(6) for id in self.ids(server, "budget-%d" % i)]
        self.assertEqual((sum(kept), len(kept)), (3, 6))
        dropped = self.ingest(server, "too-large", timed_profile(filler=400_000))["hearth-dropped"]
        self.assertIn("large_originals=1", dropped)
        self.assertEqual(self.kept(server, self.ids(server, "too-large")[0]), [])

    def test_the_command_line_downloads_what_a_push_sent(self):
        server = self.serve("--keep-originals=push")
        server.push(timed_profile(), {"__name__": "process_cpu", "service_name": "push"})
        (id,) = self.ids(server, "push")
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "cpu.pb")
            run = hearth("profiles", "original", id, file, env={"HEARTH_URL": "http://127.0.0.1:%d" % server.port})
            self.assertEqual(run.code, 0, run.err)
            with open(file, "rb") as f:
                self.assertEqual(f.read(), timed_profile())

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

    def test_files_of_erased_profiles_are_deleted(self):
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

    def test_a_caller_who_sees_a_part_of_a_service_does_not_delete_its_files(self):
        hearth = AccessServer()
        self.addCleanup(hearth.stop)
        editor = hearth.token(("red", "editor"), ("red", "ingest"))["token"]
        narrowed = hearth.token(("red", "editor", '{team="shop"}'))["token"]
        for team, service in (("shop", "shared"), ("bank", "shared"), ("shop", "cart")):
            said = event(service, tags_profiler="service:%s,team:%s" % (service, team))
            kind, body = form([("event", "event.json", said), ("cpu.pprof", "cpu.pprof", timed_profile())])
            self.assertEqual(hearth.server.http("POST", INPUT, body, {**kind, **bearer(editor)})[0], 200)

        def erase(service, token):
            asked = {"labelSelector": '{service_name="%s",team="shop"}' % service, "start": START, "end": END}
            n = hearth.post("/hearth.v1.AdminService/Erase", {**asked, "dryRun": True}, bearer(token))[2]["series"]
            asked.update(expectedSeries=n, requestedBy="the test")
            return hearth.post("/hearth.v1.AdminService/Erase", asked, bearer(token))[::2]

        status, answer = erase("shared", narrowed)
        self.assertEqual((status, answer.get("code")), (403, "permission_denied"))
        self.assertIn("files that were kept", answer["message"])
        self.assertEqual(self.rows(hearth.server), 3)
        self.assertEqual(erase("cart", narrowed)[0], 200)
        self.assertEqual(self.rows(hearth.server), 2)
        self.assertEqual(erase("shared", editor)[0], 200)
        self.assertEqual(self.rows(hearth.server), 0)

    def test_files_are_stored_after_a_crash_if_their_profiles_are(self):
        server = self.serve()
        self.push(server, "crash", cpu_profile())
        server.kill9()
        server.start()
        (id,) = self.ids(server, "crash")
        self.assertEqual(self.read(server, id)[0], cpu_profile())


if __name__ == "__main__":
    unittest.main()
