"""docs/observability against a running server: each metric and label that a dashboard, an alert or a runbook names is in
/metrics; the files are what Grafana and Prometheus read. promtool (Debian: prometheus) checks more where it is installed."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time
import unittest

import yaml

import pprof
import server
from questions import QUERIER

FILES = server.ROOT / "docs/observability"
PROMTOOL = os.environ.get("PROMTOOL") or shutil.which("promtool")
OF_PROMETHEUS = {"up", "job", "instance"}  # made by the scrape
NAME = re.compile(r"\b((?:hearth|process)_\w+|up)\b(?:\{([^}]*)\})?")
# What Grafana's @grafana/schema asks for: docs/observability/README.md has its versions.
LINK = {"type", "title", "tooltip", "icon", "tags", "asDropdown", "targetBlank", "keepTime", "includeVars"}
OPTIONS = {
    "stat": {
        "reduceOptions", "colorMode", "graphMode", "orientation", "textMode", "justifyMode", "wideLayout", "showPercentChange",
        "percentChangeColorMode",
    },
    "timeseries": {"legend", "tooltip"},
}
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')


def load_dashboards():
    return {path.name: json.loads(path.read_text()) for path in sorted((FILES / "dashboards").glob("*.json"))}


def load_alerts():
    (group,) = yaml.safe_load((FILES / "alerts.yaml").read_text())["groups"]
    return group["rules"]


def expressions():
    """(where, PromQL) of all files."""
    for name, board in load_dashboards().items():
        for panel in board["panels"]:
            for target in panel.get("targets", []):
                yield "%s, %s" % (name, panel["title"]), target["expr"]
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                yield "%s, $%s" % (name, variable["name"]), variable["query"]["query"]
        for mark in board["annotations"]["list"]:
            yield "%s, %s" % (name, mark["name"]), mark["target"]["expr"]
    for rule in load_alerts():
        yield rule["alert"], rule["expr"]


class ObservabilityFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server.Server()
        cls.addClassCleanup(cls.server.stop)

        # A push, a query, a failure of each: what has a line only once it happened.
        now = server.now_ms()
        profile = pprof.Profile([("cpu", "nanoseconds")], time_ns=time.time_ns())
        profile.add(["main"], [1])
        cls.server.push(profile.encode(), {"__name__": "process_cpu", "service_name": "shop"})
        for fields in ({"start": str(now - 60000), "end": str(now)}, {"start": "2", "end": "1"}):
            try:
                cls.server.connect(QUERIER + "LabelNames", fields)
            except server.RpcError:
                pass
        cls.server.stream_unary("skywalking.v3.EventService/collect", [])
        cls.samples = cls.server.metrics()
        cls.labels, cls.values = {}, {}
        for name, labels in cls.samples:
            for key, value in labels:
                cls.labels.setdefault(name, set()).add(key)
                cls.values.setdefault((name, key), set()).add(value)
        cls.names = {name for name, _ in cls.samples}

    def known_values(self, name, key):
        """The codes of all errors are known from the start, by method only once they happened."""
        if (name, key) == ("hearth_method_errors_total", "code"):
            name = "hearth_request_errors_total"
        return self.values[(name, key)]

    def check_matchers(self, where, name, text):
        for key, operator, value in MATCHER.findall(text or ""):
            if key in OF_PROMETHEUS or "$" in value:
                continue
            self.assertIn(key, self.labels.get(name, ()), where)
            known = self.known_values(name, key)
            if key == "method":
                self.assertTrue(any(re.fullmatch(value, one) for one in known), "%s: no method %s" % (where, value))
            else:
                self.assertLessEqual(set(value.split("|")), known, where)

    def test_every_metric_and_label_is_served(self):
        n = 0
        for where, expr in expressions():
            names = NAME.findall(expr)
            self.assertTrue(names, where)
            grouped = set()
            for name, matchers in names:
                n += 1
                if name in OF_PROMETHEUS:
                    continue
                self.assertIn(name, self.names, where)
                grouped |= self.labels.get(name, set())
                self.check_matchers(where, name, matchers)
            for by in re.findall(r"\bby \(([^)]*)\)", expr):
                self.assertLessEqual({one.strip() for one in by.split(",")}, grouped | OF_PROMETHEUS, where)
        self.assertGreater(n, 150)

    def test_a_legend_names_labels_that_the_expression_keeps(self):
        for name, board in load_dashboards().items():
            for panel in board["panels"]:
                for target in panel.get("targets", []):
                    wanted = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
                    by = re.search(r"\bby \(([^)]*)\)", target["expr"])
                    if by:
                        self.assertLessEqual(wanted, {one.strip() for one in by.group(1).split(",")}, panel["title"])
                    elif re.match(r"(sum|max|avg|min|histogram_quantile)\b", target["expr"]):
                        self.assertEqual(wanted, set(), panel["title"])

    def test_dashboards_have_the_shape_of_grafana(self):
        boards = load_dashboards()
        self.assertEqual(set(boards), {"overview.json", "ingest.json", "queries.json", "storage.json", "agents.json"})
        self.assertEqual(len({board["uid"] for board in boards.values()}), len(boards))
        for name, board in boards.items():
            self.assertEqual(board["schemaVersion"], 42, name)
            self.assertEqual([set(link) for link in board["links"]], [LINK], name)
            self.assertEqual([v["name"] for v in board["templating"]["list"]], ["datasource", "job", "instance"], name)
            self.assertEqual(len({panel["id"] for panel in board["panels"]}), len(board["panels"]), name)
            taken = set()
            for panel in board["panels"]:
                place = panel["gridPos"]
                cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
                self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
                self.assertFalse(cells & taken, "%s: %s overlaps" % (name, panel["title"]))
                taken |= cells
                if panel["type"] != "row":
                    self.assertEqual(panel["datasource"]["uid"], "${datasource}", panel["title"])
                    self.assertTrue(panel["description"].endswith("."), panel["title"])
                    self.assertTrue(panel["fieldConfig"]["defaults"]["unit"], panel["title"])
                    self.assertEqual(set(panel["options"]), OPTIONS[panel["type"]], panel["title"])
                    self.assertIn("calcs", panel["options"]["legend" if panel["type"] == "timeseries" else "reduceOptions"])
            for variable in board["templating"]["list"]:
                self.assertNotEqual(variable.get("current"), {}, name)  # a value and a text, or nothing

    def test_all_jobs_and_servers_are_those_of_hearth(self):
        """Prometheus and its other targets have process_cpu_seconds_total and up, too: .* would select them."""
        for name, board in load_dashboards().items():
            for variable in board["templating"]["list"][1:]:
                self.assertTrue(variable["includeAll"] and variable["query"]["query"].startswith("label_values(hearth_build_info"), name)
                self.assertNotIn("allValue", variable, name)

    def test_a_stat_shows_no_value_from_before_a_server_was_lost(self):
        for name, board in load_dashboards().items():
            for panel in board["panels"]:
                for target in panel.get("targets", []) if panel["type"] == "stat" else []:
                    self.assertEqual((target["instant"], target["range"]), (True, False), "%s, %s" % (name, panel["title"]))

    def test_every_alert_has_a_runbook_and_a_test(self):
        runbooks = re.findall(r"^## (\w+)$", (FILES / "runbooks.md").read_text(), re.M)
        tests = yaml.safe_load((FILES / "alerts-test.yaml").read_text())["tests"]
        tested = [case["alertname"] for test in tests for case in test["alert_rule_test"] if case["exp_alerts"]]
        alerts = [rule["alert"] for rule in load_alerts()]
        self.assertEqual((runbooks, tested), (alerts, alerts))
        for rule in load_alerts():
            self.assertEqual(rule["annotations"]["runbook_url"], "runbooks.md#" + rule["alert"].lower())
            self.assertIn(rule["labels"]["severity"], ("page", "ticket"))

    def test_provisioning_files_name_what_exists(self):
        found = {path.name: yaml.safe_load(path.read_text()) for path in (FILES / "provisioning").glob("*.yaml")}
        sources = {source["uid"]: source for source in found["grafana-datasources.yaml"]["datasources"]}
        self.assertEqual(sources["hearth"]["type"], "grafana-pyroscope-datasource")
        self.assertIn(sources["tempo"]["jsonData"]["tracesToProfiles"]["datasourceUid"], sources)
        (exemplars,) = sources["prometheus"]["jsonData"]["exemplarTraceIdDestinations"]
        self.assertIn(exemplars["datasourceUid"], sources)
        for job in found["prometheus.yaml"]["scrape_configs"]:
            self.assertEqual(self.server.http("GET", job.get("metrics_path", "/metrics"))[0], 200)
        self.assertEqual(found["prometheus.yaml"]["rule_files"], ["alerts.yaml"])
        self.assertEqual(found["grafana-dashboards.yaml"]["providers"][0]["type"], "file")

    def test_hearth_profiles_itself_into_a_tenant_of_its_own(self):
        path = pathlib.Path(server.temporary_directory()) / "self.yaml"
        text = (FILES / "provisioning/self-scrape.yaml").read_text()
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            port = held.getsockname()[1]
        path.write_text(text.replace("127.0.0.1:4040", "127.0.0.1:%d" % port).replace("15s", "2s"))
        path.chmod(0o644)
        own = server.Server("--multitenancy", "--scrape-config", str(path), "--listen", "127.0.0.1:%d" % port)
        self.addCleanup(own.stop)

        def is_stored():
            for _ in range(100):  # a server that does nothing has an empty profile
                own.http("GET", "/metrics")
            now = server.now_ms()
            fields = {"start": str(now - 600000), "end": str(now), "name": "service_name"}
            return own.connect(QUERIER + "LabelValues", fields, {"X-Scope-OrgID": "hearth"}).get("names") == ["hearthd"]

        server.eventually(is_stored, 60, what="a profile of hearthd in the tenant hearth")


@unittest.skipUnless(PROMTOOL, "promtool is not installed (Debian: prometheus)")
class Promtool(unittest.TestCase):
    def run_tool(self, *arguments, stdin=None):
        done = subprocess.run([PROMTOOL, *arguments], cwd=FILES, input=stdin, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr).decode())

    def test_rules_are_valid_and_each_alert_fires(self):
        self.run_tool("check", "rules", "alerts.yaml")
        self.run_tool("test", "rules", "alerts-test.yaml")

    def test_the_metrics_pass(self):
        running = server.Server()
        self.addCleanup(running.stop)
        self.run_tool("check", "metrics", stdin=running.http("GET", "/metrics")[2])


if __name__ == "__main__":
    unittest.main()
