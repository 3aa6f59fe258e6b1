"""POST /ingest with perf.data: recordings of our own, of the machine's perf, and of the shared collection."""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest
import urllib.parse

from server import ROOT, SHARED, Server, note, now_ms, temporary_directory
from test_cli import hearth
from test_ingest import form

T = now_ms() - 300_000
START, END = T - 3_600_000, T + 3_600_000
GOLDEN = ROOT / "tests/golden/perf"

CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
SAMPLES = "process_cpu:samples:count:cpu:nanoseconds"
FAULTS = "minor_faults:minor-faults:count:minor-faults:count"

# How perf records a program with call graphs: arguments, and whether the recording is its standard output.
RECORDED = {
    "a file": (["-g"], False),
    "a compressed file": (["-g", "-z"], False),
    "a stream": (["-g"], True),
    "a compressed stream": (["-g", "-z"], True),
    "build ids in maps": (["-g", "--buildid-mmap"], False),
    "a fixed period": (["-g", "-c", "1500000"], False),
    "the time of day": (["-g", "-k", "CLOCK_MONOTONIC"], False),
    "a group whose leader is sampled": (["-g", "-e", "{cpu-clock:u,minor-faults:u}:S"], False),
}


def perf(*arguments, **options):
    return subprocess.run(["perf", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, **options).stdout


def can_record():
    try:
        perf("record", "-q", "-e", "cpu-clock:u", "-o", os.devnull, "true")
        return True
    except (OSError, subprocess.CalledProcessError):
        return False


def name_of(address, dso):
    return "0x" + address if dso == "[unknown]" else "%s+0x%s" % (os.path.basename(dso), address)


def stacks_of_script(text, event):
    """Number of samples of an event by stack, root first, from output of perf script."""
    stacks = collections.Counter()
    for record in text.split("\n\n"):
        head, _, frames = record.strip("\n").partition("\n")
        if not head or " %s:" % event not in head:
            continue
        found = re.findall(r"^\s*([0-9a-f]+) .*?\((\S.*)\)$", re.sub(r"\[unknown\] ", "", frames), re.MULTILINE)
        comm = re.match(r"\s*(.*?)\s+\d+\s", head)[1]
        stacks[(comm, *(name_of(*frame) for frame in reversed(found)))] += 1
    return stacks


def stacks_of_graph(graph):
    stacks = collections.Counter()

    def visit(node, path):
        if node.self_value:
            stacks[path] += node.self_value
        for child in node.children:
            visit(child, (*path, child.name))

    visit(graph.root, ())
    return stacks


class Perf(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.service = self.id().rsplit(".", 1)[1]

    def upload(self, body, service=None, **arguments):
        arguments = {"name": service or self.service, "from": T // 1000, "until": T // 1000 + 10, **arguments}
        return self.server.http("POST", "/ingest?" + urllib.parse.urlencode(arguments), body)

    def stored(self, body, service=None):
        status, headers, answer = self.upload(body, service)
        self.assertEqual((status, answer), (200, b""), answer)
        return headers.get("hearth-dropped", "")

    def graph(self, profile_type, service=None):
        return self.server.flamegraph(profile_type, '{service_name="%s"}' % (service or self.service), START, END)

    def test_every_event_is_a_profile_with_the_sums_of_perf_script(self):
        self.stored((GOLDEN / "work.perf.data").read_bytes())
        self.assertEqual(self.graph(CPU).total, 27081243)
        self.assertEqual(self.graph(SAMPLES).total, 27)
        self.assertEqual(self.graph(FAULTS).total, 11121)

    def test_frames_are_offsets_in_files_below_the_command(self):
        self.stored((GOLDEN / "stream.perf.data").read_bytes())
        graph = self.graph(CPU)
        self.assertEqual(graph.total, 28000000)
        self.assertEqual([child.name for child in graph.root.children], ["spin"])
        self.assertIn("libc.so.6+0x2724a", graph.names)
        self.assertNotIn("[unknown]", graph.names)

    def test_functions_of_a_program_in_the_form_are_named(self):
        recording, program = (GOLDEN / "work.perf.data").read_bytes(), (GOLDEN / "spin.elf").read_bytes()
        path = "/ingest?" + urllib.parse.urlencode({"name": self.service, "from": T // 1000, "until": T // 1000 + 10})

        def post(sent):
            headers, body = form([("profile", "perf.data", recording), ("object", "spin", sent)])
            return self.server.http("POST", path, body, headers)

        status, _, answer = post(program)
        self.assertEqual(status, 200, answer)
        graph = self.graph(SAMPLES)
        self.assertEqual(graph.total, 27)
        self.assertLessEqual({"main", "outer", "inner", "spin"}, set(graph.names))

        status, _, answer = post(b"no program")
        self.assertEqual(status, 422, answer)
        self.assertIn('object "spin": it is no ELF file', json.loads(answer)["message"])

    def test_frames_without_a_symbol_are_named_alike_in_file_and_text(self):
        self.stored((GOLDEN / "stream.perf.data").read_bytes(), "as-file")
        text = b"".join(b"spin 1 %d.000000:    2000000 cpu-clock: \n\t    1201 [unknown] (/tmp/g/spin)\n"
                        b"\t 55550000 [unknown] ([unknown])\n\n" % second for second in (1, 2))
        self.stored(text, "as-text")
        self.assertIn("spin+0x1201", self.graph(CPU, "as-file").names)
        graph = self.graph(CPU, "as-text")
        self.assertEqual(graph.total, 4000000)
        self.assertLessEqual({"spin", "0x55550000", "spin+0x1201"}, set(graph.names))

    def test_the_client_finds_the_symbols_of_local_programs(self):
        if not can_record():
            note("perf cannot record here: the client has no recording of a local program")
            return
        directory = pathlib.Path(temporary_directory())
        program, file = directory / "spin", directory / "local.perf.data"
        shutil.copy(GOLDEN / "spin.elf", program)
        program.chmod(0o755)
        perf("record", "-q", "-e", "cpu-clock:u", "-F", "997", "-g", "-o", file, program)
        self.uploaded(file, self.service)
        self.assertLessEqual({"main", "outer", "inner", "spin"}, set(self.graph(SAMPLES).names))

        # Another program of that name is not the recorded one: its build id differs.
        program.unlink()
        shutil.copy(shutil.which("true"), program)
        self.uploaded(file, "replaced")
        names = set(self.graph(SAMPLES, "replaced").names)
        self.assertTrue(names & {"spin+0x%x" % at for at in range(0x11BA, 0x11F1)}, names)

    def uploaded(self, file, service):
        environment = {"HEARTH_URL": "http://127.0.0.1:%d" % self.server.port}
        done = hearth("upload", str(file), "--label", "service_name=" + service, "--time", "now", env=environment)
        self.assertEqual(done.code, 0, done.err)

    def test_damaged_and_foreign_recordings_are_refused(self):
        recording = (GOLDEN / "work.perf.data").read_bytes()
        for body, part in ((recording[:-2000], "truncated"), (b"2ELIFREP" + recording[8:], "big-endian")):
            status, _, answer = self.upload(body)
            self.assertEqual(status, 422, answer)
            self.assertIn(part, json.loads(answer)["message"])

    def test_every_stack_is_that_of_perf_script(self):
        if not can_record():
            note("perf cannot record here: its own recordings are not compared")
            return
        directory = temporary_directory()
        # A path that readers of its text get wrong.
        program = pathlib.Path(directory) / "a (strange) place" / "spin it"
        program.parent.mkdir()
        shutil.copy(GOLDEN / "spin.elf", program)
        program.chmod(0o755)
        for k, (name, (arguments, is_stream)) in enumerate(RECORDED.items()):
            with self.subTest(name):
                self.compare(directory, program, "recorded-%d" % k, arguments, is_stream)

    def compare(self, directory, program, service, arguments, is_stream):
        file = pathlib.Path(directory) / (service + ".data")
        rate = [] if "-c" in arguments else ["-F", "997"]
        event = [] if "-e" in arguments else ["-e", "cpu-clock:u"]
        out = perf("record", "-q", *event, *rate, *arguments, "-o", "-" if is_stream else file, program)
        if is_stream:
            file.write_bytes(out)
        text = perf("script", "-f", "-i", file, "--no-inline", "-F", "comm,tid,time,period,event,ip,sym,dso").decode()
        expected = stacks_of_script(text, "cpu-clock:u")
        self.assertGreater(sum(expected.values()), 10)

        self.stored(file.read_bytes(), service)
        self.assertEqual(stacks_of_graph(self.graph(SAMPLES, service)), expected)
        self.assertEqual(self.graph(CPU, service).total, sum(map(int, re.findall(r" (\d+) +cpu-clock:u:", text))))

    @unittest.skipUnless((SHARED / "MANIFEST.tsv").is_file(), "the shared data is not there (%s)" % SHARED)
    def test_shared_recordings_have_the_events_of_their_manifest(self):
        for row in (SHARED / "MANIFEST.tsv").read_text().splitlines():
            fields = row.split("\t")
            if not fields[0].endswith(".perf.data"):
                continue
            facts = json.loads(fields[-1])
            with self.subTest(fields[0]):
                service = re.sub(r"\W", "-", fields[0])
                self.stored((SHARED / fields[0]).read_bytes(), service)
                total = self.graph("cycles:samples:count:cycles:count", service).total
                self.assertEqual(total, facts.get("perf_script_6_1", {}).get("events", total))
                self.assertGreater(total, 0)


if __name__ == "__main__":
    unittest.main()
