"""Disk by service: the order of services, their sum against the database's own sizes, samples, tenants and rights."""

import csv
import io
import subprocess
import unittest

from pprof import Profile
from server import HEARTH, RpcError, Server, eventually, now_ms, server_environment
from test_access import AccessServer, bearer

DISK = "hearth.v1.AdminService/Disk"
TIERS = ("profiles", "segments", "rollups", "symbols", "spans", "originals", "other")
MINUTE = 60_000
# Numbers of profiles, and of stack traces in each.
SIZES = {"large": (50, 300), "middle": (20, 150), "small": (4, 10)}
# Tables with rows of services that have rows here. Others take a fixed few pages, whoever stores what.
TABLES = "profile profile_late segment roll_10m roll_1h roll_1d hour_totals dict_chunk series series_hour".split()


def profile(service, nth, n_stacks, time_ms):
    made = Profile([("cpu", "nanoseconds")], time_ns=time_ms * 1_000_000, duration_ns=10_000_000_000)
    for i in range(n_stacks):
        made.add(["main", "%s.handle_%d" % (service, i % 50), "%s.step_%d" % (service, i)], [1000 + 37 * i + nth])
    return made.encode()


def push_sizes(server, sizes, tenant, start):
    """In turns, so that services share blocks."""
    for nth in range(max(n for n, _ in sizes.values())):
        for service, (n_profiles, n_stacks) in sizes.items():
            if nth < n_profiles:
                server.push(profile(service, nth, n_stacks, start + nth * MINUTE),
                            {"__name__": "process_cpu", "service_name": service}, metadata=[("x-scope-orgid", tenant)])


def tables_bytes(server):
    """Sizes that admin status has, of the tables with rows of services."""
    status = server.connect("hearth.v1.AdminService/Status", {}, {"X-Scope-OrgID": "shop"})
    return sum(int(t.get("bytes", 0)) for t in status["tables"]
               if t["table"] in TABLES and server.sql("SELECT 1 FROM hearth_data.%s LIMIT 1" % t["table"]))


def bytes_of(answer):
    return {s["serviceName"]: int(s["bytes"]) for s in answer.get("services", [])}


class DiskByService(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.options = ["--multitenancy", "--builder-interval", "200ms", "--rollup-grace", "0", "--compact-after", "0"]
        # Built once, when all are there: a slow machine would build between the pushes, and rewrite rows, whose old
        # pages count for any service that has rows there.
        cls.server = Server(*cls.options, "--builder=false")
        # Profiles from three hours ago on can be rolled up and compacted; those of the last minutes remain rows.
        push_sizes(cls.server, SIZES, "shop", now_ms() - 180 * MINUTE)
        push_sizes(cls.server, {"late": (10, 200)}, "shop", now_ms() - 9 * MINUTE)
        push_sizes(cls.server, {"large": (20, 200), "theirs": (4, 10)}, "other", now_ms() - 180 * MINUTE)
        cls.server.stop()
        cls.server.options = cls.options
        cls.server.start()

        def settled():
            ((waiting, services, compacted),) = cls.server.sql(
                "SELECT count(*) FILTER (WHERE built_to < watermark) + (SELECT count(*) FROM hearth_data.profile_late),"
                " count(*), (SELECT count(DISTINCT service_id) FROM hearth_data.segment) FROM hearth_data.roll_state")
            return waiting == "0" and services == "6" and int(compacted) >= 5

        eventually(settled, 120, what="roll-ups and segments")
        cls.server.sql("VACUUM")  # pages of rows that were compacted would count for whoever still has rows there

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def disk(self, tenant="shop", **fields):
        return self.server.connect(DISK, fields, {"X-Scope-OrgID": tenant})

    def cli(self, *arguments):
        done = subprocess.run(
            [HEARTH, "admin", "disk", *arguments], capture_output=True, text=True, timeout=60,
            env=server_environment({"HEARTH_URL": "http://127.0.0.1:%d" % self.server.port}))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def assert_services(self, names):
        """The place of "late" is open: it depends on the pages that compaction has left to each service."""
        self.assertEqual([name for name in names if name != "late"], ["large", "middle", "small"])
        self.assertIn("late", names[1:])

    def test_services_are_sorted_by_size_and_tiers_add_up(self):
        answer = self.disk()
        sizes = bytes_of(answer)
        self.assertEqual(list(sizes.values()), sorted(sizes.values(), reverse=True))
        self.assert_services(list(sizes))
        self.assertGreater(sizes["large"], 1.2 * sizes["middle"])
        self.assertEqual((int(answer["totalServices"]), answer["readPercent"]), (4, 100))
        for service in answer["services"] + [answer["total"]]:
            self.assertAlmostEqual(sum(int(service.get(t, 0)) for t in TIERS), int(service["bytes"]), delta=len(TIERS) * 4)
        large = answer["services"][0]
        for tier in ("segments", "rollups", "symbols"):
            self.assertGreater(int(large[tier]), 0, tier)
        self.assertNotIn("spans", large)

    def test_all_services_together_are_the_size_of_the_tables(self):
        # The builder may work between the answers. Nobody has the pages of a table without rows.
        def agree():
            ours = sum(int(self.disk(tenant)["total"]["bytes"]) for tenant in ("shop", "other"))
            return abs(ours - tables_bytes(self.server)) <= ours / 50

        eventually(agree, 30, what="agreement with admin status")

    def test_a_limit_keeps_the_total(self):
        whole, one = self.disk(), self.disk(limit=1)
        self.assertEqual(list(bytes_of(one)), ["large"])
        self.assertEqual(one["totalServices"], whole["totalServices"])
        self.assertAlmostEqual(int(one["total"]["bytes"]), int(whole["total"]["bytes"]), delta=int(whole["total"]["bytes"]) / 10)
        for limit in (-1, 1001):
            with self.assertRaises(RpcError) as caught:
                self.disk(limit=limit)
            self.assertEqual(caught.exception.code, "invalid_argument")
            self.assertIn("limit is %d" % limit, caught.exception.message)

    def test_tenants_see_their_own_services(self):
        other, shop = self.disk("other"), self.disk()
        self.assertEqual(list(bytes_of(other)), ["large", "theirs"])
        self.assertLess(bytes_of(other)["large"], bytes_of(shop)["large"])
        self.assertEqual(self.disk("nobody"), {"total": {}, "readPercent": 100})

    def test_grpc_returns_equal_sizes(self):
        answer = self.server.call(DISK, [(1, 1)], metadata=[("x-scope-orgid", "other")])
        self.assertEqual((len(answer[1]), answer[2][-1]), (1, 2))

    def test_the_command_prints_a_table_and_csv(self):
        table = self.cli("--tenant", "shop")
        self.assert_services([line.split()[0] for line in table.splitlines()[1:5]])
        self.assertRegex(table, r"\nestimated: [0-9.]+ [KM]i?B in all, with indexes and free space\n")
        self.assertRegex(self.cli("--tenant", "shop", "-n", "1"), r"\n3 more services: [0-9.]+ [KM]i?B; -n 1000")
        self.assertEqual(self.cli("--tenant", "nobody"), "")
        rows = list(csv.DictReader(io.StringIO(self.cli("--tenant", "other", "-o", "csv"))))
        self.assertEqual([row["service"] for row in rows], ["large", "theirs"])
        self.assertAlmostEqual(sum(float(row["percent"]) for row in rows), 100, delta=0.1)


class Metrics(unittest.TestCase):
    def test_bytes_by_tenant_and_tier_are_those_of_the_service(self):
        server = Server("--multitenancy", "--builder=false")
        self.addCleanup(server.stop)
        for tenant in ("shop", "second", "third"):
            push_sizes(server, {"large": (20, 200)}, tenant, now_ms() - 30 * MINUTE)
        published = lambda: {
            (dict(labels)["tenant"], dict(labels)["tier"]): value
            for (name, labels), value in server.metrics().items() if name == "hearth_tenant_disk_bytes"
        }
        self.assertEqual(sum(published().values()), 0)  # metrics-tenants is 0

        # They are measured at the start, then every ten minutes.
        server.terminate()
        server.options += ["--metrics-tenants", "1"]
        server.start()
        found = eventually(lambda: (now := published()).get(("shop", "profiles")) and now, what="the measurement")
        self.assertEqual({tenant for tenant, _ in found}, {"shop", "other"})
        total = lambda tenant: server.connect(DISK, {}, {"X-Scope-OrgID": tenant})["total"]
        shop, second, third = map(total, ("shop", "second", "third"))
        for tier in TIERS:
            name = "dictionaries" if tier == "symbols" else tier
            theirs = int(second.get(tier, 0)) + int(third.get(tier, 0))
            # Housekeeping deletes and adds a few rows meanwhile.
            self.assertAlmostEqual(found["shop", name], int(shop.get(tier, 0)), delta=16384, msg=tier)
            self.assertAlmostEqual(found["other", name], theirs, delta=16384, msg=tier)
        self.assertGreater(found["shop", "profiles"], 0)
        self.assertGreater(found["shop", "dictionaries"], 0)


class Sample(unittest.TestCase):
    def test_a_sample_ranks_services_and_reports_how_much_it_has_read(self):
        server = Server("--multitenancy", "--builder=false", "--max-disk-sample-bytes", "96k")
        self.addCleanup(server.stop)
        made = {service: profile(service, 0, n, now_ms() - MINUTE) for service, n in (("large", 1500), ("middle", 300), ("small", 10))}
        for nth in range(80):
            for service in made if nth < 8 else ("large", "middle"):
                server.push(made[service], {"__name__": "process_cpu", "service_name": service},
                            metadata=[("x-scope-orgid", "shop")])
        answer = server.connect(DISK, {}, {"X-Scope-OrgID": "shop"})
        self.assertLess(answer["readPercent"], 95)
        self.assertGreater(answer["readPercent"], 5)
        sizes = bytes_of(answer)
        self.assertEqual(list(sizes)[:2], ["large", "middle"])
        self.assertGreater(sizes["large"], 2 * sizes["middle"])
        self.assertAlmostEqual(int(answer["total"]["bytes"]), tables_bytes(server), delta=sizes["middle"])
        # The same blocks each time: the numbers do not flicker.
        self.assertEqual(bytes_of(server.connect(DISK, {}, {"X-Scope-OrgID": "shop"})), sizes)
        done = subprocess.run([HEARTH, "admin", "disk", "--tenant", "shop"], capture_output=True, text=True, timeout=60,
                              env=server_environment({"HEARTH_URL": "http://127.0.0.1:%d" % server.port}))
        self.assertRegex(done.stdout, r"; extrapolated from [0-9.]+ % of it\n")


class Rights(unittest.TestCase):
    def test_readers_see_only_the_services_of_their_grants(self):
        hearth = AccessServer()
        self.addCleanup(hearth.stop)
        root, viewer, narrowed, ingest, stranger = (
            bearer(hearth.token(grant)["token"]) for grant in (
                ("red", "admin"), ("red", "viewer"), ("red", "viewer", '{service_name="cart"}'), ("red", "ingest"),
                ("blue", "admin")))
        for service in ("cart", "ledger"):
            hearth.server.push(profile(service, 0, 20, now_ms()), {"__name__": "process_cpu", "service_name": service},
                               metadata=[("authorization", root["Authorization"])])

        def ask(headers):
            status, _, body = hearth.post("/" + DISK, {}, headers)
            return status, list(bytes_of(body)), body.get("totalServices")

        for headers in (root, viewer):
            status, names, n = ask(headers)
            self.assertEqual((status, sorted(names), n), (200, ["cart", "ledger"], "2"))
        self.assertEqual(ask(narrowed), (200, ["cart"], "1"))
        self.assertEqual(ask(ingest)[0], 403)
        self.assertEqual(ask(stranger), (200, [], None))


if __name__ == "__main__":
    unittest.main()
