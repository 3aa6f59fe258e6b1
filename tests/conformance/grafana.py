"""docs/observability against Grafana's own packages: its schema of dashboards by TypeScript, its units, Prometheus' grammar."""

import json
import re
import shutil
import subprocess

import yaml

from server import ROOT

FILES = ROOT / "docs/observability"
SCHEMAS = {"@grafana/schema": "13.2", "schema-12": "12.4", "schema-11": "11.6"}
PLUGINS = {"timeseries": "TimeSeries", "stat": "Stat"}
# No package has these: they are as in Grafana's source, 13.2.
DATA_SOURCES = {
    "prometheus": "Json<PromOptions>",
    "grafana-pyroscope-datasource": "{ minStep?: string }",
    "tempo": "{ tracesToProfiles?: { datasourceUid?: string; tags?: { key: string; value?: string }[]; query?: string;"
    " profileTypeId?: string; customQuery: boolean } }",
}
OF_EVENTS = ("titleFormat", "textFormat", "tagKeys", "useValueForTime")  # Prometheus' own, beside the schema's


def plugin_types(package, plugin):
    """Where a schema has the types of a panel's plugin."""
    place = "../node_modules/%s/dist/" % package
    if package == "schema-11":
        return place + "esm/raw/composable/%s/panelcfg/x/%sPanelCfg_types.gen" % (plugin, PLUGINS[plugin])
    return place + "types/raw/composable/%s/panelcfg/x/types.gen" % plugin


def typed_panel(panel):
    """[(where, type, value)]: parts that the schema of a panel leaves open have types of their own."""
    title, plugin = panel["title"], panel["type"]
    if plugin == "row":
        return [(title, "RowPanel", panel)]
    parts = [(title, "Panel", panel), (title, "%s.Options" % plugin, panel["options"])]
    settings = [panel["fieldConfig"]["defaults"].get("custom")]
    for override in panel["fieldConfig"]["overrides"]:
        for change in override["properties"]:
            assert change["id"].startswith("custom."), change
            settings.append({change["id"].removeprefix("custom."): change["value"]})
    parts += [(title, "%s.FieldConfig" % plugin, value) for value in settings if value is not None]
    return parts + [(title, "PromQuery", query) for query in panel["targets"]]


def typed_board(board):
    empty = {"panels": [], "annotations": {"list": []}, "templating": {"list": []}}
    parts = [(board["title"], "Dashboard", {**board, **empty})]
    for variable in board["templating"]["list"]:
        parts.append((variable["name"], "VariableModel", variable))
        if variable["type"] == "query":
            parts.append((variable["name"], "StandardPromVariableQuery", variable["query"]))
    for mark in board["annotations"]["list"]:
        known = {key: value for key, value in mark.items() if key not in OF_EVENTS}
        parts.append((mark["name"], "AnnotationQuery<PromQuery>", known))
    for panel in board["panels"]:
        parts += typed_panel(panel)
    return parts


def literals(parts):
    """Constants: TypeScript refuses unknown properties of literals, also in a copy of each that has one."""
    lines = []
    for n, (where, kind, value) in enumerate(parts):
        lines.append("const is%d: Json<%s> = %s; // %s" % (n, kind, json.dumps(value), where))
        lines.append("// @ts-expect-error: an unknown property")
        lines.append("const no%d: Json<%s> = %s;" % (n, kind, json.dumps({**value, "unknown": 1})))
        lines.append("void is%d, no%d;" % (n, n))
    return lines


def write_checked(directory, boards):
    """A file for each dashboard and each schema, and one for the data sources."""
    checked = directory / "checked"
    shutil.rmtree(checked, ignore_errors=True)
    checked.mkdir()
    prometheus = "import type { PromOptions, PromQuery, StandardPromVariableQuery } from"
    common = [
        "import type { Json } from '../json';",
        prometheus + " '../node_modules/@grafana/prometheus/dist/types/types';",
    ]
    for package, version in SCHEMAS.items():
        names = "AnnotationQuery, Dashboard, Panel, RowPanel, VariableModel"
        imports = ["import type { %s } from '%s';" % (names, package)]
        imports += ["import type * as %s from '%s';" % (plugin, plugin_types(package, plugin)) for plugin in PLUGINS]
        for name, board in boards.items():
            text = "\n".join(common + imports + literals(typed_board(board)) + ["export {};"])
            (checked / ("%s-%s.ts" % (name, version))).write_text(text)
    found = yaml.safe_load((FILES / "provisioning/grafana-datasources.yaml").read_text())["datasources"]
    lines = ["const of%d: %s = %s; void of%d;" % (n, DATA_SOURCES[source["type"]], json.dumps(source["jsonData"]), n)
             for n, source in enumerate(found)]
    (checked / "datasources.ts").write_text("\n".join(common + lines + ["export {};"]))


def questions(boards):
    """What expressions.mjs reads: the expressions with their variables replaced, and the units."""
    expressions, units = [], []
    for name, board in boards.items():
        for panel in board["panels"]:
            where = "%s, %s" % (name, panel["title"])
            expressions += [(where, target["expr"]) for target in panel.get("targets", [])]
            units += [(where, panel["fieldConfig"]["defaults"]["unit"])] if "fieldConfig" in panel else []
        expressions += [("%s, %s" % (name, mark["name"]), mark["target"]["expr"]) for mark in board["annotations"]["list"]]
    values = {"$__rate_interval": "1m0s", "$job": "(hearth|other)", "$instance": r"127\\.0\\.0\\.1:4040"}
    replaced = lambda text: re.sub(r"\$\w+", lambda found: values[found[0]], text)
    return {"expressions": [(where, replaced(text)) for where, text in expressions], "units": units}


def check(node, directory):
    boards = {path.stem: json.loads(path.read_text()) for path in sorted((FILES / "dashboards").glob("*.json"))}
    asked = questions(boards)
    write_checked(directory, boards)
    for command in (["node_modules/.bin/tsc", "-p", "."], [node, "expressions.mjs"]):
        done = subprocess.run(command, cwd=directory, input=json.dumps(asked), capture_output=True, text=True, timeout=600)
        assert (done.returncode, done.stdout) == (0, ""), (done.stdout or done.stderr)[:3000]
    return "%d dashboards by the schemas of Grafana %s; %d expressions" % (
        len(boards), ", ".join(SCHEMAS.values()), len(asked["expressions"]))
