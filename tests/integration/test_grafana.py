"""What Grafana's data source and Profiles Drilldown send, in their order and with their headers, checked field by field.

The data source's backend speaks Connect with protobuf and accepts gzip: headers, fields and their order are as a proxy
recorded them between the real one (docs/how-to/grafana.md#state) and hearthd. Drilldown's pages speak Connect with JSON
through the data source's proxy, and plain HTTP.
"""

import base64
import gzip
import json
import unittest
import urllib.parse

import contract
import schema
from server import Server, now_ms

QUERIER = "querier.v1.QuerierService/"
CPU, SAMPLES = contract.CPU, contract.CPU.replace("cpu:nanoseconds:", "samples:count:", 1)


class Clients(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.t = now_ms() // 1000 * 1000 - 120_000
        for labels, after_ms, profile in contract.PUSHED:
            cls.server.push(profile((cls.t + after_ms) * 1_000_000).encode(), {"__name__": "process_cpu", **labels})
        cls.start, cls.end = cls.t - 60_000, cls.t + 60_000

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def backend(self, method, **request):
        """As the data source does: connect-go with its defaults, and what Grafana says of the panel. With the toggle
        pyroscopeUTF8LabelNames two methods have an Accept."""
        messages = contract.METHODS[QUERIER + method]
        headers = {
            "User-Agent": "connect-go/1.19.2 (go1.26.8)", "Accept-Encoding": "gzip", "Connect-Protocol-Version": "1",
            "Content-Type": "application/proto", "X-Dashboard-Uid": "abc", "X-Datasource-Uid": "hearth", "X-Grafana-Org-Id": "1",
            "X-Panel-Id": "2", "X-Query-Group-Id": "11112222",
        }
        if method in ("LabelNames", "SelectSeries"):
            headers["Accept"] = "*/*; allow-utf8-labelnames=true"
        body = schema.encode(messages.request, request)
        status, found, answer = self.server.http("POST", "/" + QUERIER + method, body, headers)
        self.assertEqual((status, found["content-type"]), (200, "application/proto"), answer)
        if found.get("content-encoding") == "gzip":
            answer = gzip.decompress(answer)
        return schema.decode(messages.response, answer)

    def page(self, method, request, response_type="application/json", status=200):
        """As Drilldown's pages: JSON, headers of Grafana's proxy."""
        headers = {
            "Content-Type": "application/json", "Accept": "application/json; allow-utf8-labelnames=true", "X-Grafana-Org-Id": "1",
            "X-Grafana-Device-Id": "abc", "Accept-Encoding": "gzip, deflate, br, zstd", "Origin": "http://grafana.example",
        }
        got, found, answer = self.server.http("POST", "/" + method, json.dumps(request), headers)
        if found.get("content-encoding") == "gzip":
            answer = gzip.decompress(answer)
        self.assertEqual((got, found["content-type"]), (status, response_type), answer)
        answer = json.loads(answer)
        if status == 200:
            schema.from_json(contract.METHODS[method].response, answer)  # every field has its JSON type
        return answer

    # ---- Grafana's data source ----

    def test_the_health_check_requests_types_of_1970(self):
        self.assertEqual(self.backend("ProfileTypes", start=1000, end=4000), {})

    def test_the_query_editor_requests_types_names_and_values(self):
        types = self.backend("ProfileTypes", start=self.start, end=self.end)["profileTypes"]
        self.assertEqual([t["ID"] for t in types], [CPU, SAMPLES])
        # The selector of the query, with the type; without the label whose values are completed.
        matchers = ['{__profile_type__="%s",service_name="heat"}' % CPU]
        names = self.backend("LabelNames", matchers=matchers, start=self.start, end=self.end)["names"]
        self.assertEqual([n for n in names if not n.startswith("__")], ["service_name", "zone"])
        values = self.backend("LabelValues", name="zone", matchers=matchers, start=self.start, end=self.end)
        self.assertEqual(values, {"names": ["east", "west"]})

    def test_a_variable_requests_labels_by_a_type_as_metric_name(self):
        names = self.backend("LabelNames", matchers=[CPU + "{}"], start=self.start, end=self.end)["names"]
        self.assertEqual([n for n in names if not n.startswith("__")], ["pod", "service_name", "zone"])
        values = self.backend("LabelValues", name="service_name", matchers=[CPU + "{}"], start=self.start, end=self.end)
        self.assertEqual(values, {"names": ["after", "before", "heat", "shop", "spans"]})
        other = self.backend("LabelValues", name="service_name", matchers=["a:b:c:d:e{}"], start=self.start, end=self.end)
        self.assertEqual(other, {})

    def test_a_panel_requests_a_series_and_a_flame_graph(self):
        both = {"profileTypeID": CPU, "labelSelector": '{service_name="shop"}', "start": self.start, "end": self.end}
        series = self.backend("SelectSeries", **both, groupBy=["pod"], step=15.0, limit=10, exemplarType="EXEMPLAR_TYPE_INDIVIDUAL")["series"]
        self.assertEqual([s["labels"] for s in series], [[{"name": "pod", "value": "a"}]])
        point = series[0]["points"][0]
        self.assertEqual((point["value"], point["timestamp"]), (110.0, self.start + 60_000))
        exemplar = point["exemplars"][0]
        self.assertEqual((exemplar["timestamp"], exemplar["value"]), (self.t, 110))
        names = [label["name"] for label in exemplar["labels"]]
        self.assertTrue("pod" not in names and "service_name" in names, names)
        graph = self.backend("SelectMergeStacktraces", **both, maxNodes=16384)
        self.assertEqual(contract.flame(graph), (contract.SHOP_LEVELS, 110, 40, 0, 0))
        one = self.backend("SelectMergeStacktraces", **both, maxNodes=16384, profileIdSelector=[exemplar["profileId"]])
        self.assertEqual(contract.flame(one), (contract.SHOP_LEVELS, 110, 40, 0, 0))
        site = self.backend("SelectMergeStacktraces", **both, maxNodes=16384, stackTraceSelector=contract.SHOP_CALL_SITE)
        self.assertEqual(site["flamegraph"]["total"], 50)

    def test_traces_to_profiles_requests_spans_over_either_method(self):
        both = {"profileTypeID": CPU, "labelSelector": '{service_name="spans"}', "start": self.start, "end": self.end, "maxNodes": 16384}
        older = self.backend("SelectMergeSpanProfile", **both, spanSelector=[contract.SPAN_A])
        newer = self.backend("SelectMergeStacktraces", **both, spanSelector=[contract.SPAN_A])
        self.assertEqual(older, newer)
        self.assertEqual(older["flamegraph"]["total"], 7)
        trace = self.backend("SelectMergeStacktraces", **both, traceIdSelector=[contract.TRACE_A])
        self.assertEqual(trace["flamegraph"]["total"], 9)

    def test_a_heatmap_panel_requests_a_grid_with_exemplars(self):
        step = max(15.0, (self.end - self.start) / 1000 / 64)
        series = self.backend(
            "SelectHeatmap", profileTypeID=CPU, labelSelector='{service_name="heat"}', start=self.start, end=self.end, step=step,
            queryType="HEATMAP_QUERY_TYPE_INDIVIDUAL", exemplarType="EXEMPLAR_TYPE_INDIVIDUAL", groupBy=["service_name"],
        )["series"]
        self.assertEqual([s["labels"] for s in series], [[{"name": "service_name", "value": "heat"}]])
        slots = series[0]["slots"]
        self.assertEqual(sum(sum(s["counts"]) for s in slots), 5)
        for slot in slots:
            self.assertEqual((len(slot["yMin"]), len(slot["counts"])), (20, 20))
            self.assertEqual(len(slot["exemplars"]), sum(n > 0 for n in slot["counts"]))

    # ---- Profiles Drilldown ----

    def test_the_landing_page_requests_services_and_their_types(self):
        for start, end in ((self.start, self.end), (str(self.start), str(self.end))):
            answer = self.page(QUERIER + "Series", {
                "start": start, "end": end, "labelNames": ["service_name", "__profile_type__"], "matchers": ["{}"]})
            pairs = [{label["name"]: label["value"] for label in s["labels"]} for s in answer["labelsSet"]]
            self.assertEqual(len(pairs), 10)
            self.assertIn({"__profile_type__": CPU, "service_name": "shop"}, pairs)

    def test_the_labels_view_requests_names_and_values(self):
        both = {"matchers": ['%s{service_name="heat"}' % CPU.split(":")[0]], "start": self.start, "end": self.end}
        self.assertIn("zone", self.page(QUERIER + "LabelNames", both)["names"])
        self.assertEqual(self.page(QUERIER + "LabelValues", {**both, "name": "zone"})["names"], ["east", "west"])

    def test_the_plugin_keeps_its_settings(self):
        kept = {"setting": {"name": "pluginSettings", "value": '{"collapsedFlamegraphs":true}', "modifiedAt": str(now_ms())}}
        self.assertEqual(self.page("settings.v1.SettingsService/Get", {}), {})
        self.assertEqual(self.page("settings.v1.SettingsService/Set", kept), kept)
        self.assertEqual(self.page("settings.v1.SettingsService/Get", {}), {"settings": [kept["setting"]]})

    def test_metrics_from_profiles_are_made_listed_and_deleted(self):
        rules = "settings.v1.RecordingRulesService/"
        self.assertEqual(self.page(rules + "ListRecordingRules", {}), {})
        made = self.page(rules + "UpsertRecordingRule", {
            "metric_name": "profiles_recorded_shop", "matchers": ['{service_name="shop"}', '{__profile_type__="%s"}' % CPU],
            "group_by": ["pod"], "external_labels": [],
        })["rule"]
        self.assertEqual((made["metricName"], made["profileType"], made["groupBy"]), ("profiles_recorded_shop", CPU, ["pod"]))
        self.assertEqual([r["id"] for r in self.page(rules + "ListRecordingRules", {})["rules"]], [made["id"]])
        self.assertEqual(self.page(rules + "DeleteRecordingRule", {"id": made["id"]}), {})

    def test_the_ad_hoc_view_uploads_and_reads_back(self):
        service = "adhocprofiles.v1.AdHocProfileService/"
        profile = base64.b64encode(contract.shop(self.t * 1_000_000).encode()).decode()
        made = self.page(service + "Upload", {"name": "shop profile.pb.gz", "profile": profile})
        self.assertTrue(made["id"].endswith("-shop_profile.pb.gz"), made["id"])
        graph = json.loads(made["flamebearerProfile"])
        self.assertEqual((graph["version"], graph["metadata"]["format"], graph["flamebearer"]["names"][0]), (1, "single", "total"))
        again = self.page(service + "Get", {"id": made["id"], "profile_type": "cpu"})
        self.assertEqual(json.loads(again["flamebearerProfile"])["flamebearer"]["numTicks"], 110)
        self.assertEqual(self.page(service + "List", {})["profiles"][0]["id"], made["id"])

    def test_unconfigured_services_answer_501(self):
        self.assertEqual(self.page("vcs.v1.VCSService/GithubApp", {}, status=501)["code"], "unimplemented")

    def test_feature_flags_and_unknown_formats_let_it_fall_back(self):
        flags = self.page("capabilities.v1.FeatureFlagsService/GetFeatureFlags", {})["featureFlags"]
        self.assertNotIn("functionProjections", [f["name"] for f in flags])
        answer = self.page(QUERIER + "SelectMergeStacktraces", {
            "profileTypeID": CPU, "labelSelector": '{service_name="shop"}', "start": self.start, "end": self.end,
            "format": "PROFILE_FORMAT_FUNCTIONS", "formatOptions": {"functions": {"limit": 100}},
        })
        self.assertNotIn("functions", answer)
        self.assertEqual(answer["flamegraph"]["total"], "110")

    def test_the_assistant_and_the_diff_view_use_plain_http(self):
        def get(path):
            status, headers, body = self.server.http("GET", path, headers={"X-Grafana-Org-Id": "1"})
            self.assertEqual(status, 200, body)
            return headers["content-type"], body

        def query(service):
            return urllib.parse.quote('%s{service_name="%s"}' % (CPU, service))

        kind, dot = get("/pyroscope/render?format=dot&query=%s&from=%d&until=%d&max-nodes=100" % (query("shop"), self.start, self.end))
        self.assertTrue(kind.startswith("text/plain") and b"digraph" in dot, dot)
        kind, body = get("/pyroscope/render?format=json&query=%s&from=%d&until=%d" % (query("shop"), self.start, self.end))
        graph = json.loads(body)
        self.assertEqual((graph["flamebearer"]["numTicks"], graph["metadata"]["format"]), (110, "single"))
        self.assertEqual(graph["timeline"]["durationDelta"], 15)
        self.assertEqual(sum(graph["timeline"]["samples"]), 110)
        kind, body = get(
            "/pyroscope/render-diff?leftQuery=%s&rightQuery=%s&leftFrom=%d&leftUntil=%d&rightFrom=%d&rightUntil=%d"
            % (query("before"), query("after"), self.start, self.end, self.start, self.end)
        )
        diff = json.loads(body)
        self.assertEqual((diff["metadata"]["format"], diff["leftTicks"], diff["rightTicks"]), ("double", 15, 8))
        request = {"left": contract.of("before"), "right": contract.of("after")}
        for side in request.values():
            side.update(start=self.start, end=self.end)
        levels = contract.flame(self.backend("Diff", **request))[0]
        names = diff["flamebearer"]["names"]
        self.assertEqual(
            [[tuple(v[k : k + 6]) + (names[v[k + 6]],) for k in range(0, len(v), 7)] for v in diff["flamebearer"]["levels"]], levels
        )

    def test_the_export_is_a_pprof_message_fetched_by_the_browser(self):
        request = schema.encode("querier.v1.SelectMergeProfileRequest", {
            "profileTypeID": CPU, "labelSelector": '{service_name="shop"}', "start": self.start, "end": self.end})
        headers = {"content-type": "application/proto", "Accept-Encoding": "gzip, deflate, br", "X-Grafana-Org-Id": "1"}
        status, found, body = self.server.http("POST", "/" + QUERIER + "SelectMergeProfile", request, headers)
        body = gzip.decompress(body) if found.get("content-encoding") == "gzip" else body
        self.assertEqual((status, contract.stacks(schema.decode("google.v1.Profile", body))[0]), (200, contract.SHOP_PPROF[0]))


if __name__ == "__main__":
    unittest.main()
