"""Pushes that are kept on the disk while the database is away: each is stored once when it is back."""

import base64
import errno
import gzip
import os
import pwd
import signal
import threading
import unittest
import urllib.parse

import otlp_profiles
import prometheus
import wire
from pprof import Profile
from test_faults import Faults
from test_jfr import OURS, RECORDING, T
from server import PROFILES, PUSH, Cluster, RpcError, Server, Session, eventually, now_ms, own_directory

TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
LATER = 40  # seconds in which a push that is spooled is answered, or one that is refused


def profile(value, at_ms=None):
    return Profile(TYPES, time_ns=(at_ms or now_ms()) * 1_000_000).add(["main", "work"], [value, value * 10]).encode()


def request(service, value=1, id="", at_ms=None):
    pairs = [(1, [(1, "__name__"), (2, "process_cpu")]), (1, [(1, "service_name"), (2, service)])]
    sample = [(1, profile(value, at_ms))] + ([(2, id)] if id else [])
    return wire.encode([(1, pairs + [(2, sample)])])


class Spool(unittest.TestCase):
    options = ("--request-timeout", "5s")

    def setUp(self):
        self.cluster = Cluster()
        self.dir = own_directory()
        self.server = self.start()
        self.service = self.id().rsplit(".", 1)[1]

    def tearDown(self):
        self.server.kill()
        self.cluster.stop()

    def start(self, *options, wait=True, env=None):
        return Server("--spool-dir", self.dir, *self.options, *options, database_url=self.cluster.url(), wait=wait, env=env)

    def away(self):
        self.cluster.stop()
        eventually(lambda: self.metric("hearth_ready") == 0, what="a server that notices")

    def back(self):
        self.cluster.start()
        self.server.wait_ready()

    def metric(self, name):
        return prometheus.value(self.server.metrics(), name)

    def push(self, **what):
        """The header hearth-spooled of a push; None: it was stored."""
        status, headers, answer = self.send(**what)
        self.assertEqual(status, 200, answer)
        return headers.get("hearth-spooled")

    def send(self, **what):
        body = request(self.service, **what)
        return self.server.http("POST", "/" + PUSH, body, {"Content-Type": "application/proto"}, timeout=LATER)

    def ingest(self, service, value, **arguments):
        query = "".join("&%s=%s" % pair for pair in arguments.items())
        body = "main;work %d\n" % value
        return self.server.http("POST", "/ingest?name=%s&format=collapsed&units=samples%s" % (service, query),
                                body.encode(), {"Content-Type": "text/plain"}, timeout=LATER)

    def export(self, service):
        e = otlp_profiles.Exporter()
        cpu = e.cpu(now_ms() * 1_000_000, [e.sample(e.stack("work"), [1, 2], [1, 2])])
        body = otlp_profiles.to_proto(e.resource({"service.name": service}, cpu).export())
        headers = {"Content-Type": otlp_profiles.PROTO}
        return self.server.http("POST", otlp_profiles.PATH, body, headers, timeout=LATER)[:2]

    def rows(self, service=None):
        """Number of rows of the service."""
        found = self.server.sql(
            "SELECT count(*) FROM %s JOIN hearth_data.service USING (service_id) WHERE name = '%s'"
            % (PROFILES, service or self.service))
        return int(found[0][0])

    def total(self, service=None, profile_type="process_cpu:samples:count:cpu:nanoseconds"):
        now = now_ms()
        answer = self.server.connect("querier.v1.QuerierService/SelectMergeStacktraces", {
            "profileTypeID": profile_type,
            "labelSelector": '{service_name="%s"}' % (service or self.service),
            "start": now - 3_600_000, "end": now + 60_000})
        return int(answer.get("flamegraph", {}).get("total", 0))

    def wait_replayed(self):
        eventually(lambda: self.metric("hearth_spool_records") == 0, seconds=60, what="the spooled pushes")

    def test_pushes_are_spooled_survive_a_kill_and_are_stored_once(self):
        self.assertIsNone(self.push(value=1))
        self.away()
        for value in (2, 4, 8):
            self.assertEqual(self.push(value=value), "1")
        self.assertEqual(self.push(value=16, id="one"), "1")
        self.assertEqual(self.metric("hearth_spool_records"), 4)
        self.server.kill9()
        self.server = self.start(wait=False)
        self.assertEqual(self.push(value=16, id="one"), "1")  # the client has lost the answer
        self.assertEqual(self.metric("hearth_spool_records"), 5)
        self.back()
        self.wait_replayed()
        self.assertEqual(self.rows(), 5)
        self.assertEqual(self.total(), 1 + 2 + 4 + 8 + 16)
        self.assertEqual(self.metric("hearth_spool_replayed_total"), 5)
        self.assertEqual(self.metric("hearth_profiles_repeated_total"), 1)
        self.assertEqual(os.path.getsize(os.path.join(self.dir, "spool")), 0)
        self.assertIsNone(self.push(value=32))

    def test_pushes_of_new_series_are_spooled_before_the_server_has_noticed_that_the_database_is_away(self):
        self.push(value=1)
        self.cluster.process.send_signal(signal.SIGQUIT)  # ends each process at once
        refused, spooled = [], 0
        for i in range(20):
            self.service = "new-%d" % i
            status, headers, answer = self.send(value=2)
            if status == 200:
                spooled += headers.get("hearth-spooled") == "1"
            else:
                refused.append(answer)
        self.cluster.process.wait()
        self.back()
        self.wait_replayed()
        rows = sum(self.rows("new-%d" % i) for i in range(20))
        if refused:  # its COMMIT was under way when the database ended
            self.assertIn(b"it may still be stored", refused[0])
            rows += 1 - self.rows("new-%d" % (19 - spooled))
        self.assertLessEqual(len(refused), 1)
        self.assertGreater(spooled, 0)
        self.assertEqual(rows, 20)

    def test_pushes_waiting_when_the_database_disconnects_are_spooled_in_each_format(self):
        self.server.terminate()
        # No push waits for its deadline. A batch under way is a script, which has not been told to commit: that of
        # prepared statements would be in doubt.
        self.options = ("--request-timeout", "60s", "--commit-prepared-rows", "0")
        self.server = self.start()
        services = ["pprof-%d" % i for i in range(8)] + ["texts-%d" % i for i in range(8)] + ["otlp-%d" % i for i in range(8)]
        answers = {}

        def push(service):
            if service.startswith("pprof"):
                body = request(service, 3, id="one" if service == "pprof-0" else "")
                status, headers, _ = self.server.http("POST", "/" + PUSH, body, {"Content-Type": "application/proto"}, timeout=LATER)
            elif service.startswith("texts"):
                status, headers, _ = self.ingest(service, 5)
            else:
                status, headers = self.export(service)
            answers[service] = status, headers.get("hearth-spooled")

        for service in services:  # their series are known
            push(service)
        self.assertEqual(set(answers.values()), {(200, None)})
        queued = "hearth_commit_queue_rows"
        lock = Session(self.cluster.url())
        lock.run("BEGIN; LOCK hearth_data.ingest_batch IN EXCLUSIVE MODE")
        threads = [threading.Thread(target=push, args=(service,)) for service in services]
        for thread in threads:
            thread.start()
        eventually(lambda: self.metric(queued) >= len(services), what="pushes that wait in the queue")
        self.cluster.process.send_signal(signal.SIGQUIT)  # ends each process at once
        for thread in threads:
            thread.join()
        lock.close()
        self.assertEqual({s: answers[s] for s in services if answers[s] not in ((200, "1"), (202, "1"))}, {})
        self.assertEqual(self.metric(queued), 0)
        self.cluster.process.wait()
        self.back()
        self.wait_replayed()
        self.assertEqual({s: self.rows(s) for s in services if self.rows(s) != (1 if s == "pprof-0" else 2)}, {})

    def test_no_push_is_lost_or_stored_twice_when_the_database_ends_under_load(self):
        services = ["busy-%d" % i for i in range(16)]
        kept, doubted = ({service: 0 for service in services} for _ in range(2))
        ends, errors = threading.Event(), []

        def push(service):
            body = request(service, 1)
            while True:
                is_last = ends.is_set()
                status, _, answer = self.server.http("POST", "/" + PUSH, body, {"Content-Type": "application/proto"}, timeout=LATER)
                if status == 200:
                    kept[service] += 1
                elif b"it may still be stored" in answer:
                    doubted[service] += 1
                else:
                    errors.append(answer)
                if is_last:
                    return

        threads = [threading.Thread(target=push, args=(service,)) for service in services]
        for thread in threads:
            thread.start()
        eventually(lambda: min(kept.values()) >= 3, what="pushes of each series")
        self.cluster.process.send_signal(signal.SIGQUIT)
        self.cluster.process.wait()
        ends.set()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])  # above all none of which nothing will be stored
        self.back()
        self.wait_replayed()
        eventually(lambda: self.metric("hearth_commit_queue_rows") == 0, what="the batches in doubt")
        rows = {service: self.rows(service) for service in services}
        print("kept %d, in doubt %d, stored %d" % (sum(kept.values()), sum(doubted.values()), sum(rows.values())))
        for service in services:
            self.assertGreaterEqual(rows[service], kept[service])
            self.assertLessEqual(rows[service], kept[service] + doubted[service])

    def test_a_record_that_was_stored_but_not_marked_is_not_stored_again(self):
        self.push(value=1)
        self.away()
        for value in (2, 4):
            self.push(value=value)
        path = os.path.join(self.dir, "spool")
        with open(path, "rb") as file:
            waiting = file.read()
        self.back()
        self.wait_replayed()
        self.server.kill9()
        with open(path, "wb") as file:  # as a kill between the commit and the mark leaves it
            file.write(waiting)
        self.server = self.start()
        self.wait_replayed()
        self.assertEqual(self.metric("hearth_profiles_repeated_total"), 2)
        self.assertEqual((self.rows(), self.total()), (3, 7))

    def test_each_protocol_reports_that_a_push_is_spooled(self):
        self.push(value=1)
        self.away()
        status, headers, _ = self.ingest("texts", 5)
        self.assertEqual((status, headers.get("hearth-spooled")), (202, "1"))
        status, headers, _ = self.ingest("texts", 6, spyName="gospy")
        self.assertEqual((status, headers.get("hearth-spooled")), (200, "1"))
        self.assertEqual(self.server.grpc_bytes(PUSH, request("grpc"))[1]["hearth-spooled"], "1")
        status, headers = self.export("otlp")
        self.assertEqual((status, headers.get("hearth-spooled")), (200, "1"))
        status, _, text = self.server.http("GET", "/ready")
        self.assertEqual(status, 503)
        self.assertIn(b"4 spooled pushes wait for the database", text)
        self.back()
        self.wait_replayed()
        self.assertEqual([self.rows(service) for service in ("texts", "grpc", "otlp")], [2, 1, 1])
        cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
        self.assertEqual(self.total("texts", cpu), (5 + 6) * 10_000_000)  # at 100 Hz, as when they are not spooled
        self.assertEqual(self.export("stored")[0], 200)
        self.assertGreater(self.total("otlp", cpu), 0)
        self.assertEqual(self.total("otlp", cpu), self.total("stored", cpu))

    def test_a_server_without_a_spool_refuses(self):
        self.server.terminate()
        self.server = Server(*self.options, database_url=self.cluster.url())
        self.push(value=1)
        self.away()
        with self.assertRaises(RpcError) as caught:
            self.server.connect_proto(PUSH, request(self.service, value=2), timeout=LATER)
        self.assertEqual(caught.exception.code, "unavailable")
        self.back()
        self.assertEqual(self.rows(), 1)

    def test_torn_and_damaged_records_are_left_out_and_the_others_stored(self):
        self.push(value=1)
        self.away()
        path, sizes = os.path.join(self.dir, "spool"), [0]
        for value in (2, 4, 8):
            self.push(value=value)
            sizes.append(os.path.getsize(path))
        self.server.kill9()
        with open(path, "r+b") as file:
            file.seek(sizes[1] + 60)  # in the body of the second record
            byte = file.read(1)
            file.seek(sizes[1] + 60)
            file.write(bytes([byte[0] ^ 1]))
            file.truncate(sizes[3] - 3)
        self.server = self.start(wait=False)
        self.assertIn("a torn record was cut off", self.server.log())
        self.back()
        self.wait_replayed()
        self.assertIn("a spooled push is damaged", self.server.log())
        self.assertEqual((self.rows(), self.total()), (2, 1 + 2))
        self.assertEqual(self.metric("hearth_spool_damaged_total"), 2)

    def test_records_with_damaged_headers_are_skipped(self):
        self.push(value=1)
        self.away()
        path, sizes = os.path.join(self.dir, "spool"), [0]
        for value in (2, 4, 8):
            self.push(value=value)
            sizes.append(os.path.getsize(path))
        with open(path, "r+b") as file:  # while the server runs
            for size in sizes[1:3]:
                file.seek(size + 4)
                file.write(b"\xff\xff\xff\xff")
        self.back()
        self.wait_replayed()
        self.assertEqual((self.rows(), self.total()), (2, 1 + 2))
        self.assertEqual(self.metric("hearth_spool_damaged_total"), 2)
        self.assertEqual(os.path.getsize(path), 0)

    def test_a_record_hidden_in_a_profile_is_not_found_behind_damage(self):
        """The bytes are a record of another spool, so all but the key of this one is right."""
        path, key = os.path.join(self.dir, "spool"), os.path.join(self.dir, "key")
        self.push(value=1)
        self.away()
        self.push(value=64, id="hidden")
        with open(path, "rb") as record, open(key, "rb") as secret:
            hidden, other_key = record.read(), secret.read()
        self.assertEqual((len(other_key), os.stat(key).st_mode & 0o777), (32, 0o600))
        self.server.kill9()
        os.remove(path)
        os.remove(key)
        self.server = self.start(wait=False)

        pairs = [(1, [(1, "__name__"), (2, "process_cpu")]), (1, [(1, "service_name"), (2, self.service)])]
        carrier = gzip.decompress(profile(2)) + wire.encode([(1000, hidden)])  # a field that no reader knows
        self.server.connect_proto(PUSH, wire.encode([(1, pairs + [(2, [(1, carrier)])])]), timeout=LATER)
        self.push(value=4)
        with open(path, "r+b") as file:
            self.assertIn(hidden, file.read())
            file.seek(4)
            file.write(b"\xff\xff\xff\xff")  # in the header of the carrier
        self.server.kill9()
        self.server = self.start(wait=False)
        self.back()
        self.wait_replayed()
        self.assertEqual((self.rows(), self.total()), (2, 1 + 4))

        # Under its own key it is a record.
        self.server.kill9()
        self.write(path, hidden)
        self.write(key, other_key)
        self.server = self.start()
        self.wait_replayed()
        self.assertEqual((self.rows(), self.total()), (3, 1 + 4 + 64))

    def test_a_start_without_the_key_of_waiting_records_fails_and_keeps_them(self):
        self.away()
        self.push(value=2)
        path, key = os.path.join(self.dir, "spool"), os.path.join(self.dir, "key")
        with open(path, "rb") as record, open(key, "rb") as secret:
            kept, right = record.read(), secret.read()
        self.server.kill9()
        for damage in (lambda: os.remove(key), lambda: self.write(key, right[:31])):
            damage()
            with self.assertRaisesRegex(AssertionError, 'cannot read .*/key.*which tells records'):
                self.start(wait=False)
        with open(path, "rb") as record:
            self.assertEqual(record.read(), kept)
        self.write(key, right)
        self.server = self.start(wait=False)
        self.back()
        self.wait_replayed()
        self.assertEqual((self.rows(), self.total()), (1, 2))

    @staticmethod
    def write(path, content):
        with open(path, "wb") as file:
            file.write(content)
        if os.geteuid() == 0:
            os.chown(path, pwd.getpwnam("postgres").pw_uid, -1)

    def test_records_that_cannot_be_read_now_are_kept_and_stored_later(self):
        self.away()
        for value in (2, 4):
            self.assertEqual(self.push(value=value), "1")
        with open(os.path.join(self.dir, "spool"), "r+b") as file:
            kept = file.read()
            file.truncate(0)  # every read fails, as on a disk with faults
            self.back()
            eventually(lambda: "cannot read the spool" in self.server.log(), what="a read that failed")
            self.assertEqual(self.metric("hearth_spool_records"), 2)
            file.seek(0)
            file.write(kept)
        self.wait_replayed()
        self.assertEqual((self.rows(), self.total()), (2, 2 + 4))
        self.assertEqual(self.metric("hearth_spool_damaged_total"), 0)

    def test_a_push_whose_sync_fails_is_refused_and_so_are_all_until_a_restart(self):
        """What a disk holds after a failed sync is not known, and a second sync that succeeds proves nothing."""
        disk = Faults()
        self.server.terminate()
        self.server = self.start(env=disk.server_env)
        self.push(value=1)
        self.away()
        self.assertEqual(self.push(value=2), "1")
        path = os.path.join(self.dir, "spool")
        size = os.path.getsize(path)
        disk.failing_disk(errno.EIO)
        for value in (4, 8):
            with self.assertRaises(RpcError) as caught:
                self.push_or_raise(value)
            self.assertEqual(caught.exception.code, "unavailable")
            disk.failing_disk(0)  # and yet the second one is refused, too
        self.assertEqual((self.metric("hearth_spool_write_errors_total"), self.metric("hearth_spool_records")), (1, 1))
        self.assertEqual(os.path.getsize(path), size)
        self.assertIn('cannot write to the spool: Input/output error', self.server.log())
        self.back()
        self.wait_replayed()
        self.assertEqual((self.rows(), self.total()), (2, 1 + 2))
        check = self.doctor()
        self.assertEqual(check["verdict"], "VERDICT_WRONG")
        self.assertIn("takes no more pushes", check["found"])

        self.server.terminate()
        self.server = self.start()
        self.away()
        self.assertEqual(self.push(value=16), "1")
        self.back()
        self.wait_replayed()
        self.assertEqual((self.rows(), self.total()), (3, 1 + 2 + 16))

    def push_or_raise(self, value):
        return self.server.connect_proto(PUSH, request(self.service, value), timeout=LATER)

    def doctor(self):
        checks = self.server.connect("hearth.v1.AdminService/Doctor", {})["checks"]
        return next(check for check in checks if check["name"] == "spool")

    def test_the_doctor_shows_waiting_work(self):
        found = self.doctor()
        self.assertEqual((found["verdict"], found["found"]), ("VERDICT_OK", "0 pushes wait; 0 of 1073741824 bytes"))
        self.away()
        self.push(value=2)
        # A record that is never stored: the doctor needs the database, which is back then.
        path = os.path.join(self.dir, "spool")
        with open(path, "r+b") as file:
            kept = file.read()
            file.truncate(0)
            self.back()
            eventually(lambda: "cannot read the spool" in self.server.log(), what="a read that failed")
            found = self.doctor()
            self.assertEqual(found["verdict"], "VERDICT_ADVICE")
            self.assertRegex(found["found"], r"^1 push waits; %d of 1073741824 bytes; the oldest is \d+ s old$" % len(kept))
            file.seek(0)
            file.write(kept)
        self.wait_replayed()
        self.server.terminate()
        self.server = Server(*self.options, database_url=self.cluster.url())
        self.assertEqual(self.doctor()["found"], "off: pushes are refused while the database is away")

    def test_a_push_that_a_limit_refuses_meanwhile_is_listed_and_the_others_are_stored(self):
        self.push(value=1)
        self.away()
        self.push(value=2)
        pairs = [(1, [(1, name), (2, value)]) for name, value in (
            ("__name__", "process_cpu"), ("service_name", self.service), ("pod", "new"))]
        self.server.connect_proto(PUSH, wire.encode([(1, [(1, pair[1]) for pair in pairs] + [(2, [(1, profile(4))])])]), timeout=LATER)
        self.push(value=8)
        self.assertEqual(self.metric("hearth_spool_records"), 3)
        self.server.kill9()
        self.server = self.start("--max-series", "1", wait=False)
        self.back()
        self.wait_replayed()
        self.assertEqual((self.rows(), self.total()), (3, 1 + 2 + 8))
        self.assertEqual((self.metric("hearth_spool_refused_total"), self.metric("hearth_spool_replayed_total")), (1, 2))
        find = lambda: self.server.connect("hearth.v1.AdminService/IngestErrors", {}).get("errors", [])
        error, = eventually(find, what="the refused push in the list")
        self.assertEqual((error["client"], error["code"]), ("spool", "resource_exhausted"))
        self.assertIn("max-series", error["message"])
        self.assertEqual(os.path.getsize(os.path.join(self.dir, "spool")), 0)

    def test_recordings_and_their_files_are_stored_as_when_they_are_not_spooled(self):
        self.server.terminate()
        self.server = self.start("--keep-originals=ingest,push")
        totals, files = {}, {}
        for service in ("at-once", "spooled"):
            query = {"name": service, "from": T // 1000, "until": T // 1000 + 10, "spyName": "javaspy", "sampleRate": 100,
                     "format": "jfr"}
            path = "/ingest?" + urllib.parse.urlencode(query)
            is_spooled = service == "spooled"
            if is_spooled:
                self.away()
            status, headers, _ = self.server.http("POST", path, RECORDING, timeout=LATER)
            self.assertEqual((status, int(headers.get("hearth-spooled", 0)) > 0), (202 if is_spooled else 200, is_spooled))
            if is_spooled:
                self.back()
                self.wait_replayed()
            window = {"labelSelector": '{service_name="%s"}' % service, "start": T - 60_000, "end": T + 60_000}
            row, = self.server.connect("hearth.v1.ProfileService/ListProfiles", {"filter": window})["profiles"]
            upload = self.server.connect("hearth.v1.ProfileService/GetProfile", {"id": row["id"]})
            totals[service] = {t["profileType"]: t["total"] for t in upload["types"]}
            read = self.server.connect("hearth.v1.ProfileService/ReadOriginal", {"id": row["id"]})
            files[service] = [one["name"] for one in upload["originals"]], base64.b64decode(read["data"])
        self.assertEqual({t: int(totals["at-once"][t]) for t in OURS}, OURS)
        self.assertEqual(totals["spooled"], totals["at-once"])
        self.assertEqual(files["spooled"], files["at-once"])
        self.assertEqual(files["spooled"][1], RECORDING)

    def test_a_full_spool_refuses_as_a_server_without_one(self):
        self.server.terminate()
        self.server = self.start("--max-spool-bytes", "1m")
        self.push(value=1)
        self.away()
        with open(os.path.join(self.dir, "spool"), "rb") as file:
            self.assertEqual(file.read(), b"")
        stacks = Profile(TYPES, time_ns=now_ms() * 1_000_000)
        for i in range(400_000 // 40):
            stacks.add(["main", os.urandom(30).hex()], [1, 10])
        pairs = [(1, [(1, "__name__"), (2, "process_cpu")]), (1, [(1, "service_name"), (2, "large")])]
        body = wire.encode([(1, pairs + [(2, [(1, stacks.encode())])])])
        n = 0
        with self.assertRaises(RpcError) as caught:
            for n in range(10):
                self.server.connect_proto(PUSH, body, timeout=LATER)
        self.assertEqual(caught.exception.code, "unavailable")
        self.assertGreaterEqual(self.metric("hearth_spool_full_total"), 1)
        self.back()
        self.wait_replayed()
        self.assertEqual(self.rows("large"), n)

    def test_invalid_pushes_are_refused_and_not_spooled(self):
        self.push(value=1)
        self.away()
        for body in (request(self.service, at_ms=now_ms() - 30 * 86_400_000), wire.encode([(1, [(2, [(1, b"x")])])])):
            with self.assertRaises(RpcError) as caught:
                self.server.connect_proto(PUSH, body, timeout=LATER)
            self.assertEqual(caught.exception.code, "invalid_argument")
        self.assertEqual(self.metric("hearth_spool_records"), 0)

    def test_a_directory_that_cannot_be_used_ends_the_start(self):
        with self.assertRaisesRegex(AssertionError, "in use by another hearthd"):
            self.start(wait=False)
        self.server.kill9()
        os.chmod(self.dir, 0o777)
        with self.assertRaisesRegex(AssertionError, "others may write"):
            self.start(wait=False)
        os.chmod(self.dir, 0o700)
        path = os.path.join(self.dir, "spool")
        os.chmod(path, 0)
        if os.geteuid() == 0:  # the owner could change the mode
            os.chown(path, 0, 0)
        with self.assertRaisesRegex(AssertionError, 'cannot open and lock .*/spool.*Permission denied'):
            self.start(wait=False)
        os.remove(path)
        os.mkdir(path)
        with self.assertRaisesRegex(AssertionError, 'cannot open and lock .*/spool.*Is a directory'):
            self.start(wait=False)
        os.rmdir(path)
        self.server = self.start()


if __name__ == "__main__":
    unittest.main()
