"""hearth mcp: JSON-RPC lines in, JSON-RPC lines out, with a real server behind; the tools, their answers and their errors."""

import json
import subprocess
import unittest

import tasks
from pprof import Profile
from server import HEARTH, Server, now_ms, server_environment
from test_cli import TYPES, shop

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
READING = ["services", "types", "labels", "top", "flame_slice", "diff", "sandwich", "history", "spans"]
TASKS = ["tasks_list", "task_get", "task_create"]


class Mcp:
    """A running `hearth mcp`."""

    def __init__(self, url, *options):
        self.process = subprocess.Popen(
            [HEARTH, "mcp", "--url", url, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=server_environment({"TZ": "Asia/Tokyo"}),
        )
        self.n = 0

    def send(self, line):
        self.process.stdin.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self):
        return json.loads(self.process.stdout.readline())

    def request(self, method, params=None):
        """The whole answer to a request."""
        self.n += 1
        self.send({"jsonrpc": "2.0", "id": self.n, "method": method, **({} if params is None else {"params": params})})
        answer = self.receive()
        assert answer["jsonrpc"] == "2.0" and answer["id"] == self.n, answer
        return answer

    def call(self, tool, **arguments):
        """(text, is error) of a call of a tool."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})["result"]
        (content,) = result["content"]
        assert content["type"] == "text", content
        return content["text"], result["isError"]

    def close(self):
        """(exit code, rest of the output, log)"""
        self.process.stdin.close()
        rest, log = self.process.stdout.read(), self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.wait(60), rest, log.decode()


class ModelContextProtocol(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.url = "http://127.0.0.1:%d" % cls.server.port
        for service, region in (("api", "eu"), ("api", "us"), ("web", "eu")):
            cls.server.push(shop().encode(), {"__name__": "process_cpu", "service_name": service, "region": region})
        spans = Profile(TYPES, duration_ns=10_000_000_000)
        for span, value in (("00000000000000aa", 70), ("00000000000000bb", 30)):
            spans.add(["main", "pay"], [1, value], labels={"span_id": span})
        cls.server.push(spans.encode(), {"__name__": "process_cpu", "service_name": "spanned"})
        wide = Profile(TYPES, duration_ns=10_000_000_000)
        for i in range(40):
            wide.add(["main", "f%02d" % i], [1, 1000 + i])
        cls.server.push(wide.encode(), {"__name__": "process_cpu", "service_name": "wide"})
        # Two hours, and a function that doubles after the first.
        for i in range(8):
            for minutes_ago, share in ((148, 1_000), (58, 2_000)):
                time_ns = (now_ms() - (minutes_ago - 7 * i) * 60_000) * 1_000_000
                p = Profile(TYPES, time_ns=time_ns, duration_ns=10_000_000_000)
                p.add(["main", "grown"], [share, share * 10_000_000])
                p.add(["main", "rest"], [5_000 + i, (5_000 + i) * 10_000_000])
                cls.server.push(p.encode(), {"__name__": "process_cpu", "service_name": "changing"})

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def start(self, *options, url=None):
        mcp = Mcp(url or self.url, *options)
        self.addCleanup(mcp.process.kill)
        return mcp

    def setUp(self):
        self.mcp = self.start()

    def tearDown(self):
        code, rest, log = self.mcp.close()
        self.assertEqual((code, rest), (0, b""), log)

    def ask(self, tool, **arguments):
        text, is_error = self.mcp.call(tool, **arguments)
        self.assertFalse(is_error, text)
        return json.loads(text)

    def refused(self, tool, **arguments):
        text, is_error = self.mcp.call(tool, **arguments)
        self.assertTrue(is_error, text)
        return text

    # ---- the protocol ----

    def test_versions_are_negotiated(self):
        for offered in VERSIONS:
            result = self.mcp.request("initialize", {"protocolVersion": offered, "capabilities": {}, "clientInfo": {}})["result"]
            self.assertEqual(result["protocolVersion"], offered)
            self.assertEqual((result["serverInfo"]["name"], result["capabilities"]), ("hearth", {"tools": {}}))
        unknown = self.mcp.request("initialize", {"protocolVersion": "1999-01-01"})["result"]
        self.assertEqual(unknown["protocolVersion"], VERSIONS[-1])
        self.assertEqual(self.mcp.request("ping")["result"], {})

    def test_requests_that_name_their_version_need_no_initialize(self):
        meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}}
        found = self.mcp.request("server/discover", meta)["result"]
        self.assertEqual((found["supportedVersions"], found["resultType"]), ([MODERN], "complete"))
        self.assertEqual(self.mcp.request("tools/list", meta)["result"]["cacheScope"], "private")
        called = self.mcp.request("tools/call", {"name": "services", **meta})["result"]
        self.assertEqual((called["resultType"], called["isError"]), ("complete", False))
        error = self.mcp.request("tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": "2030-01-01"}})["error"]
        self.assertEqual((error["code"], error["data"]["supported"]), (-32022, [MODERN]))

    def test_messages_that_are_wrong_are_answered_and_the_next_is_read(self):
        for line, code, text in (
            (b"{\n", -32700, "at byte 1"),
            (b"\xff\n", -32700, "UTF-8"),
            (b"[]\n", -32600, "batches"),
            (b"{}\n", -32600, "method"),
            (b'{"jsonrpc":"2.0","id":{},"method":"ping"}\n', -32700, "id of a request"),
            (b'"' + b"a" * (1 << 20) + b'"\n', -32600, "1 MiB"),
            (b"[" * 100_000 + b"\n", -32600, "batches"),
            (b'{"id":' + b"[" * 5000 + b"\n", -32700, ""),
        ):
            self.mcp.send(line)
            answer = self.mcp.receive()
            self.assertEqual((answer["error"]["code"], answer["id"]), (code, None), line[:40])
            self.assertIn(text, answer["error"]["message"])
        self.mcp.send(b"\n")
        self.mcp.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.assertEqual(self.mcp.request("no/such")["error"]["code"], -32601)
        self.assertEqual(self.mcp.request("tools/call", {"name": "nothing"})["error"]["code"], -32602)
        self.assertEqual(self.mcp.request("tools/call", {"name": 7})["error"]["code"], -32602)
        self.mcp.send(b'{"jsonrpc":"2.0","id":"text\\u0041","method":"ping"}\n')
        self.assertEqual(self.mcp.receive(), {"jsonrpc": "2.0", "id": "textA", "result": {}})

    def test_tools_have_schemas(self):
        tools = self.mcp.request("tools/list")["result"]["tools"]
        self.assertEqual([tool["name"] for tool in tools], READING)
        for tool in tools:
            schema = tool["inputSchema"]
            self.assertEqual((schema["type"], schema["additionalProperties"]), ("object", False))
            self.assertTrue(set(schema["required"]) <= set(schema["properties"]))
            self.assertTrue(all(p["description"] and p["type"] in ("string", "array", "integer")
                                for p in schema["properties"].values()))
            self.assertTrue(tool["annotations"]["readOnlyHint"])
        self.assertEqual(tools[READING.index("sandwich")]["inputSchema"]["required"], ["function"])

    # ---- answers ----

    def test_services_types_labels_and_values_are_listed(self):
        self.assertEqual(self.ask("services")["services"], ["api", "changing", "spanned", "web", "wide"])
        self.assertEqual(self.ask("services", limit=1)["cut"].split(";")[0], "services 1 to 1 of 5")
        self.assertEqual([found["unit"] for found in self.ask("types", selector="api")["types"]], ["nanoseconds", "count"])
        self.assertIn("region", self.ask("labels", selector="api")["labels"])
        self.assertEqual(self.ask("labels", label="region")["values"], ["eu", "us"])

    def test_top_is_exact(self):
        answer = self.ask("top", selector='{service_name="api"}', limit=2)
        self.assertEqual(answer["total"], 220_000_000)
        self.assertEqual(answer["query"]["type"], "process_cpu:cpu:nanoseconds:cpu:nanoseconds")
        self.assertEqual(answer["query"]["unit"], "nanoseconds")
        self.assertRegex(answer["query"]["from"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(answer["rows"][0], {"name": "fib", "self": 100_000_000, "self_percent": 45.45,
                                             "total": 100_000_000, "total_percent": 45.45, "file": "fib.c"})
        self.assertEqual(answer["cut"].split(";")[0], "rows 1 to 2 of 5")
        only = self.ask("top", selector="api", functions="handle", without=["query"])
        self.assertEqual(only["total"], 20_000_000)

    def test_a_flame_graph_is_returned_in_slices(self):
        root = self.ask("flame_slice", selector="api", depth=1)
        (main,) = root["children"]
        self.assertEqual((main["name"], main["total"], main["percent"]), ("main", 220_000_000, 100))
        self.assertEqual(main["cut"], {"frames": 3, "total": 220_000_000, "percent": 100})
        below = self.ask("flame_slice", selector="api", frame=main["frame"], depth=2)
        self.assertEqual((below["path"], below["total"]), (["main"], 220_000_000))
        self.assertEqual([(c["name"], c["self"], c["total"]) for c in below["children"]],
                         [("fib", 20_000_000, 100_000_000), ("handle", 20_000_000, 80_000_000), ("gc", 40_000_000, 40_000_000)])
        query = below["children"][1]["children"][0]
        self.assertEqual(self.ask("flame_slice", selector="api", frame=query["frame"])["path"], ["main", "handle", "query"])
        # The handle is that of the stack, whatever is selected: another process finds it in another service.
        other = self.start()
        text, is_error = other.call("flame_slice", selector="web", frame=query["frame"])
        other.close()
        self.assertEqual((is_error, json.loads(text)["self"]), (False, 30_000_000))

    def test_slices_are_small_and_report_their_cut(self):
        slices = self.ask("flame_slice", selector="wide")
        (main,) = slices["children"]
        self.assertEqual([c["name"] for c in main["children"]], ["f%02d" % i for i in range(39, 31, -1)])
        self.assertEqual(main["cut"]["frames"], 32)
        self.assertEqual(main["cut"]["total"], sum(1000 + i for i in range(32)))

    def test_a_sandwich_has_callers_and_callees(self):
        answer = self.ask("sandwich", selector="api", function="handle")
        self.assertEqual((answer["self"], answer["total"], answer["whole"]), (20_000_000, 80_000_000, 220_000_000))
        self.assertEqual([(f["name"], f["total"]) for f in answer["callers"]["frames"]], [("main", 80_000_000)])
        self.assertEqual([(f["name"], f["total"]) for f in answer["callees"]["frames"]], [("query", 60_000_000)])

    def test_the_history_has_a_line_for_each_group_and_function(self):
        answer = self.ask("history", selector="api", since="1h", group_by="region")
        self.assertEqual([(line["labels"], sum(p["total"] for p in line["points"])) for line in answer["lines"]],
                         [({"region": "eu"}, 110_000_000), ({"region": "us"}, 110_000_000)])
        (line,) = self.ask("history", selector="api", functions=["gc"])["lines"]
        self.assertEqual((line["function"], sum(p["self"] for p in line["points"])), ("gc", 40_000_000))
        self.assertIn("3600 points, and an answer has at most 120", self.refused("history", selector="api", step="1s"))

    def test_diff_has_a_verdict(self):
        answer = self.ask("diff", selector="changing", since="1h", base_from="now-150m", base_to="now-90m")
        self.assertEqual((answer["noise"]["method"], answer["base"]["selector"]), ("parts", '{service_name="changing"}'))
        first = answer["functions"][0]
        self.assertEqual((first["function"], first["verdict"]), ("grown", "beyond noise"))
        self.assertEqual((first["base_self"], first["self"]), (8 * 1_000 * 10_000_000, 8 * 2_000 * 10_000_000))
        self.assertTrue(0 < first["low_points"] < first["change_points"] < first["high_points"])
        same = self.ask("diff", selector='{service_name="web"}', base_selector='{service_name="api"}')
        self.assertEqual({row["verdict"] for row in same["functions"]}, {"within noise"})

    def test_spans_are_listed_with_their_values(self):
        answer = self.ask("spans", selector="spanned", by="span")
        self.assertEqual([(row["span"], row["value"]) for row in answer["rows"]],
                         [("00000000000000aa", 70), ("00000000000000bb", 30)])

    # ---- mistakes ----

    def test_errors_name_the_mistake_and_the_correction(self):
        for text, tool, arguments in (
            ('did you mean api?', "top", {"selector": '{service_name="apu"}'}),
            ("top has no argument", "top", {"select": "api"}),
            ("it takes: selector type", "top", {"select": "api"}),
            ("must be one of function|line", "top", {"by_kind": "x"}),
            ("must be a whole number from 1 to 1000", "top", {"limit": 0}),
            ("must be a whole number from 1 to 1000", "top", {"limit": "5"}),
            ("must be a string", "top", {"selector": 7}),
            ("must be an array of strings", "top", {"functions": [7]}),
            ("sandwich needs the argument \"function\"", "sandwich", {}),
            ("at most 6", "flame_slice", {"selector": "api", "depth": 7}),
            ("is not the handle of a frame", "flame_slice", {"frame": "main"}),
            ("has no frame 0000000000000001", "flame_slice", {"selector": "api", "frame": "0000000000000001"}),
            ("no selected stack trace contains", "sandwich", {"selector": "api", "function": "handel"}),
            ("expected a quoted string, at offset 14", "top", {"selector": '{service_name='}),
        ):
            self.assertIn(text, self.refused(tool, **arguments), (tool, arguments))

    def test_a_repeated_list_has_the_limit_of_one_list(self):
        texts = b",".join([b'"functions":"f"'] * 70)
        self.mcp.send(b'{"id":1,"method":"tools/call","params":{"name":"top","arguments":{' + texts + b"}}}\n")
        result = self.mcp.receive()["result"]
        self.assertTrue(result["isError"])
        self.assertIn('the argument "functions" has more than 64 texts', result["content"][0]["text"])

    def test_an_unreachable_server_is_a_tool_error(self):
        away = self.start(url="http://127.0.0.1:1")
        text, is_error = away.call("services")
        self.assertTrue(is_error)
        self.assertIn("cannot reach 127.0.0.1:1", text)
        self.assertEqual(away.close()[0], 0)

    # ---- tasks ----

    def test_tasks_need_their_option(self):
        self.assertEqual(self.mcp.request("tools/call", {"name": "task_create", "arguments": {}})["error"]["code"], -32602)
        mcp = self.mcp = self.start("--allow-tasks")
        tools = mcp.request("tools/list")["result"]["tools"]
        self.assertEqual([tool["name"] for tool in tools], READING + TASKS)
        self.assertEqual([tool["annotations"]["readOnlyHint"] for tool in tools[-3:]], [True, True, False])
        self.assertIn("needs --endpoint", self.refused("task_create", kind="trace", service="shop"))
        created = self.ask("task_create", kind="trace", service="shop", endpoint="/pay", duration="1m", min_duration="200ms")
        self.assertEqual((created["service"], created["duration_milliseconds"]), ("shop", 60_000))
        self.assertEqual(tasks.get(self.server, created["task"])["task"]["endpoint"], "/pay")
        self.assertEqual([task["task"] for task in self.ask("tasks_list")["tasks"]], [created["task"]])
        self.assertEqual(self.ask("task_get", task=created["task"])["state"], created["state"])


if __name__ == "__main__":
    unittest.main()
