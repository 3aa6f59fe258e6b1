"""Texts as profiles, by every way in: the client, POST /ingest, ad hoc profiles. What is none is refused, naming the line."""

import base64
import csv
import gzip
import json
import os
import unittest
import urllib.parse

from server import SHARED, RpcError, Server, note, now_ms, temporary_directory
from test_cli import OK, USAGE, hearth

T = now_ms() - 300_000
START, END = T - 3_600_000, T + 3_600_000
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
CPU_SAMPLES = "process_cpu:samples:count:cpu:nanoseconds"
AS_THEY_ARE = 10**9  # Hz: a sample is a nanosecond
ADHOC = "adhocprofiles.v1.AdHocProfileService/"

PERF = (
    "# ========\n# captured on    : Sun Oct 25 23:31:43 2015\n# nrcpus online : 4\n# cmdline : /usr/bin/perf record -F 99 -a ; sleep 3\n"
    "perf     1 [000]     0.000000: PERF_RECORD_COMM: app:7/7\n"
    "app  7 [001]  5.100000:   10101010 cpu-clock: \n\t            1139 work+0x9 (/usr/bin/app)\n\t            1159 main+0x9 (/usr/bin/app)\n\n"
    "app  7 [001]  5.200000:   10101010 cpu-clock: \n\t            1159 main+0x9 (/usr/bin/app)\n\n"
)

# Texts that are no profile, and the line that the refusal names, or what it says that they are.
OTHERS = {
    "log": ("INFO request took 35\n", 'line 1 is not of the form "frame;frame value": "INFO request took 35"'),
    "timed log": ("2026-11-23 01:53:26 INFO request took 35\n", "line 1 is a line of a log"),
    "syslog": ("Nov 23 01:53:26 web sshd[12]: Accepted password from 10.0.0.9 port 22\n", "line 1 is a line of a log"),
    "access log": ('10.0.0.9 - - [23/Nov/2026:01:53:26 +0000] "GET / HTTP/1.1" 200 "X11; Linux" 35\n', "line 1 is a line of a log"),
    "yaml": ("# of the shop\nreplicas: 3\nports:\n  - port: 8080\n    targetPort: 80\n", 'line 3 is not of the form "frame;frame value": "ports:"'),
    "json": ('[\n  {\n    "count": 3,\n    "total": 12\n  }\n]\n', 'line 1 is not of the form "frame;frame value": "["'),
    "csv": ("name, samples\nmain, 3\nwork, 4\n", "line 1 is not"),
    "readme": ("# Shop\n\nA shop in 3\nsteps. See chapter 4\n\n1. Build it.\n", "line 6 is not"),
    "source": ("int main(void)\n{\n    int x = 3;\n    for (;;)\n        x += 1;\n}\n", "line 1 is not"),
    "metrics": ("# HELP up Whether it is up.\n# TYPE up gauge\nup 1\n", "Prometheus"),
    "perf report": ("# Samples: 12  of event 'cycles'\n#\n    28.32%  app  [kernel.kallsyms]  [k] f\n     1.00%  app  app  [.] g\n", "line 3 is not"),
    "numbers": (" 12\n 13\n", 'line 1, "12"'),
    "comments": ("# 12\n", "no line"),
}
BINARY = bytes(range(256)) * 4


class Texts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.url = "http://127.0.0.1:%d" % cls.server.port
        cls.directory = temporary_directory()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def write(self, data):
        path = os.path.join(self.directory, "text")
        with open(path, "wb") as file:
            file.write(data)
        return path

    def ingest(self, service, data, **arguments):
        query = urllib.parse.urlencode({"name": service, "from": T // 1000, **arguments})
        return self.server.http("POST", "/ingest?" + query, data)

    def adhoc(self, data):
        made = self.server.connect(ADHOC + "Upload", {"name": "text", "profile": base64.b64encode(data).decode()})
        return json.loads(made["flamebearerProfile"])["flamebearer"]

    def upload(self, service, data):
        return hearth("upload", self.write(data), "--label", "service_name=" + service, "--time=now", env={"HEARTH_URL": self.url})

    def services(self):
        return self.server.label_values("service_name", START, END, [])

    def functions(self, service, profile_type):
        return self.server.flamegraph(profile_type, '{service_name="%s"}' % service, START, END).functions()

    def test_every_intake_refuses_text_that_is_not_a_profile_and_names_the_line(self):
        for name, (text, part) in OTHERS.items():
            for encoding in ("utf-8", "utf-16"):
                with self.subTest(name, encoding=encoding):
                    data = text.encode(encoding)
                    status, _, answer = self.ingest("others", data)
                    self.assertEqual(status, 422, answer)
                    self.assertIn(part, json.loads(answer)["message"])
                    with self.assertRaises(RpcError) as caught:
                        self.adhoc(data)
                    self.assertIn(part, str(caught.exception))
                    done = self.upload("others", data)
                    self.assertEqual((done.code, done.out), (USAGE, ""), done.err)
                    self.assertIn(part, done.err)
        self.assertNotIn("others", self.services())

    def test_bytes_that_are_no_text_are_refused_by_every_way_in(self):
        for data in (BINARY, gzip.compress(BINARY), b'{"a": 1}'):
            status, _, answer = self.ingest("binary", data)
            self.assertEqual(status, 422, answer)
            with self.assertRaises(RpcError):
                self.adhoc(data)
            self.assertEqual(self.upload("binary", data).code, USAGE)
        self.assertNotIn("binary", self.services())

    def test_perf_script_is_recognised_by_every_way_in(self):
        """Also with a header, whose lines end in numbers, and where the format is said to be collapsed."""
        expected = {"app": (0, 20202020), "main": (10101010, 20202020), "work": (10101010, 10101010)}
        for format in (None, "folded"):
            service = "perf-%s" % format
            status, _, answer = self.ingest(service, PERF.encode(), **({"format": format} if format else {}), sampleRate=50)
            self.assertEqual(status, 200, answer)
            self.assertEqual(self.functions(service, CPU), expected)
            self.assertEqual(self.functions(service, CPU_SAMPLES)["app"], (0, 2))
        self.assertEqual(self.upload("perf-cli", PERF.encode()).code, OK)
        self.assertEqual(self.functions("perf-cli", CPU), expected)
        self.assertEqual(self.functions("perf-cli", CPU_SAMPLES)["app"], (0, 2))
        graph = self.adhoc(PERF.encode())
        self.assertEqual((graph["numTicks"], sorted(graph["names"])), (2, ["app", "main", "total", "work"]))

    def test_a_line_without_a_frame_counts_as_no_stack(self):
        text = b"# of 9\nmain;work 3\n; 4\n 5\nmain 1\n"
        self.assertEqual(self.ingest("empty", text, sampleRate=AS_THEY_ARE)[0], 200)
        self.assertEqual(self.functions("empty", CPU), {"main": (1, 4), "work": (3, 3), "[no stack]": (9, 9)})
        self.assertEqual(self.upload("empty-cli", text).err, "")
        self.assertEqual(self.adhoc(text)["numTicks"], 13)

    def test_utf16_of_either_byte_order_is_read(self):
        for encoding in ("utf-16-le", "utf-16-be"):
            data = "\ufeffmain;größe 3\r\n".encode(encoding)
            self.assertEqual(self.ingest(encoding, data, sampleRate=AS_THEY_ARE)[0], 200)
            self.assertEqual(self.functions(encoding, CPU), {"main": (0, 3), "größe": (3, 3)})
            self.assertEqual(self.upload(encoding + "-cli", data).code, OK)
            self.assertEqual(self.adhoc(data)["numTicks"], 3)

    @unittest.skipUnless((SHARED / "MANIFEST.tsv").is_file(), "the shared data is not there (%s)" % SHARED)
    def test_recorded_texts_have_their_totals_by_every_way_in(self):
        with open(SHARED / "MANIFEST.tsv", newline="") as manifest:
            rows = [r for r in csv.DictReader(manifest, delimiter="\t") if r["format"] in ("collapsed", "perf-script")]
        self.assertGreater(len(rows), 15)
        for row in rows:
            with self.subTest(row["file"]):
                facts, data = json.loads(row["facts_json"]), (SHARED / row["file"]).read_bytes()
                is_perf = row["format"] == "perf-script"
                events = facts["event_types"] if is_perf else {}
                # Several events are a type each; else the number of samples is one.
                total = facts["events"] if len(events) == 1 else events["instructions"] if events else facts["total"]
                service = row["file"].replace("/", "-").replace(".", "_")
                status, _, answer = self.ingest(service, data, sampleRate=AS_THEY_ARE)
                if "invalid-lines" in row["file"]:
                    self.assertEqual(status, 422, answer)
                    self.assertIn(b"line 2 is not of the form", answer)
                    continue
                self.assertEqual(status, 200, answer)
                types = {v for labels in self.server.series(START, END, ['{service_name="%s"}' % service], ["__profile_type__"]) for _, v in labels}
                wanted = ":samples:" if len(events) == 1 else ":instructions:" if events else ":cpu:"
                found = [t for t in types if wanted in t]
                self.assertEqual(len(found), 1, types)
                graph = self.server.flamegraph(found[0], '{service_name="%s"}' % service, START, END)
                self.assertEqual(graph.total, total)
                self.assertEqual(self.adhoc(data)["numTicks"], total)
                self.assertEqual(self.upload(service + "-cli", data).code, OK)


if not (SHARED / "MANIFEST.tsv").is_file():
    note("no shared data at %s: recorded texts not read" % SHARED)

if __name__ == "__main__":
    unittest.main()
