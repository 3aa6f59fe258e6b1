"""Days past their time, deletion in all servers, and a disk that is full: against real servers and a real builder."""

import errno
import os
import pathlib
import subprocess
import time
import unittest

from pprof import Profile
from questions import CPU
from server import PROFILES, Cluster, RpcError, Server, eventually, now_ms, sql, temporary_directory

TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
ADMIN = "hearth.v1.AdminService/"
MINUTE, HOUR = 60 * 1000, 3600 * 1000
DAY = 24 * HOUR
LATEST = 2**63 - 1
SECRET = "tok-5d41402abc4b2a76b9719d911017c592"


def profile(time_ms, name="work"):
    p = Profile(TYPES, time_ns=time_ms * 1_000_000, duration_ns=10_000_000_000)
    return p.add(["main", name], [3, 30_000_000]).encode()


def labels(service, **own):
    return {"__name__": "process_cpu", "service_name": service, **own}


class Retention(unittest.TestCase):
    def test_hours_that_were_left_out_answer_after_their_profiles_are_dropped(self):
        """With absent hours; with profiles that are past their retention; with hours that are written; without profiles."""
        options = ["--builder-interval", "200ms", "--rollup-grace", "0", "--compact-after", "0"]
        server = Server(*options, "--builder=false")

        def restart(*more):
            self.assertEqual(server.terminate(), 0)
            server.options = [*options, *more]
            server.start()

        try:
            start = (now_ms() // DAY - 5) * DAY
            for day in range(5):
                for k in range(4):
                    ts = start + day * DAY + (3 * k + day) * HOUR + 7 * MINUTE
                    server.push(profile(ts, "day%d-%d" % (day, k)), labels("api", pod="pod-%d" % (k % 2)))
            # Whole hours: when profiles are dropped, blocks of 10 minutes that were left out are not written.
            asked = [('{service_name="api"%s}' % pod, start + a * HOUR, start + b * HOUR)
                     for pod in ("", ', pod="pod-1"') for a, b in ((0, 120), (0, 24), (3, 7), (6, 80), (30, 31))]

            def answers(where):
                flames = [where.flamegraph(CPU, *question) for question in asked]
                return [(flame.total, flame.functions()) for flame in flames]

            def lacking():
                return server.sql("SELECT count(*) FROM hearth_data.roll_state WHERE 3600000000000 = ANY (absent)")[0][0]

            def built():
                rows = server.sql("SELECT count(*) FROM hearth_data.roll_state WHERE built_to >= %d" % ((start + 5 * DAY) * 10**6))
                return rows[0][0] == "1"

            def profiles():
                leaves = server.sql("SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname ~ '^(profile|segment)_[0-9]+$'"
                                    " AND right(relname, 8) <= '%s'" % time.strftime("%Y%m%d", time.gmtime(start / 1000)))
                return leaves[0][0]

            expected = answers(server)
            self.assertIn("day0-0", expected[0][1])
            restart()
            eventually(built, 60, what="roll-ups of all profiles")
            self.assertEqual(lacking(), "1")
            self.assertEqual(answers(server), expected, "hours are left out")
            restart("--retain-raw", "2d", "--builder=false")
            self.assertEqual(lacking(), "1")
            self.assertEqual(answers(server), expected, "profiles are past their retention")
            restart("--retain-raw", "2d")
            eventually(lambda: profiles() == "0", 180, what="dropping the profiles of the first day")
            self.assertEqual(answers(server), expected, "hours are written")
        finally:
            server.stop()

    def test_expired_days_are_dropped_and_younger_ones_stay(self):
        server = Server("--retain-raw", "2d", "--retain-10m", "2d", "--retain-1h", "3d", "--retain-1d", "4d",
                        "--builder-interval", "1s")
        try:
            now = now_ms()
            for days in range(7):
                server.push(profile(now - days * DAY, "day%d" % days), labels("api", pod="pod-%d" % days))

            def built():
                rows = server.sql("SELECT count(*), count(*) FILTER (WHERE built_to < watermark) FROM hearth_data.roll_state")
                return rows == [["1", "0"]] and server.sql("SELECT count(*) FROM hearth_data.profile_late") == [["0"]]

            # Retention waits for roll-ups, and looks once a minute: at once when a server begins.
            eventually(built, what="roll-ups")
            self.assertEqual(server.terminate(), 0)
            server.start()

            def leaves(table):
                return int(server.sql(
                    "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname ~ '^%s_[0-9]+$' AND"
                    " right(relname, 8) < to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')" % table)[0][0])

            # A leaf goes when all of its day is past the time. The five minutes of margin never matter but at midnight.
            for table, kept in (("profile", 2), ("roll_10m", 2), ("roll_1h", 3), ("roll_1d", 4), ("series_hour", 4)):
                eventually(lambda t=table, k=kept: leaves(t) <= k + 1, 180, what="dropping days of " + table)
                self.assertGreaterEqual(leaves(table), kept - 1, table)
            flame = server.flamegraph(CPU, '{service_name="api"}', now - DAY - HOUR, now + 1000)
            self.assertIn("day1", flame.functions())
            # The sweep: series of which nothing is left are out of the catalogue.
            eventually(lambda: "pod-6" not in server.label_values("pod", 1, now + 1000), 180, what="the sweep")
            self.assertIn("pod-0", server.label_values("pod", 1, now + 1000))
            self.assertEqual(server.sql("SELECT count(*) FROM hearth_data.label_pair WHERE value = 'pod-6'"), [["0"]])
        finally:
            server.stop()


class Deletion(unittest.TestCase):
    def test_a_leaked_label_value_disappears_at_once_on_both_servers_and_soon_from_the_disk(self):
        cluster = Cluster()
        options = ("--builder-interval", "1s")
        servers = [Server(*options, database_url=cluster.url()) for _ in range(2)]
        try:
            now = now_ms()
            for k in range(20):
                servers[k % 2].push(profile(now - k * 60_000), labels("api", token=SECRET, pod="pod-1"))
                servers[k % 2].push(profile(now - k * 60_000), labels("api", pod="pod-2"))
            for server in servers:
                self.assertEqual(server.label_values("token", 1, now + HOUR), [SECRET])
            erase = {"labelSelector": '{token=~"tok-.*"}', "end": LATEST, "expectedSeries": 1, "requestedBy": "the test"}
            servers[0].connect(ADMIN + "Erase", erase)
            for server in reversed(servers):
                self.assertEqual(server.label_values("token", 1, now + HOUR), [])
                self.assertNotIn("token", server.label_names(1, now + HOUR))
                self.assertEqual(server.series(1, now + HOUR, ['{token!=""}'], ["token"]), [])
                flame = server.flamegraph(CPU, '{service_name="api"}', now - DAY, now + HOUR)
                self.assertEqual(flame.functions()["work"], (600_000_000, 600_000_000))
            # The same two minutes for everyone are no use to a test.
            sql(cluster.url(), "UPDATE hearth_data.erasure SET requested_at = requested_at - interval '2 minutes'")

            def done():
                log = servers[1].connect(ADMIN + "Erasures", {})["erasures"]
                return int(log[0].get("doneAtMs", 0)) and log[0]

            log = eventually(done, 60, what="the removal")
            self.assertEqual((int(log["series"]), int(log["rows"])), (1, 20))
            for server in servers:
                flame = server.flamegraph(CPU, '{service_name="api"}', now - DAY, now + HOUR)
                self.assertEqual(flame.functions()["work"], (600_000_000, 600_000_000))
            # Not in any row; and not in the files of the catalogue, where deleted rows may stay as bytes.
            for table in ("label_pair", "series", "service", "dict_chunk", "profile", "profile_late", "segment"):
                rows = sql(cluster.url(), "SELECT count(*) FROM hearth_data.%s t WHERE t::text LIKE '%%%s%%'" % (table, SECRET))
                self.assertEqual(rows, [["0"]], table)
            sql(cluster.url(), "CHECKPOINT")
            paths = sql(cluster.url(), "SELECT current_setting('data_directory') || '/' || pg_relation_filepath(oid)"
                        " FROM pg_class WHERE relnamespace = 'hearth_data'::regnamespace AND relname IN"
                        " ('label_pair', 'series', 'service')")
            for (path,) in paths:
                with open(path, "rb") as file:
                    self.assertNotIn(SECRET.encode(), file.read(), path)
            # It may come back: whoever leaks again is seen again.
            servers[1].push(profile(now), labels("api", token=SECRET, pod="pod-1"))
            self.assertEqual(servers[0].label_values("token", 1, now + HOUR), [SECRET])
        finally:
            for server in servers:
                server.stop()
            cluster.stop()


    def test_a_deletion_up_to_now_leaves_no_label_behind_until_the_hour_is_over(self):
        server = Server("--builder=false")
        try:
            now = now_ms()
            server.push(profile(now), labels("api", token=SECRET))
            server.push(profile(now), labels("api"))
            erase = {"labelSelector": '{token!=""}', "start": now - HOUR, "end": now_ms(), "expectedSeries": 1}
            server.connect(ADMIN + "Erase", erase)
            self.assertEqual(server.label_values("token", 1, now + HOUR), [])
            flame = server.flamegraph(CPU, '{service_name="api"}', now - DAY, now + HOUR)
            self.assertEqual(flame.functions()["work"], (30_000_000, 30_000_000))
            # A range that ends in the past is what it says.
            server.push(profile(now - 10 * 60_000, "early"), labels("api", token=SECRET))
            early = {**erase, "end": now - 9 * 60_000}
            server.connect(ADMIN + "Erase", early)
            log = server.connect(ADMIN + "Erasures", {})["erasures"]
            self.assertEqual(int(log[0]["end"]), now - 9 * 60_000)
            self.assertEqual(int(log[1]["end"]) % HOUR, HOUR - 1)
        finally:
            server.stop()


class FullDisk(unittest.TestCase):
    """An embedded database on a small file system of its own."""

    def setUp(self):
        self.directory = temporary_directory()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=220m,mode=755", "tmpfs", self.directory],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if mounted.returncode != 0:
            self.skipTest("a file system can only be made small by root with the right to mount")
        self.addCleanup(subprocess.run, ["umount", "-l", self.directory], check=False)

    def fill(self, leave):
        """All but `leave` bytes."""
        path = os.path.join(self.directory, "filler")
        # The log of a template has holes, which need room on the disk when they are written.
        for segment in pathlib.Path(self.directory).rglob("pg_wal/0*"):
            with segment.open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, segment.stat().st_size)

        def filled():
            stat = os.statvfs(self.directory)
            with open(path, "wb") as file:
                try:
                    os.posix_fallocate(file.fileno(), 0, stat.f_bavail * stat.f_frsize - leave)
                except OSError as error:  # the database was quicker
                    self.assertEqual(error.errno, errno.ENOSPC)
                    return False
            return True

        eventually(filled, what="a full disk")
        return path

    def push_until_refused(self, server, seconds=60):
        accepted = [0]

        def refused():
            try:
                server.push(profile(now_ms(), "f%d" % accepted[0]), labels("api"))
            except RpcError as error:
                return error
            accepted[0] += 1
            return None

        return eventually(refused, seconds, 0.01, "a refusal"), accepted[0]

    def test_little_free_disk_refuses_pushes_but_not_queries_until_there_is_room(self):
        server = Server("--min-free-disk-bytes", "16m", directory=self.directory)
        self.addCleanup(server.stop)
        server.push(profile(now_ms()), labels("api"))
        filler = self.fill(8 << 20)
        error, _ = self.push_until_refused(server)
        self.assertEqual(error.code, "resource_exhausted")
        self.assertIn("min-free-disk-bytes", error.message)
        flame = server.flamegraph(CPU, '{service_name="api"}', now_ms() - HOUR, now_ms() + 1000)
        self.assertIn("work", flame.functions())
        self.assertEqual(server.log().count("profiles are refused"), 1)
        os.unlink(filler)

        def accepted():
            try:
                server.push(profile(now_ms(), "again"), labels("api"))
                return True
            except RpcError:
                return False

        eventually(accepted, 30, what="pushing again")

    def test_a_disk_that_is_full_loses_nothing_that_was_acknowledged(self):
        server = Server("--min-free-disk-bytes", "0", directory=self.directory)
        self.addCleanup(server.stop)
        filler = self.fill(0)
        body = Profile(TYPES, time_ns=now_ms() * 1_000_000, duration_ns=10_000_000_000)
        for k in range(3000):
            body.add(["main", "frame-%d-%s" % (k, "x" * 50)], [k + 1, k + 1])
        accepted = 0
        error = None
        for k in range(4000):
            try:
                server.push(body.encode() if k == 0 else profile(now_ms(), "p%d" % k), labels("api", pod="pod-%d" % k))
                accepted += 1
            except RpcError as refusal:
                error = refusal
                break
        os.unlink(filler)
        self.assertIsNotNone(error, "nothing was refused on a full disk")
        self.assertIn(error.code, ("resource_exhausted", "unavailable", "internal"), error.message)

        def pushed():
            try:
                server.push(profile(now_ms(), "again"), labels("api"))
                return True
            except RpcError:
                return False

        eventually(pushed, 60, what="pushing again")
        rows = int(server.sql("SELECT count(*) FROM " + PROFILES)[0][0])
        # The refused one may be there: its client was told that it failed, not that it is gone.
        self.assertIn(rows, (accepted + 1, accepted + 2))


if __name__ == "__main__":
    unittest.main()
