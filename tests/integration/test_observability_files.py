"""docs/observability against a running server: each metric and label that a dashboard, an alert or a runbook names is in
/metrics; the files are what Grafana and Prometheus read. promtool (Debian: prometheus) checks more where it is installed."""

import json
import math
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import yaml

import pprof
import server
from questions import CPU, QUERIER

FILES = server.ROOT / "docs/observability"
PROMTOOL = os.environ.get("PROMTOOL") or shutil.which("promtool")
PROMETHEUS = os.environ.get("PROMETHEUS") or shutil.which("prometheus")
OF_PROMETHEUS = {"up", "job", "instance", "ALERTS", "alertname"}  # made by the scrape and by alerts
NAME = re.compile(r"\b((?:hearth|process)_\w+|up|ALERTS)\b(?:\{([^}]*)\})?")
# Those of @grafana/data's getValueFormats() that the dashboards use; Grafana prints an unknown one behind the number.
UNITS = {"short", "percentunit", "s", "bytes", "binBps", "cps", "reqps", "mps", "eps", "rowsps"}
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


def use(running):
    """A push, queries, one that fails, a stream: metrics by method and by code have a line only once one happened."""
    now = server.now_ms()
    profile = pprof.Profile([("cpu", "nanoseconds")], time_ns=time.time_ns())
    profile.add(["main"], [1])
    running.push(profile.encode(), {"__name__": "process_cpu", "service_name": "shop"})
    running.stacktraces(CPU, "{}", now - 60000, now + 60000)
    for fields in ({"start": str(now - 60000), "end": str(now)}, {"start": "2", "end": "1"}):
        try:
            running.connect(QUERIER + "LabelNames", fields)
        except server.RpcError:
            pass
    running.stream_unary("skywalking.v3.EventService/collect", [])


class ObservabilityFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server.Server()
        cls.addClassCleanup(cls.server.stop)
        use(cls.server)
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
                    self.assertIn(panel["fieldConfig"]["defaults"]["unit"], UNITS, panel["title"])
                    self.assertEqual(set(panel["options"]), OPTIONS[panel["type"]], panel["title"])
                    self.assertIn("calcs", panel["options"]["legend" if panel["type"] == "timeseries" else "reduceOptions"])
            for variable in board["templating"]["list"]:
                self.assertNotEqual(variable.get("current"), {}, name)  # a value and a text, or nothing
            named = set(re.findall(r"\$\{?([A-Za-z_]\w*)", json.dumps(board)))
            self.assertLessEqual(named, {"datasource", "job", "instance", "__rate_interval", "__all"}, name)

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
            self.assertRegex(rule["alert"], "^Hearth.+")  # as the overview selects them

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


@unittest.skipUnless(PROMETHEUS, "Prometheus is not installed (Debian: prometheus)")
class Evaluated(unittest.TestCase):
    """Prometheus scrapes a server that is used, one that is idle, and itself, and evaluates what the dashboards ask."""

    @classmethod
    def setUpClass(cls):
        idle = server.Server()
        cls.addClassCleanup(idle.stop)
        cls.idle = "127.0.0.1:%d" % idle.port
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            other.bind(("127.0.0.1", 0))
            cls.instance, cls.own = ("127.0.0.1:%d" % held.getsockname()[1] for held in (one, other))
        cls.server = server.Server("--listen", cls.instance)  # again there after a restart
        cls.addClassCleanup(cls.server.stop)
        config = yaml.safe_load((FILES / "provisioning/prometheus.yaml").read_text().replace("127.0.0.1:4040", cls.instance))
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["rule_files"] = [str(FILES / "alerts.yaml")]
        config["scrape_configs"][0]["static_configs"][0]["targets"].append(cls.idle)
        config["scrape_configs"].append({"job_name": "prometheus", "static_configs": [{"targets": [cls.own]}]})
        directory = pathlib.Path(server.temporary_directory())
        (directory / "prometheus.yaml").write_text(json.dumps(config))
        with (directory / "log").open("wb") as log:
            options = ["--config.file", directory / "prometheus.yaml", "--storage.tsdb.path", directory / "data"]
            cls.prometheus = subprocess.Popen([PROMETHEUS, *options, "--web.listen-address", cls.own], stdout=log, stderr=log)
        cls.addClassCleanup(cls.prometheus.wait, 60)
        cls.addClassCleanup(cls.prometheus.terminate)

        def is_scraped():
            use(cls.server)
            try:
                urllib.request.urlopen("http://%s/-/ready" % cls.own).close()
                return [value for _, value in cls.evaluate("min(count_over_time(hearth_ready[1m]))")] > [5]
            except OSError:
                return False

        server.eventually(is_scraped, 60, pause=1, what="six scrapes")

    @classmethod
    def evaluate(cls, expr, instance=None):
        """[(labels, value)] with the variables of a dashboard; AssertionError if Prometheus refuses the expression."""
        selected = (instance or cls.instance).replace(".", "\\\\.")  # as Grafana writes it
        for name, value in (("__rate_interval", "1m"), ("job", "hearth"), ("instance", selected)):
            expr = expr.replace("$" + name, value)
        try:
            with urllib.request.urlopen("http://%s/api/v1/query?%s" % (cls.own, urllib.parse.urlencode({"query": expr}))) as answer:
                found = json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise AssertionError("%s: %s" % (expr, error.read().decode())) from None
        return [(one["metric"], float(one["value"][1])) for one in found]

    def targets(self):
        for name, board in load_dashboards().items():
            for panel in board["panels"]:
                for target in panel.get("targets", []):
                    yield "%s, %s, %s" % (name, panel["title"], target["refId"]), panel, target

    def test_a_panel_has_values_or_says_why_it_has_none(self):
        for where, panel, target in self.targets():
            if not self.evaluate(target["expr"]):
                self.assertTrue("noValue" in panel["fieldConfig"]["defaults"] or target["refId"] != "A", where)
                self.assertRegex(target["expr"], "[^=]>=? 0|ALERTS", where)  # which leaves something out

    def test_no_stat_of_an_idle_server_is_a_division_by_zero(self):
        for where, panel, target in self.targets():
            if panel["type"] == "stat":
                self.assertTrue(all(math.isfinite(value) for _, value in self.evaluate(target["expr"], self.idle)), where)

    def test_a_legend_names_labels_that_the_values_have(self):
        n = 0
        for where, _, target in self.targets():
            for labels, _ in self.evaluate(target["expr"]):
                n += 1
                self.assertLessEqual(set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])), set(labels), where)
        self.assertGreater(n, 100)

    def test_the_variables_select_servers_of_hearth_only(self):
        self.assertEqual({labels["job"] for labels, _ in self.evaluate("process_resident_memory_bytes")}, {"hearth", "prometheus"})
        self.assertEqual({labels["job"] for labels, _ in self.evaluate("hearth_build_info")}, {"hearth"})

    def test_a_server_that_does_not_answer_counts_as_not_ready(self):
        (ready,) = [target["expr"] for where, _, target in self.targets() if where == "overview.json, Servers ready, A"]
        self.assertEqual(self.evaluate(ready), [({}, 1)])
        self.server.stop()
        server.eventually(lambda: self.evaluate(ready) == [({}, 0)], 60, what="a server that is not ready")
        self.server.start()
        use(self.server)
        server.eventually(lambda: self.evaluate(ready) == [({}, 1)], 60, what="a server that is ready again")


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
