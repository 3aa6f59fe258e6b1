"""Two tenants see nothing of each other: not in an answer, a header, an error, a metric."""

import json
import unittest

import wire
from pprof import Profile
from questions import CPU, PPROF, TREE, FlameGraph
from server import PROFILES, PUSH, QUERIER, RpcError, Server, now_ms

TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
T = now_ms() - 300_000
START, END = T - 60_000, T + 60_000

# What only one tenant ever sent; every word of it begins with the tenant's own.
RED, BLUE = "crimsonred", "ceruleanblue"


def org(name):
    return [("x-scope-orgid", name)]


def profile(word, value):
    p = Profile([(word + "type", word + "unit"), ("cpu", "nanoseconds")], time_ns=T * 1_000_000)
    p.add(["main", word + "function"], [1, value])
    p.add(["main", "shared"], [1, value], {word + "samplelabel": word + "samplevalue"})
    p.samples.append(([("0x1000", "/lib/%smapping.so" % word)], [1, value], {}))
    return p


class Tenants(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--multitenancy", "--log-level", "debug")
        cls.values = {RED: 100, BLUE: 7}
        for word, value in cls.values.items():
            # The same name, service and pod for both, and words of their own.
            for name, labels in (
                ("process_cpu", {"service_name": "shop", "pod": "p-1"}),
                (word + "name", {"service_name": word + "service", word + "label": word + "value"}),
            ):
                cls.server.push(profile(word, value).encode(), {"__name__": name, **labels}, "same-id", org(word))

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def bytes_of(self, word, method, fields):
        """Everything that comes back: message, headers and trailers, or the error."""
        try:
            answer, metadata = self.server.grpc_bytes(method, wire.encode(fields), org(word))
        except RpcError as error:
            return error.message.encode() + repr(error.metadata).encode()
        return answer + repr(metadata).encode()

    @staticmethod
    def requests(foreign):
        """Every RPC, also asking for the other tenant's words by name."""
        ranged = [(3, START), (4, END)]
        out = [("ProfileTypes", [(1, START), (2, END)]), ("ProfileTypes", [])]
        selectors = ["{}", '{service_name=~".+"}', '{service_name=~".*service"}', '{%slabel!=""}' % foreign]
        for selector in selectors:
            out.append(("LabelNames", [(1, selector), (2, START), (3, END)]))
            out.append(("Series", [(1, selector)] + ranged))
            out.append(("Series", [(1, selector), (2, foreign + "label"), (2, "pod")] + ranged))
            for name in ("service_name", "pod", "__name__", "__profile_type__", foreign + "label", foreign + "samplelabel"):
                out.append(("LabelValues", [(1, name), (2, selector)] + ranged))
            for profile_type in (CPU, "%sname:cpu:nanoseconds:cpu:nanoseconds" % foreign):
                merge = [(1, profile_type), (2, selector)] + ranged
                out.append(("SelectMergeProfile", merge))
                out.append(("SelectSeries", merge + [(5, "service_name"), (5, foreign + "label"), (6, 1.0)]))
                for number in (0, TREE, PPROF):
                    out.append(("SelectMergeStacktraces", merge + [(6, number)]))
        return [(QUERIER + method, fields) for method, fields in out]

    def test_no_answer_contains_a_name_of_the_other_tenant(self):
        for word, foreign in ((RED, BLUE), (BLUE, RED)):
            seen = b""
            for method, fields in self.requests(foreign):
                answer = self.bytes_of(word, method, fields)
                # The request's own words may come back in an error or as a projected name, never what was stored.
                for stored in ("service", "value", "function", "samplevalue", "mapping", "type", "unit", "name"):
                    asked = (foreign + stored).encode() in wire.encode(fields)
                    self.assertFalse(not asked and (foreign + stored).encode() in answer, (method, fields, answer[:300]))
                seen += answer
            for stored in ("service", "value", "function", "samplevalue", "mapping", "type", "name", "label"):
                self.assertIn((word + stored).encode(), seen, "its own words are there")

    def test_each_tenant_merges_only_its_own_values_of_a_shared_series(self):
        for word, value in self.values.items():
            selector = '{service_name="shop",pod="p-1"}'
            flame = FlameGraph(self.server.stacktraces(CPU, selector, START, END, metadata=org(word))[1][-1])
            self.assertEqual(flame.functions()["main"], (0, 2 * value))
            found = self.server.select_series(CPU, selector, T, T, 1, metadata=org(word))
            self.assertEqual(found, [((), [(T, 3.0 * value)])])

    def test_the_same_sample_id_of_two_tenants_is_two_profiles(self):
        # setUpClass pushed every profile under one ID: had it crossed, the second tenant's would be missing.
        rows = self.server.sql(
            "SELECT t.name, count(*) FROM " + PROFILES + " JOIN hearth_data.service s USING (service_id)"
            " JOIN hearth_data.tenant t USING (tenant_id) GROUP BY 1 ORDER BY 1"
        )
        self.assertEqual(rows, [[BLUE, "4"], [RED, "4"]])

    def test_errors_do_not_name_the_other_tenant(self):
        broken = [
            (PUSH, [(1, [(1, [(1, "__name__"), (2, "x")]), (2, [(1, b"garbage")])])]),
            (QUERIER + "LabelNames", [(1, "{"), (2, START), (3, END)]),
            (QUERIER + "SelectSeries", [(1, "bad"), (2, "{}"), (3, START), (4, END), (6, 1.0)]),
            ("querier.v1.QuerierService/NoSuch", []),
        ]
        for word, foreign in ((RED, BLUE), (BLUE, RED)):
            for method, fields in broken:
                self.assertNotIn(foreign.encode(), self.bytes_of(word, method, fields))

    def test_metrics_and_plain_pages_contain_no_name_of_a_tenant(self):
        for path in ("/metrics", "/ready", "/healthz", "/", "/api/v1/status/buildinfo", "/nothing"):
            for headers in ({}, {"X-Scope-OrgID": RED}):
                status, found, body = self.server.http("GET", path, headers=headers)
                text = body.decode() + repr(found)
                for word in self.values:
                    self.assertNotIn(word, text, path)

    def test_a_tenant_without_data_gets_empty_answers(self):
        self.assertEqual(self.server.profile_types(START, END, org("nobody")), [])
        self.assertEqual(self.server.label_names(START, END, metadata=org("nobody")), [])
        self.assertEqual(self.server.series(START, END, metadata=org("nobody")), [])
        flame = FlameGraph(self.server.stacktraces(CPU, "{}", START, END, metadata=org("nobody"))[1][-1])
        self.assertEqual((flame.names, flame.levels), (["total"], [[0, 0, 0, 0]]))

    def test_a_tenant_that_only_queried_is_not_stored(self):
        self.server.label_names(START, END, metadata=org("curious"))
        rows = self.server.sql("SELECT name FROM hearth_data.tenant ORDER BY 1")
        self.assertNotIn(["curious"], rows)

    def everywhere(self, metadata, headers, code, http_status):
        """The code of one request by gRPC and by Connect, push and query."""
        for method, fields in ((PUSH, []), (QUERIER + "ProfileTypes", [])):
            with self.assertRaises(RpcError, msg=metadata) as caught:
                self.server.grpc_bytes(method, wire.encode(fields), metadata)
            self.assertEqual(caught.exception.code, code, (metadata, caught.exception.message))
            for content_type in ("application/json", "application/proto"):
                body = b"{}" if content_type.endswith("json") else b""
                status, found, answer = self.server.http("POST", "/" + method, body, {"Content-Type": content_type, **headers})
                self.assertEqual(status, http_status, headers)
                self.assertEqual(json.loads(answer)["code"], code)

    def test_a_missing_tenant_is_unauthenticated(self):
        self.everywhere(None, {}, "unauthenticated", 401)
        self.everywhere(org(""), {"X-Scope-OrgID": ""}, "unauthenticated", 401)
        with self.assertRaises(RpcError) as caught:
            self.server.profile_types(START, END)
        self.assertEqual(caught.exception.message, "no org id")

    def test_an_invalid_tenant_is_refused(self):
        for name in (".", "..", "a/b", "a b", "a|b/", "x" * 151, "a:b", "<script>"):
            self.everywhere(org(name), {"X-Scope-OrgID": name}, "invalid_argument", 400)

    def test_odd_but_valid_tenants_are_served(self):
        for name in ("a", "x" * 150, "A-z_0.9*'()!"):
            self.assertEqual(self.server.profile_types(START, END, org(name)), [])

    def test_several_tenant_headers_are_refused(self):
        with self.assertRaises(RpcError) as caught:
            self.server.profile_types(START, END, org(RED) + org(BLUE))
        self.assertEqual(caught.exception.code, "invalid_argument")


class SeveralTenants(unittest.TestCase):
    """X-Scope-OrgID: a|b reads both; c holds what both have, with the label __tenant_id__."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--multitenancy", "--max-read-tenants", "3")
        for tenant, service, value in (("a", "shop", 5), ("b", "shop", 7), ("b", "pay", 11)):
            pushed = Profile(TYPES, time_ns=T * 1_000_000).add(["main", service], [1, value]).encode()
            labels = {"__name__": "process_cpu", "service_name": service, "pod": "p-1"}
            cls.server.push(pushed, labels, metadata=org(tenant))
            cls.server.push(pushed, {**labels, "__tenant_id__": tenant}, metadata=org("c"))

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def same(self, method, message):
        """The answer for a|b, which equals that for c."""
        both = self.server.connect(method, message, {"X-Scope-OrgID": "b|a|b"})
        self.assertEqual(both, self.server.connect(method, message, {"X-Scope-OrgID": "c"}), method)
        return both

    def test_answers_are_those_of_one_tenant_that_holds_both(self):
        ranged = {"start": START, "end": END}
        for selector in ("{}", '{__tenant_id__="a"}', '{__tenant_id__!="a", service_name="shop"}', '{pod=""}'):
            merge = {"profileTypeID": CPU, "labelSelector": selector, **ranged}
            self.same(QUERIER + "SelectMergeStacktraces", merge)
            self.same(QUERIER + "SelectSeries", {**merge, "groupBy": ["__tenant_id__", "service_name"], "step": 60})
            self.same(QUERIER + "Series", {"matchers": [selector], "labelNames": [], **ranged})
            self.same(QUERIER + "LabelNames", {"matchers": [selector], **ranged})
        self.assertEqual(self.same(QUERIER + "LabelValues", {"name": "__tenant_id__", **ranged}), {"names": ["a", "b"]})
        graph = self.same(QUERIER + "SelectMergeStacktraces", {"profileTypeID": CPU, "labelSelector": "{}", **ranged})
        self.assertEqual(graph["flamegraph"]["total"], "23")
        selection = {"selection": {"profileType": CPU, "labelSelector": "{}", **ranged}}
        for method, more in (("Top", {}), ("LabelStats", {"label": "service_name"}), ("Timeline", {"step": 60})):
            self.same("hearth.v1.QueryService/" + method, {**selection, **more})

    def test_plain_routes_read_several_tenants(self):
        path = "/pyroscope/label-values?label=__tenant_id__&from=%d&until=%d" % (START, END)
        for header, want in (("a|b", ["a", "b"]), ("a|nobody", ["a"]), ("a|a", [])):
            status, _, body = self.server.http("GET", path, headers={"X-Scope-OrgID": header})
            self.assertEqual((status, json.loads(body)), (200, want), header)

    def test_writes_and_other_methods_work_on_one_tenant(self):
        pushed = Profile(TYPES, time_ns=T * 1_000_000).add(["main"], [1, 5]).encode()
        with self.assertRaises(RpcError) as caught:
            self.server.push(pushed, {"__name__": "process_cpu", "service_name": "s"}, metadata=org("a|b"))
        self.assertEqual(caught.exception.code, "invalid_argument")
        self.assertIn("/%s works on one tenant only" % PUSH, caught.exception.message)
        status, _, body = self.server.http("POST", "/ingest?name=s", b"main 1", {"X-Scope-OrgID": "a|b"})
        self.assertEqual(status, 400)
        self.assertIn(b"/ingest works on one tenant only", body)
        with self.assertRaises(RpcError) as caught:
            self.server.connect("hearth.v1.TaskService/ListTasks", {}, {"X-Scope-OrgID": "a|b"})
        self.assertIn("ListTasks works on one tenant only", caught.exception.message)

    def test_the_number_of_tenants_is_limited(self):
        with self.assertRaises(RpcError) as caught:
            self.server.profile_types(START, END, org("a|b|c|d"))
        self.assertIn("names 4 tenants; a request may read 3 (max-read-tenants)", caught.exception.message)


class WithoutTenancy(unittest.TestCase):
    def test_without_multitenancy_the_header_is_ignored(self):
        server = Server()
        self.addCleanup(server.stop)
        labels = {"__name__": "process_cpu", "service_name": "s"}
        pushed = Profile(TYPES, time_ns=T * 1_000_000).add(["main"], [1, 5]).encode()
        server.push(pushed, labels, metadata=org(RED))
        server.push(pushed, labels, metadata=org("not / valid | at all"))
        server.push(pushed, labels)
        for metadata in (None, org(RED), org("..")):
            self.assertEqual(FlameGraph(server.stacktraces(CPU, "{}", START, END, metadata=metadata)[1][-1]).total, 15)
        self.assertEqual(server.sql("SELECT name FROM hearth_data.tenant"), [["anonymous"]])
        self.assertEqual(server.connect(QUERIER + "LabelValues", {"name": "service_name", "start": START, "end": END},
                                        {"X-Scope-OrgID": "other"}), {"names": ["s"]})


if __name__ == "__main__":
    unittest.main()
