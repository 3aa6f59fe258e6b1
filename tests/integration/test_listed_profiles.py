"""Uploads as a list, against a model in Python: pages, facets and single uploads, raw, late, compacted, erased, expired.

The same rows with the same ids in every state, of two servers, after kill -9 and a restart.
"""

import collections
import json
import os
import random
import re
import unittest

from pprof import Decoded, Profile
from questions import CPU
from server import Cluster, RpcError, Server, eventually, now_ms, sql, temporary_directory
from test_cli import hearth

LISTED = "hearth.v1.ProfileService/"
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
MS = 1_000_000
NEVER = -106751 * DAY * MS
QUICK = ["--builder-interval", "100ms", "--rollup-grace", "0"]
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
SAMPLES = "process_cpu:samples:count:cpu:nanoseconds"
SPACE = "memory:inuse_space:bytes:space:bytes"
OBJECTS = "memory:inuse_objects:count:space:bytes"
Upload = collections.namedtuple("Upload", "ts duration service labels types tiers")


def listed(row):
    """A row of the list as the model has it, without its id."""
    return (
        int(row["timeNs"]), int(row.get("durationNs", 0)), row["service"], int(row["seriesCount"]),
        tuple((pair["name"], pair["value"]) for pair in row["labels"]), tuple(row["profileTypes"]),
    )


class Model:
    """Uploads with any time within the range; some times are shared."""

    def __init__(self, end):
        self.random = random.Random(24)
        self.start, self.end = end - 6 * HOUR, end
        self.uploads = []

    def make(self):
        r = self.random
        ts = r.randint(self.start, self.end - MINUTE) // 500 * 500 * MS + r.choice([0, 0, 1, 999_999])
        service = r.choice(["api", "api", "web"])
        labels = {"host": "h-%d" % r.randint(0, 9), "version": r.choice(["1.0", "1.1", "2.0"])}
        if r.random() < 0.5:
            labels["runtime"] = r.choice(["go1.22", "jdk 17"])
        tiers = r.sample(["gold", "silver", ""], r.randint(1, 3))
        heap = r.random() < 0.2
        duration = 0 if heap else r.randint(1, 60) * 1_000_000_000
        types = {SPACE: 0, OBJECTS: 0} if heap else {CPU: 0, SAMPLES: 0}
        return Upload(ts, duration, service, labels, types, tiers)

    def push(self, servers, n):
        for i in range(n):
            upload = self.make()
            heap = SPACE in upload.types
            types = [("inuse_objects", "count"), ("inuse_space", "bytes")] if heap else TYPES
            profile = Profile(types, ("space", "bytes") if heap else ("cpu", "nanoseconds"), time_ns=upload.ts,
                              duration_ns=upload.duration)
            for tier in upload.tiers:
                a, b = self.random.randint(1, 9), self.random.randint(1, 10**9)
                profile.add(["main", "f%d" % self.random.randint(0, 9)], [a, b], {"tier": tier} if tier else {})
                upload.types[OBJECTS if heap else SAMPLES] += a
                upload.types[SPACE if heap else CPU] += b
            labels = {"__name__": "memory" if heap else "process_cpu", "service_name": upload.service, **upload.labels}
            servers[i % len(servers)].push(profile.encode(), labels)
            self.uploads.append(upload)

    def row(self, u):
        labels = {"service_name": u.service, **u.labels}
        if len(u.tiers) == 1 and u.tiers[0]:
            labels["tier"] = u.tiers[0]
        return (u.ts, u.duration, u.service, len(u.tiers), tuple(sorted(labels.items())), tuple(sorted(u.types)))


class ListedProfiles(unittest.TestCase):
    maxDiff = 3000

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.url = cls.cluster.url()
        cls.model = Model(now_ms() // HOUR * HOUR + HOUR // 2)
        cls.model.end = min(cls.model.end, now_ms())
        cls.model.start = cls.model.end - 6 * HOUR

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()

    # ---- asking ----

    def filter(self, **conditions):
        return {"start": self.model.start, "end": self.model.end, **conditions}

    def pages(self, server, size, **request):
        """All rows, page by page."""
        rows, token = [], ""
        while True:
            answer = server.connect(LISTED + "ListProfiles", {"pageSize": size, "pageToken": token, **request})
            rows += answer.get("profiles", [])
            token = answer.get("nextPageToken", "")
            if not token:
                return rows
            self.assertEqual(len(answer["profiles"]), size)

    def facets(self, server, filter, **request):
        answer = server.connect(LISTED + "ProfileFacets", {"filter": filter, **request})
        found = {f["label"]: {v["value"]: int(v["profileCount"]) for v in f.get("values", [])} for f in answer.get("facets", [])}
        return found, int(answer.get("profileCount", 0))

    def has(self, u, host=None, version=None, service=None, tier=None):
        return (
            (host is None or u.labels["host"] == host) and (version is None or u.labels["version"] == version)
            and (service is None or u.service == service) and (tier is None or tier in u.tiers)
        )

    # ---- comparing ----

    def check_list(self, server, what):
        """All rows and their ids; the same for filters and orders."""
        expected = sorted(map(self.model.row, self.model.uploads), reverse=True)
        rows = self.pages(server, 7, filter=self.filter())
        self.assertEqual(sorted(map(listed, rows), reverse=True), expected, what)
        times = [int(row["timeNs"]) for row in rows]
        self.assertEqual(times, sorted(times, reverse=True), what)
        ids = {row["id"] for row in rows}
        self.assertEqual(len(ids), len(rows), what)

        # Other pages, and the other direction, have the same rows.
        self.assertEqual(self.pages(server, 1000, filter=self.filter()), rows, what)
        self.assertEqual(self.pages(server, 13, filter=self.filter(), ascending=True), rows[::-1], what)

        # Filters.
        some = self.pages(server, 50, filter=self.filter(labels=[{"name": "host", "value": "h-3"}], labelSelector='{version=~"1.*"}'))
        wanted = {u for u in map(id, (u for u in self.model.uploads if self.has(u, host="h-3") and u.labels["version"] != "2.0"))}
        self.assertEqual(len(some), len(wanted), what)
        self.assertTrue({row["id"] for row in some} <= ids, what)

        # By total and by duration.
        cpu = [u for u in self.model.uploads if CPU in u.types]
        largest = self.pages(server, 20, filter=self.filter(profileType=CPU), order="PROFILE_ORDER_TOTAL")
        self.assertEqual([int(row["total"]) for row in largest], sorted((u.types[CPU] for u in cpu), reverse=True), what)
        longest = self.pages(server, 9, filter=self.filter(), order="PROFILE_ORDER_DURATION", ascending=True)
        self.assertEqual([int(r.get("durationNs", 0)) for r in longest], sorted(u.duration for u in self.model.uploads), what)
        return ids

    def check_facets(self, server, what):
        labels = ["host", "version", "runtime", "tier", "service_name", "__profile_type__", "nowhere"]
        for conditions in ({}, {"service": "api"}, {"version": "2.0"}):
            pairs = [{"name": {"service": "service_name"}.get(k, k), "value": v} for k, v in conditions.items()]
            chosen = [u for u in self.model.uploads if self.has(u, **conditions)]
            found, n = self.facets(server, self.filter(labels=pairs), labels=labels, limit=1000)
            self.assertEqual(n, len(chosen), what)
            expected = {label: collections.Counter() for label in labels}
            for u in chosen:
                for name, value in u.labels.items():
                    expected[name][value] += 1
                expected["service_name"][u.service] += 1
                for tier in u.tiers:
                    if tier:
                        expected["tier"][tier] += 1
                for profile_type in u.types:
                    expected["__profile_type__"][profile_type] += 1
            self.assertEqual(found, {label: dict(counts) for label, counts in expected.items()}, what)

        # Without names: those that there are. With a limit: the most frequent ones.
        found, _ = self.facets(server, self.filter(), limit=1)
        self.assertEqual(sorted(found), ["host", "runtime", "service_name", "tier", "version"], what)
        self.assertEqual(set(map(len, found.values())), {1}, what)

    def check_single(self, server, ids, what):
        """Each upload is found by its id alone, with all its types and series; its pprof has the same totals."""
        seen = []
        for n, id in enumerate(sorted(ids)):
            answer = server.connect(LISTED + "GetProfile", {"id": id})
            self.assertEqual(answer["profile"]["id"], id)
            types = {t["profileType"]: int(t["total"]) for t in answer["types"]}
            seen.append((listed(answer["profile"]), tuple(sorted(types.items()))))
            self.assertEqual(len(answer["series"]), int(answer["profile"]["seriesCount"]), what)
            if n % 10 == 0:
                raw = server.connect_proto(LISTED + "GetProfilePprof", b"\x0a\x24" + id.encode())[0]
                pprof = Decoded(raw)
                names = {"process_cpu": ["samples", "cpu"], "memory": ["inuse_objects", "inuse_space"]}[next(iter(types)).split(":")[0]]
                self.assertEqual([name for name, _ in pprof.sample_types], names, what)
                totals = {t.split(":")[1]: total for t, total in types.items()}
                self.assertEqual(pprof.totals(), [totals[name] for name in names], what)
                self.assertEqual((pprof.time_ns, pprof.duration_ns), (int(answer["profile"]["timeNs"]), seen[-1][0][1]), what)
                selection = {
                    "profileType": next(iter(types)), "labelSelector": answer["labelSelector"], "start": answer["start"],
                    "end": answer["end"], "profileIds": [id], "aggregation": "AGGREGATION_SUM",
                }
                merged = server.connect("hearth.v1.QueryService/Merge", {"selection": selection})
                self.assertEqual(int(merged["flamegraph"]["total"]), types[next(iter(types))], what)
        self.assertEqual(sorted(seen), sorted((self.model.row(u), tuple(sorted(u.types.items()))) for u in self.model.uploads), what)

    def check(self, server, what, ids=None):
        found = self.check_list(server, what)
        self.assertIn(ids, (None, found), what)
        self.check_facets(server, what)
        self.check_single(server, found, what)
        return found

    def compacted(self):
        limit = (now_ms() // HOUR - 1) * HOUR * MS
        rows = sql(self.url, "SELECT count(*) FILTER (WHERE compacted_to < %d), (SELECT count(*) FROM hearth_data.profile_late),"
                   " count(*) FROM hearth_data.roll_state" % limit)
        return rows[0][:2] == ["0", "0"] and rows[0][2] != "0"

    # ---- the test ----

    def test_the_list_is_equal_in_every_state_until_its_profiles_are_deleted(self):
        model = self.model
        servers = [Server("--builder=false", database_url=self.url), Server("--builder=false", database_url=self.url)]
        model.push(servers, 200)
        ids = self.check(servers[0], "raw, of two servers")
        self.check(servers[1], "raw, of the other server", ids)

        # Late profiles are stored aside.
        sql(self.url, "INSERT INTO hearth_data.roll_state SELECT service_id, %d, %d, %d, 1 FROM hearth_data.service"
            % ((model.end - HOUR) * MS, NEVER, NEVER))
        model.push(servers, 40)
        self.assertGreater(int(sql(self.url, "SELECT count(*) FROM hearth_data.profile_late")[0][0]), 10)
        more = self.check(servers[0], "late")
        self.assertLess(ids, more)
        self.check_sql(servers[0], more)

        # Uploads that arrive between two pages do not move them.
        first = servers[0].connect(LISTED + "ListProfiles", {"filter": self.filter(), "pageSize": 100})
        model.push(servers, 20)
        ids = self.check(servers[1], "more")
        second = servers[1].connect(
            LISTED + "ListProfiles", {"filter": self.filter(), "pageSize": 1000, "pageToken": first["nextPageToken"]})
        both = [row["id"] for row in first["profiles"] + second["profiles"]]
        self.assertEqual(len(both), len(set(both)))
        self.assertLessEqual(more, set(both))
        self.refusals(servers[0], first["nextPageToken"])
        servers[0].stop()
        servers[1].kill9()

        # Compacted: the same rows.
        server = Server(*QUICK, "--compact-after", "0", database_url=self.url)
        self.check(server, "in the middle of compaction", ids)
        eventually(self.compacted, 60, what="compaction")
        self.assertGreater(int(sql(self.url, "SELECT count(*) FROM hearth_data.segment")[0][0]), 0)
        self.check(server, "compacted", ids)
        server.kill9()
        server.start()
        self.check(server, "compacted, after kill -9 and a restart", ids)

        # Erased: hidden at once, and gone.
        erase = {"labelSelector": '{service_name="web"}', "start": model.start, "end": model.end}
        n = int(server.connect("hearth.v1.AdminService/Erase", {**erase, "dryRun": True})["series"])
        server.connect("hearth.v1.AdminService/Erase", {**erase, "expectedSeries": n, "requestedBy": "the test"})
        gone = [row for row in self.pages(server, 1000, filter=self.filter()) if row["service"] == "web"]
        self.assertEqual(gone, [])
        model.uploads = [u for u in model.uploads if u.service != "web"]
        left = self.check(server, "erased")
        self.assertLess(left, ids)
        for id in sorted(ids - left)[:20]:
            with self.assertRaises(RpcError) as refused:
                server.connect(LISTED + "GetProfile", {"id": id})
            self.assertEqual(refused.exception.code, "not_found")
        server.stop()

        # Expired: no longer listed.
        server = Server("--builder=false", "--retain-raw", "2h", database_url=self.url)
        kept = self.pages(server, 100, filter=self.filter())
        self.assertLess({row["id"] for row in kept}, left)
        self.assertGreaterEqual(min(int(row["timeNs"]) for row in kept), (now_ms() - 3 * HOUR) * MS)
        server.stop()

    def test_an_id_is_found_by_its_tenant_only(self):
        server = Server("--multitenancy", database_url=self.own_database("tenants"))
        profile = Profile(TYPES, time_ns=now_ms() * MS).add(["main"], [1, 5]).encode()
        server.push(profile, {"__name__": "process_cpu", "service_name": "api"}, metadata=[("x-scope-orgid", "one")])
        request = {"filter": {"start": now_ms() - MINUTE, "end": now_ms() + MINUTE}}
        row, = server.connect(LISTED + "ListProfiles", request, {"X-Scope-OrgID": "one"})["profiles"]
        self.assertEqual(server.connect(LISTED + "ListProfiles", request, {"X-Scope-OrgID": "two"}), {})
        server.connect(LISTED + "GetProfile", {"id": row["id"]}, {"X-Scope-OrgID": "one"})
        for method in ("GetProfile", "GetProfilePprof"):
            with self.assertRaises(RpcError) as failed:
                server.connect(LISTED + method, {"id": row["id"]}, {"X-Scope-OrgID": "two"})
            self.assertEqual(failed.exception.code, "not_found")
        server.stop()

    def test_a_range_of_decades_is_listed_at_once(self):
        server = Server("--builder=false", "--reject-older-than=0", database_url=self.own_database("decades"))
        for days in (0, 2, 5):
            profile = Profile(TYPES, time_ns=(now_ms() - days * DAY) * MS).add(["main"], [1, 5]).encode()
            server.push(profile, {"__name__": "process_cpu", "service_name": "api"})
        started = now_ms()
        for ascending in (False, True):
            request = {"filter": {"start": 1, "end": now_ms() + MINUTE}, "ascending": ascending}
            self.assertEqual(len(server.connect(LISTED + "ListProfiles", request)["profiles"]), 3)
        self.assertLess(now_ms() - started, 5000)
        server.stop()

    def test_the_first_labels_by_name_are_counted(self):
        server = Server("--builder=false", database_url=self.own_database("labels"))
        names = ["l%03d" % i for i in range(150)]
        random.Random(7).shuffle(names)
        for i in range(0, 150, 15):
            profile = Profile(TYPES, time_ns=now_ms() * MS).add(["main"], [1, 5]).encode()
            server.push(profile, {"__name__": "process_cpu", "service_name": "api", **dict.fromkeys(names[i:i + 15], "x")})
        chosen = {"start": now_ms() - MINUTE, "end": now_ms() + MINUTE}
        found, n = self.facets(server, chosen)
        self.assertEqual((list(found), n), (sorted(names)[:100], 10))
        self.assertEqual(list(found.values()), [{"x": 1}] * 100)
        found, _ = self.facets(server, chosen, labels=["l149", "service_name", "l149"])
        self.assertEqual(found, {"l149": {"x": 1}, "service_name": {"api": 10}})
        server.stop()

    def test_the_client_prints_lists_facets_and_single_profiles(self):
        server = Server("--builder=false", database_url=self.own_database("client"))
        now = now_ms()
        for i in range(5):
            profile = Profile(TYPES, time_ns=(now - i) * MS, duration_ns=10_000 * MS).add(["main"], [1, (i + 1) * 10**9])
            labels = {"__name__": "process_cpu", "service_name": "shop", "host": "web-%d" % (i % 2)}
            server.push((profile.add(["main", "x"], [1, 5], {"tier": "gold"}) if i == 2 else profile).encode(), labels)

        def run(*arguments):
            done = hearth("profiles", *arguments, env={"HEARTH_URL": "http://127.0.0.1:%d" % server.port})
            self.assertEqual(done.code, 0, done.err)
            return [line.split() for line in done.out.splitlines()]

        head, *rows = run("list")
        self.assertEqual(head, ["time", "id", "duration", "service", "types", "labels"])
        self.assertEqual([row[5:] for row in rows[:3]], [
            ["shop", "cpu,samples", "host=web-0"], ["shop", "cpu,samples", "host=web-1"], ["shop", "cpu,samples", "host=web-0"]])
        head, top = run("list", "{}", "--type", CPU, "--sort", "total", "--limit", "1", "--label", "host=web-1")
        self.assertEqual(head, ["time", "id", "duration", "total", "service", "types", "labels"])
        self.assertEqual((top[2], top[5:7]), (rows[3][2], ["4.00", "s"]))
        self.assertEqual(run("facets", "--by", "host"), [["label", "profiles", "%", "value"], ["host", "3", "60.00%", "web-0"], ["host", "2", "40.00%", "web-1"]])
        shown = run("show", rows[2][2])
        self.assertEqual(shown[1:3], [["host:", "web-0"], ["service_name:", "shop"]])
        self.assertIn(["series", "host=web-0", "tier=gold"], shown)
        path = os.path.join(temporary_directory(), "one.pb.gz")
        run("pprof", rows[2][2], "-o", "pprof=" + path)
        with open(path, "rb") as file:
            self.assertEqual(Decoded(file.read()).totals(), [2, 3_000_000_005])
        done = hearth("profiles", "pprof", rows[0][2], env={"HEARTH_URL": "http://127.0.0.1:%d" % server.port})
        self.assertEqual((done.code, done.err), (2, "hearth: profiles pprof requires -o pprof=FILE; try hearth profiles pprof --help\n"))
        done = hearth("profiles", "list", "--sort", "total", env={"HEARTH_URL": "http://127.0.0.1:%d" % server.port})
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("type: %s" % CPU, done.err)
        server.stop()

    def own_database(self, name):
        sql(self.url, 'CREATE DATABASE "%s"' % name)
        return self.cluster.url(name)

    def check_sql(self, server, ids):
        rows = sql(self.url, "SELECT DISTINCT profile_id FROM hearth.profiles")
        self.assertEqual({row[0] for row in rows}, ids)
        expected = {
            (u[0], u[1] // 1000, u[2], u[3], json.dumps(dict(u[4])), ",".join(u[5]))
            for u in map(self.model.row, self.model.uploads)
        }
        rows = sql(self.url, "SELECT profile_id, ts, extract(epoch FROM duration) * 1000000, service, cardinality(series_ids),"
                   " labels, array_to_string(profile_types, ',') FROM hearth.uploads")
        self.assertEqual({row[0] for row in rows}, ids)
        self.assertEqual(len(rows), len(ids))
        found = {(int(r[1]), int(float(r[2])), r[3], int(r[4]), json.dumps(dict(sorted(json.loads(r[5]).items()))), r[6]) for r in rows}
        self.assertEqual(found, expected)

        # A condition on ts reads only the leaves of its days.
        for condition, reads in (("now() - interval '1 hour'", True), ("now() + interval '3 days'", False)):
            plan = sql(self.url, "EXPLAIN SELECT * FROM hearth.uploads WHERE ts >= hearth.ns(%s)" % condition)
            self.assertEqual(any(re.search(r"on profile_\d", line[0]) for line in plan), reads, plan)

    def refusals(self, server, token):
        def refused(code, message, method, request):
            with self.assertRaises(RpcError) as failed:
                server.connect(LISTED + method, request)
            self.assertEqual(failed.exception.code, code)
            self.assertIn(message, failed.exception.message)

        chosen = self.filter()
        refused("invalid_argument", "filter is missing", "ListProfiles", {})
        refused("invalid_argument", "page_size is from 0 to 1000, not 1001", "ListProfiles", {"filter": chosen, "pageSize": 1001})
        refused("invalid_argument", "page_token is not valid", "ListProfiles", {"filter": chosen, "pageToken": "x"})
        refused("invalid_argument", "page_token is not valid", "ListProfiles", {"filter": chosen, "pageToken": token + ":x"})
        refused("invalid_argument", "page_token is not valid", "ListProfiles", {"filter": chosen, "pageToken": token, "ascending": True})
        refused("invalid_argument", "needs profile_type", "ListProfiles", {"filter": chosen, "order": "PROFILE_ORDER_TOTAL"})
        refused("invalid_argument", "selector", "ListProfiles", {"filter": {**chosen, "labelSelector": "{"}})
        refused("invalid_argument", "missing time range", "ListProfiles", {"filter": {}})
        refused("invalid_argument", "101 labels are requested", "ProfileFacets", {"filter": chosen, "labels": ["x"] * 101})
        refused("invalid_argument", "limit is from 0 to 1000", "ProfileFacets", {"filter": chosen, "limit": 1001})
        refused("invalid_argument", "is not a UUID", "GetProfile", {"id": "7"})
        refused("not_found", "does not say where", "GetProfile", {"id": "00000001-0000-8000-8000-000004000000"})
        refused("not_found", "does not say where", "GetProfile", {"id": "7c9e6679-7425-40de-944b-e07fc1f90ae7"})


if __name__ == "__main__":
    unittest.main()
