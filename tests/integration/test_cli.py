"""The client `hearth` as its users run it: every command, its outputs, its notes, its exit codes."""

import collections
import glob
import gzip
import json
import os
import re
import socket
import subprocess
import time
import unittest

import questions
from pprof import Decoded, Profile
from server import HEARTH, ROOT, Server, server_environment, temporary_directory

OK, FAILED, USAGE, NO_DATA, AUTH, SERVER = range(6)
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
CPU, SAMPLES = questions.CPU, questions.SAMPLES
RECORDINGS = sorted(glob.glob(str(ROOT / "clients/demo/recording/*.txt.gz")))


class Ran:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout.decode(), done.stderr.decode()

    def lines(self):
        return self.out.splitlines()


def hearth(*arguments, env=None, stdin=b"", stdout=subprocess.PIPE):
    """One run of the client without a terminal. env: variables beside those of the tests."""
    done = subprocess.run(
        [HEARTH, *arguments], input=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=60,
        env=server_environment({"TZ": "UTC", **(env or {})}),
    )
    if stdout is not subprocess.PIPE:
        done.stdout = b""
    return Ran(done)


def shop(time_ns=0):
    p = Profile(TYPES, time_ns=time_ns, duration_ns=10_000_000_000)
    p.add(["main", "handle", "query"], [3, 30_000_000])
    p.add(["main", "handle"], [1, 10_000_000])
    p.add(["main", "gc"], [2, 20_000_000])
    p.add(["main", "fib", "fib", "fib"], [4, 40_000_000])
    p.add(["main", "fib"], [1, 10_000_000])
    return p


class Cli(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.url = "http://127.0.0.1:%d" % cls.server.port
        cls.directory = temporary_directory()
        cls.shop = cls.write("shop.pb.gz", shop().encode())
        done = cls.hearth("upload", cls.shop, "--label", "service_name=shop", "--label=region=eu", "--label", "pod=a")
        assert done.code == OK, done.err

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()

    @classmethod
    def write(cls, name, data):
        path = os.path.join(cls.directory, name)
        with open(path, "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        return path

    @classmethod
    def hearth(cls, *arguments, env=None, **more):
        """Against the class's server, which the environment names."""
        return hearth(*arguments, env={"HEARTH_URL": cls.url, **(env or {})}, **more)

    def ask(self, *arguments, **more):
        done = self.hearth(*arguments, **more)
        self.assertEqual(done.code, OK, done.err)
        return done

    def upload(self, service, *arguments, **more):
        return self.ask("upload", *arguments, "--label", "service_name=" + service, **more)

    def merged(self, service, *arguments):
        """The merged profile as pprof, decoded."""
        path = os.path.join(self.directory, "merged.pb.gz")
        done = self.ask("query", "profile", '{service_name="%s"}' % service, "-o", "pprof=" + path, *arguments)
        self.assertRegex(done.err, r"wrote %s: \d+ stacks, %d bytes\n" % (re.escape(path), os.path.getsize(path)))
        self.assertEqual(done.out, "")
        with open(path, "rb") as file:
            return Decoded(file.read())

    def refused(self, code, message, *arguments, **more):
        """Exit code, nothing on standard output, the message as the last line of standard error."""
        done = self.hearth(*arguments, **more)
        self.assertEqual((done.code, done.out), (code, ""), done.err)
        self.assertEqual(done.err.splitlines()[-1], "hearth: " + message)
        return done

    # ---- arguments ----

    def test_version_needs_no_server(self):
        done = hearth("version", env={"HEARTH_URL": "http://127.0.0.1:1"})
        self.assertEqual((done.code, done.err), (OK, ""))
        self.assertRegex(done.out, r"^hearth \d+\.\d+\.\d+\n$")

    def test_bad_times_are_usage_errors(self):
        for arguments in (["--since", "1parsec"], ["--from", "yesterday-ish"], ["--to", "now-"]):
            done = self.hearth("query", "types", *arguments)
            self.assertEqual((done.code, done.out), (USAGE, ""), done.err)
        self.refused(USAGE, "--from is after --to", "query", "types", "--from", "now", "--to", "now-1h")

    # ---- selectors ----

    def test_a_wrong_selector_is_shown_with_a_caret(self):
        for command in ("labels", "series", "timeline", "profile", "top"):
            done = self.hearth("query", command, '{service_name="shop", region!!"eu"}')
            self.assertEqual((done.code, done.out), (USAGE, ""))
            lines = done.err.splitlines()
            self.assertEqual(lines[0].strip(), '{service_name="shop", region!!"eu"}')
            self.assertEqual(lines[1].index("^"), lines[0].index("!!"), done.err)
            self.assertTrue(lines[2].startswith("hearth: "))
        self.assertEqual(self.hearth("flame", "{").code, USAGE)
        self.assertEqual(self.hearth("query", "values", "pod", "{").code, USAGE)

    def test_a_wrong_regular_expression_is_a_usage_error(self):
        done = self.hearth("query", "series", '{pod=~"("}')
        self.assertEqual((done.code, done.out), (USAGE, ""), done.err)

    # ---- where the server is ----

    def test_the_option_url_wins_over_the_variable(self):
        for url in (self.url, self.url + "/", self.url[len("http://") :]):
            done = hearth("query", "types", "--url", url, env={"HEARTH_URL": "http://127.0.0.1:1"})
            self.assertEqual(done.code, OK, done.err)

    def test_empty_variables_are_ignored(self):
        done = hearth("query", "types", "--url", self.url, env={"HEARTH_URL": "", "HEARTH_TENANT": ""})
        self.assertEqual(done.code, OK, done.err)

    def test_an_unreachable_server_is_named_with_code_5(self):
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            port = held.getsockname()[1]
            started = time.monotonic()
            for arguments in (["query", "types"], ["flame"], ["upload", self.shop]):
                done = hearth(*arguments, "--url", "http://127.0.0.1:%d" % port)
                self.assertEqual((done.code, done.out), (SERVER, ""))
                self.assertIn("cannot reach 127.0.0.1:%d: Connection refused; " % port, done.err)
            self.assertLess(time.monotonic() - started, 60)

    def test_invalid_urls_are_usage_errors(self):
        for url in ("ftp://127.0.0.1:4040/x", "https://", "http://", "http://host/path"):
            done = hearth("query", "types", "--url", url)
            self.assertEqual((done.code, done.out), (USAGE, ""), done.err)
            self.assertIn(url, done.err)

    def test_a_closed_standard_output_is_a_failure(self):
        with open("/dev/full", "wb") as full:
            done = self.hearth("query", "types", stdout=full)
        self.assertEqual((done.code, done.err), (FAILED, "hearth: cannot write to standard output\n"))

    # ---- no data ----

    def test_nothing_found_is_code_3(self):
        long_ago = ["--from", "2020-01-01T00:00:00Z", "--to", "2020-01-02T00:00:00Z"]
        for command in ("types", "labels", "series", "timeline", "profile", "top"):
            done = self.hearth("query", command, *long_ago)
            self.assertEqual((done.code, done.out), (NO_DATA, ""), command + done.err)
            self.assertIn("range: 2020-01-01T00:00:00.000Z to 2020-01-02T00:00:00.000Z", done.err)
        self.assertEqual(self.hearth("query", "values", "pod", *long_ago).code, NO_DATA)
        self.assertEqual(self.hearth("query", "values", "no_such_label").code, NO_DATA)
        for selector in ('{service_name="nobody"}', '{pod="a",pod="b"}'):
            for command in (["query", "top"], ["query", "timeline"], ["flame"]):
                self.assertEqual(self.hearth(*command, selector).code, NO_DATA)
            self.assertEqual(self.hearth("flame", selector, "--type", CPU).code, NO_DATA)
            self.assertEqual(self.hearth("query", "profile", selector, "--type", CPU, "-o", "json").code, NO_DATA)

    def test_no_file_is_written_without_data(self):
        path = os.path.join(self.directory, "none.pb.gz")
        done = self.hearth("query", "profile", '{service_name="nobody"}', "--type", CPU, "-o", "pprof=" + path)
        self.assertEqual((done.code, os.path.exists(path)), (NO_DATA, False))

    # ---- tenants ----

    def test_a_server_with_tenants_requires_a_tenant(self):
        server = Server("--multitenancy")
        try:
            url = {"HEARTH_URL": "http://127.0.0.1:%d" % server.port}
            for arguments in (["query", "types"], ["query", "top"], ["flame"], ["upload", self.shop]):
                done = hearth(*arguments, env=url)
                self.assertEqual((done.code, done.out), (AUTH, ""), done.err)
            self.assertEqual(hearth("upload", self.shop, "--tenant", "one", env=url).code, OK)
            self.assertEqual(hearth("query", "types", "--tenant=one", env=url).lines(), [CPU, SAMPLES])
            self.assertEqual(hearth("query", "types", env={**url, "HEARTH_TENANT": "one"}).code, OK)
            self.assertEqual(hearth("query", "types", env={**url, "HEARTH_TENANT": "two"}).code, NO_DATA)
            self.assertEqual(hearth("query", "types", "--tenant=one", env={**url, "HEARTH_TENANT": "two"}).code, OK)
        finally:
            server.terminate()

    # ---- upload ----

    def test_gzip_raw_and_zstd_pprof_are_stored_equally(self):
        raw = shop().encode(compress=False)
        zstd = subprocess.run(["zstd", "-c"], input=raw, stdout=subprocess.PIPE).stdout if has_zstd() else gzip.compress(raw)
        for name, data in (("raw", raw), ("gzip", gzip.compress(raw)), ("two", gzip.compress(raw[:9]) + gzip.compress(raw[9:])),
                           ("zstd", zstd)):
            path = self.write("same." + name, data)
            done = self.upload("same-" + name, path)
            self.assertEqual(done.out, "%s: 5 samples, 2 sample types\n" % path)
            self.assertEqual(self.merged("same-" + name).by_stack(0), shop_stacks(1))

    def test_standard_input_is_a_file_too(self):
        done = self.upload("stdin", "-", stdin=shop().encode())
        self.assertEqual(done.out, "-: 5 samples, 2 sample types\n")
        self.assertEqual(self.merged("stdin").by_stack(0), shop_stacks(1))

    def test_perf_script_text_is_stored_equally_plain_and_gzipped(self):
        self.assertEqual(len(RECORDINGS), 6)
        with open(RECORDINGS[0], "rb") as file:
            text = gzip.decompress(file.read())
        plain = self.write("perf.txt", text)
        self.assertRegex(self.upload("perf-gz", RECORDINGS[0]).out, r": \d+ samples, 2 sample types\n$")
        self.upload("perf-plain", plain)
        packed, unpacked = self.merged("perf-gz"), self.merged("perf-plain")
        self.assertEqual(packed.by_stack(0), unpacked.by_stack(0))
        headers = re.findall(rb"(?m)^\S.*?\s+[\d.]+:\s+(\d+) cpu-clock", text)
        self.assertEqual(packed.totals()[0], sum(map(int, headers)))
        self.assertEqual(self.merged("perf-gz", "--type", self.samples_type("perf-gz")).totals()[0], len(headers))

    def test_all_recordings_are_uploaded_in_one_call(self):
        done = self.upload("recordings", *RECORDINGS, "--time=now")
        self.assertEqual(len(done.lines()), len(RECORDINGS))
        rows = json.loads(self.ask("query", "top", '{service_name="recordings"}', "-o", "json").out)
        self.assertGreater(int(rows["total"]), 0)

    def test_collapsed_text_is_stored_equally_in_every_encoding(self):
        text = "main;handle;query 3\nmain;handle 1\r\nmain;gc 2\nmain;fib;fib;fib 4\nmain;fib 1\n"
        for name, data in (("utf8", text.encode()), ("gz", gzip.compress(text.encode())),
                           ("utf16", b"\xff\xfe" + text.encode("utf-16-le"))):
            path = self.write("collapsed." + name, data)
            done = self.upload("collapsed-" + name, path)
            self.assertEqual(done.out, "%s: 5 samples, 1 sample type\n" % path)
            self.assertEqual(done.err, "")
            lines = self.ask("query", "profile", '{service_name="collapsed-%s"}' % name, "-o", "collapsed").lines()
            self.assertEqual(sorted(lines), sorted(line for line in text.splitlines() if " " in line))

    def test_a_text_with_a_line_that_is_not_a_stack_is_refused(self):
        path = self.write("collapsed", b"main;f 3\nmain;g 1\nnonsense\n")
        done = self.hearth("upload", path, "--label", "service_name=nonsense")
        self.assertEqual((done.code, done.out), (USAGE, ""))
        self.assertIn('line 3 is not of the form "frame;frame value": "nonsense"', done.err)

    def test_files_that_are_not_profiles_are_refused_and_the_others_stored(self):
        bad = [self.write("empty", b""), self.write("noise", b"\x00\x01\x02" * 99), self.write("words", "no stacks\nhere\n"),
               self.write("cut.gz", shop().encode()[:40]), os.path.join(self.directory, "absent"), self.directory]
        done = self.hearth("upload", bad[0], *bad[1:3], self.shop, *bad[3:], "--label", "service_name=survivor")
        self.assertEqual(done.code, USAGE)
        self.assertEqual(done.out, "%s: 5 samples, 2 sample types\n" % self.shop)
        # Files are sent side by side; the summary is last and names the failed ones again.
        messages, summary, failed = done.err.partition("7 files: 1 sent, 6 failed\n")
        self.assertTrue(summary, done.err)
        self.assertEqual(len(messages.splitlines()), len(bad), done.err)
        for path in bad:
            self.assertRegex(messages, r"(?m)^hearth: %s: ." % re.escape(path))
            self.assertIn(path, failed)

    def test_a_refusal_of_the_server_names_the_file(self):
        done = self.hearth("upload", self.shop, "--label", "a=1", "--label", "a=2")
        self.assertEqual((done.code, done.out), (USAGE, ""))
        self.assertTrue(done.err.startswith("hearth: %s: " % self.shop), done.err)
        self.assertIn("has duplicate label name: 'a'", done.err)

    def test_the_client_prints_the_dropped_samples(self):
        p = shop()
        p.add(["main", "negative"], [-1, 1]).add(["main", "zero"], [0, 0]).add(["main", "gc"], [1, 1], {"bytes": 5})
        path = self.write("dropped.pb.gz", p.encode())
        done = self.upload("dropped", path)
        start = "%s: 8 samples, 2 sample types; 1 added to equal ones; dropped or cut: " % path
        self.assertTrue(done.out.startswith(start), done.out)
        found = dict(pair.strip().split("=") for pair in done.out[len(start):].split(","))
        self.assertEqual(found, {"negative_samples": "1", "zero_samples": "1", "numeric_labels": "1"})

    def test_name_and_service_are_guessed_and_can_be_given(self):
        done = self.ask("upload", self.write("anonymous.pb", shop().encode(False)))
        self.assertEqual(done.err, "stored as service hearth-upload: name another one with -l service_name=NAME\n")
        self.assertIn("hearth-upload", self.ask("query", "values", "service_name").lines())
        for service, types, arguments, name in (
            ("guess-cpu", [("cpu", "nanoseconds")], [], "process_cpu"),
            ("guess-memory", [("inuse_space", "bytes")], [], "memory"),
            ("guess-mutex", [("contentions", "count"), ("delay", "nanoseconds")], [], "mutex"),
            ("guess-goroutines", [("goroutine", "count")], [], "goroutines"),
            ("guess-wall", [("wall", "nanoseconds")], [], "wall"),
            ("guess-other", [("widgets", "count")], [], "widgets"),
            ("say-name", [("cpu", "nanoseconds")], ["--name", "mine"], "mine"),
            ("say-label", [("cpu", "nanoseconds")], ["--label", "__name__=labelled"], "labelled"),
        ):
            p = Profile(types).add(["main"], [1] * len(types))
            self.upload(service, self.write(service, p.encode()), *arguments)
            found = self.ask("query", "values", "__name__", '{service_name="%s"}' % service).lines()
            self.assertEqual(found, [name], service)

    # ---- the time of what is uploaded ----

    def at(self, service, start_s, end_s):
        done = self.hearth("query", "values", "service_name", '{service_name="%s"}' % service,
                           "--from", str(int(start_s)), "--to", str(int(end_s)))
        return done.code == OK

    def test_a_recent_file_keeps_its_time(self):
        now = time.time()
        path = self.write("recent.pb.gz", shop(int((now - 7200) * 1e9)).encode())
        self.assertEqual(self.upload("recent", path).err, "")
        self.assertFalse(self.at("recent", now - 3600, now + 60))
        self.assertTrue(self.at("recent", now - 7300, now - 7100))

    def test_time_now_moves_a_recent_file(self):
        now = time.time()
        path = self.write("moved.pb.gz", shop(int((now - 7200) * 1e9)).encode())
        self.assertEqual(self.upload("moved", path, "--time", "now").err, "")
        self.assertTrue(self.at("moved", now - 60, now + 60))
        self.assertFalse(self.at("moved", now - 7300, now - 7100))

    def test_a_file_older_than_the_window_is_stored_as_of_now_with_a_note(self):
        now = time.time()
        path = self.write("old.pb.gz", shop(1_600_000_000 * 10**9).encode())
        self.assertEqual(
            self.upload("old", path).err,
            "%s: recorded at 2020-09-13T12:26:40.000Z, which is older than servers accept by default "
            "(reject-older-than, 7 days): stored as of now\n" % path,
        )
        self.assertTrue(self.at("old", now - 60, now + 60))
        self.assertEqual(self.upload("old-said", path, "--time=now").err, "")

    def test_an_old_file_that_keeps_its_time_is_refused_by_the_window(self):
        path = self.write("kept.pb.gz", shop(1_600_000_000 * 10**9).encode())
        done = self.hearth("upload", path, "--time", "keep")
        self.assertEqual((done.code, done.out), (USAGE, ""))
        self.assertIn("outside of ingestion window", done.err)

    def test_a_file_without_a_time_is_stored_as_of_now_without_a_note(self):
        now = time.time()
        for time_ns in (0, -5, -(2**63)):
            service = "timeless%d" % time_ns
            self.assertEqual(self.upload(service, self.write("timeless", shop(time_ns).encode())).err, "")
            self.assertTrue(self.at(service, now - 60, now + 60))

    def test_a_repeated_file_is_stored_once_unless_another_id_is_given(self):
        path = self.write("once.pb.gz", shop(time.time_ns() - 60 * 10**9).encode())
        again = "%s: stored already within the last hour, not stored again; another --id stores it once more\n" % path
        for service, options in (("once", []), ("once-now", ["--time=now"]), ("once-id", ["--id=a"])):
            stored = self.upload(service, path, *options).out
            self.assertEqual(stored, "%s: 5 samples, 2 sample types\n" % path)
            for _ in range(2):
                self.assertEqual(self.upload(service, path, *options).out, again)
            self.assertEqual(self.merged(service).totals(), [110_000_000])
            self.assertEqual(self.upload(service, path, "--id=b").out, stored)
            self.assertEqual(self.upload(service, path, *options, "--label", "pod=a").out, stored)
            self.assertEqual(self.merged(service).totals(), [330_000_000])
        self.assertEqual(self.upload("once", path, "--time=now").out, "%s: 5 samples, 2 sample types\n" % path)

    # ---- questions ----

    def test_types_of_the_range_are_listed_sorted(self):
        done = self.ask("query", "types", "--since", "2h")
        self.assertIn(CPU, done.lines())
        self.assertEqual(done.lines(), sorted(done.lines()))
        self.assertRegex(done.err, r"^range: \S+Z to \S+Z\n$")
        self.assertEqual(self.ask("query", "types").err, "")
        found = json.loads(self.ask("query", "types", "-o", "json").out)
        self.assertIn({"ID": CPU, "name": "process_cpu", "sampleType": "cpu", "sampleUnit": "nanoseconds",
                       "periodType": "cpu", "periodUnit": "nanoseconds"}, found["profileTypes"])

    def test_labels_and_values_are_listed_sorted(self):
        names = self.ask("query", "labels", '{service_name="shop"}').lines()
        self.assertEqual(names, sorted(names))
        self.assertLessEqual({"pod", "region", "service_name", "__profile_type__"}, set(names))
        self.assertEqual(self.ask("query", "values", "region").lines(), ["eu"])
        self.assertEqual(self.ask("query", "values", "pod", '{service_name="shop"}').lines(), ["a"])
        self.assertEqual(json.loads(self.ask("query", "values", "region", "-o", "json").out), {"names": ["eu"]})
        answer = self.ask("query", "labels", '{service_name="shop"}', "--output=json").out
        self.assertEqual(json.loads(answer)["names"], names)

    def test_services_are_listed_with_the_types_that_they_sent(self):
        self.upload("listed", self.shop)
        rows = [json.loads(row) for row in self.ask("query", "services", "-o", "jsonl").lines()]
        found = {row["service"]: row["types"] for row in rows}
        self.assertEqual(sorted(found), sorted(self.ask("query", "values", "service_name").lines()))
        ids = self.ask("query", "types", '{service_name="listed"}').lines()
        self.assertEqual(found["listed"].split(", "), sorted(":".join(each.split(":")[:2]) for each in ids))
        self.assertEqual(len(ids), 2)
        self.assertEqual(self.hearth("query", "services", '{service_name="nobody"}').code, NO_DATA)

    def test_series_are_printed_as_selectors_that_find_them(self):
        service = 'quo"te\\d \u00fcn\u00ef'
        self.upload(service, self.shop, "--label", "strange.name=x")
        found = self.ask("query", "series", '{"strange.name"="x"}', "--by", "service_name,strange.name", "--by=region").lines()
        self.assertEqual(found, ['{service_name="quo\\"te\\\\d \u00fcn\u00ef", "strange.name"="x"}'])
        again = self.ask("query", "values", "service_name", found[0]).lines()
        self.assertEqual(again, [service])
        sets = json.loads(self.ask("query", "series", found[0], "--by=service_name", "-o", "json").out)["labelsSet"]
        self.assertEqual(sets, [{"labels": [{"name": "service_name", "value": service}]}])
        self.assertEqual(len(self.ask("query", "series", '{service_name="shop"}', "--no-headers").lines()), 2)

    def test_control_bytes_of_labels_never_reach_the_terminal(self):
        self.upload("control", self.shop, "--label", "evil=a\x1b[31m\u009bb\nc")
        for arguments in (["values", "evil"], ["series", '{service_name="control"}'],
                          ["timeline", '{service_name=~"control|shop"}', "--by", "evil"]):
            done = self.ask("query", *arguments)
            for char in done.out.replace("\n", ""):
                self.assertTrue(ord(char) >= 0x20 and not 0x7F <= ord(char) < 0xA0, arguments)
        self.assertEqual(self.ask("query", "values", "evil").lines(), ["a\\u001b[31m\\u009bb\\u000ac"])
        self.assertEqual(json.loads(self.ask("query", "values", "evil", "-o", "json").out), {"names": ["a\x1b[31m\u009bb\nc"]})

    def test_the_type_is_shown_when_there_were_several(self):
        done = self.ask("query", "top", '{service_name="shop"}')
        self.assertEqual(done.err, "type: %s (of 2; choose with --type)\n" % CPU)
        done = self.ask("query", "top", '{service_name="shop"}', "--type", SAMPLES)
        self.assertEqual(done.err, "")
        done = self.ask("query", "top", '{service_name="shop", __type__="samples"}')
        self.assertEqual(done.err, "")
        self.assertIn("total: 11 samples\n", done.out)
        self.assertEqual(self.hearth("query", "top", "--type", "nonsense").code, USAGE)

    def test_cpu_time_is_preferred_to_samples_of_an_equal_name(self):
        counted = Profile([("cpu", "count")], time_ns=time.time_ns()).add(["main"], [5])
        self.upload("counted", self.write("counted", counted.encode()), "--name", "process_cpu")
        done = self.ask("query", "top", '{service_name=~"counted|shop"}')
        self.assertEqual(done.err, "type: %s (of 3; choose with --type)\n" % CPU)
        self.assertIn("total: 5 cpu\n", self.ask("query", "top", '{service_name="counted"}').out)

    def test_a_timeline_sums_to_the_total(self):
        now = time.time()
        for age, value in ((50, 1), (40, 2), (10, 4)):
            p = Profile(TYPES, time_ns=int((now - age) * 1e9)).add(["main"], [value, value * 10])
            self.upload("course", self.write("course", p.encode()), "--label", "load=l%d" % (age // 30))
        ask = ["query", "timeline", '{service_name="course"}', "--since", "2m", "--step", "5s", "--type", SAMPLES]
        answer = json.loads(self.ask(*ask, "-o", "json").out)
        self.assertEqual(len(answer["series"]), 1)
        self.assertEqual([p["value"] for p in answer["series"][0]["points"]], [1, 2, 4])
        head, *lines = self.ask(*ask).lines()
        self.assertEqual(head.split(), ["time", "total"])
        self.assertEqual([re.fullmatch(r"\d\d-\d\d \d\d:\d\d:\d\d +(\d+)  (\S+)", line).group(1) for line in lines],
                         ["1", "2", "4"])
        self.assertEqual(len(lines[2].split()[-1]), 40)
        self.assertEqual(len(lines[1].split()[-1]), 20)
        grouped = self.ask(*ask, "--by", "load").lines()
        self.assertEqual(sorted(line[60:].split()[0:2] for line in grouped), [["3", '{load="l1"}'], ["4", '{load="l0"}']])
        self.assertEqual(len(self.ask(*ask, "--by", "load", "--limit", "1").lines()), 1 + 1)
        self.assertEqual(self.hearth(*ask, "--step", "0s").code, USAGE)

    # ---- profiles ----

    def test_the_profile_as_pprof_holds_every_stack_exactly(self):
        merged = self.merged("shop")
        self.assertEqual(merged.sample_types, [("cpu", "nanoseconds")])
        self.assertEqual(merged.by_stack(0), shop_stacks(1))
        self.assertEqual(self.merged("shop", "--type", SAMPLES).by_stack(0), shop_stacks(0))

    def test_the_profile_as_json_and_collapsed_agree_with_the_pprof(self):
        found = json.loads(self.ask("query", "profile", '{service_name="shop"}', "-o", "json").out)
        self.assertEqual(sum(int(s["value"][0]) for s in found["sample"]), 110_000_000)
        lines = self.ask("query", "profile", '{service_name="shop"}', "-o", "collapsed").lines()
        expected = {";".join(f[0] for f in reversed(stack)): value for stack, value in shop_stacks(1).items()}
        self.assertEqual({line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in lines}, expected)

    def test_the_profile_as_a_table_is_the_top_table(self):
        self.assertEqual(self.ask("query", "profile", '{service_name="shop"}').out, self.ask("query", "top", '{service_name="shop"}').out)

    def test_a_file_that_cannot_be_written_is_code_1(self):
        for path in ("/nonexistent/x.pb.gz", "/dev/full"):
            done = self.hearth("query", "profile", '{service_name="shop"}', "-o", "pprof=" + path)
            self.assertEqual((done.code, done.out), (FAILED, ""))
            self.assertIn("hearth: cannot write %s: " % path, done.err)

    def test_top_has_the_sums_of_the_pprof(self):
        self.upload("top", *RECORDINGS[:2])
        for service in ("shop", "top"):
            expected = by_name(self.merged(service))
            answer = json.loads(self.ask("query", "top", '{service_name="%s"}' % service, "-o", "json").out)
            self.assertEqual({f["name"]: (int(f.get("self", 0)), int(f["total"])) for f in answer["rows"]}, expected)
            self.assertEqual(int(answer["total"]), self.merged(service).totals()[0])
            order = [(int(f.get("self", 0)), int(f["total"])) for f in answer["rows"]]
            self.assertEqual(order, sorted(order, reverse=True))
            self.assertEqual(sum(int(f.get("self", 0)) for f in answer["rows"]), int(answer["total"]))

    def test_the_top_table_shows_self_and_total(self):
        self.assertEqual(
            self.ask("query", "top", '{service_name="shop"}', "--type", SAMPLES).out,
            "self       %  total        %  function\n"
            "   5  45.45%      5   45.45%  fib\n"
            "   3  27.27%      3   27.27%  query\n"
            "   2  18.18%      2   18.18%  gc\n"
            "   1   9.09%      4   36.36%  handle\n"
            "   0   0.00%     11  100.00%  main\n"
            "total: 11 samples\n",
        )
        self.assertEqual(
            self.ask("query", "top", '{service_name="shop"}', "--limit", "1").out,
            "    self       %     total       %  function\n"
            "50.00 ms  45.45%  50.00 ms  45.45%  fib\n"
            "rows 1 to 1 of 5; --limit and --offset show others\n"
            "total: 110 ms\n",
        )
        answer = json.loads(self.ask("query", "top", '{service_name="shop"}', "--limit=2", "-o", "json").out)
        self.assertEqual([f["name"] for f in answer["rows"]], ["fib", "query"])
        self.assertEqual(answer["total"], "110000000")
        self.assertEqual(answer["unit"], "nanoseconds")

    # ---- flame ----

    def test_the_flame_graph_is_printed_as_text(self):
        self.assertEqual(
            self.ask("flame", '{service_name="shop"}', "--type", SAMPLES, "--min-percent", "0").out,
            "        11 100.00% ████████████████ total\n"
            "        11 100.00% ████████████████  main\n"
            "         5  45.45% ███████▎          ├ fib\n"
            "         4  36.36% █████▉            │ └ fib\n"
            "         4  36.36% █████▉            │    fib\n"
            "         4  36.36% █████▉            ├ handle\n"
            "         3  27.27% ████▍             │ └ query\n"
            "         2  18.18% ██▉               └ gc\n",
        )

    def test_small_nodes_are_left_out_with_a_count(self):
        lines = self.ask("flame", '{service_name="shop"}', "--type", SAMPLES, "--min-percent", "30").lines()
        self.assertEqual([line.split()[-1] for line in lines[:-1]], ["total", "main", "fib", "fib", "fib", "handle"])
        self.assertEqual(lines[-1], "6 nodes shown; 2 below 30% left out (--min-percent)")

    def test_children_of_the_flame_text_add_up_to_their_parent(self):
        """Of real stacks: children never exceed their parent, and what a parent has beside them is its self."""
        self.upload("sums", RECORDINGS[2])
        ask = ['{service_name="sums"}', "--type", self.samples_type("sums")]
        lines = self.ask("flame", *ask, "--min-percent", "0", "--max-nodes", "100000").lines()
        stacks = collections.Counter()
        for stack, value in self.merged("sums", *ask[1:]).by_stack(0).items():
            stacks[("total", *(frame_name(f) for f in reversed(stack)))] += value
        expected = collections.Counter()
        for stack, value in stacks.items():
            for depth in range(1, len(stack) + 1):
                expected[stack[:depth]] += value
        self.assertEqual(len(lines), len(expected))
        self.assertEqual(sorted(int(line.split()[0]) for line in lines), sorted(expected.values()))
        names = collections.Counter(re.sub(r"^[│├└ ]*", "", line[36:]) for line in lines)
        self.assertEqual(names, collections.Counter(path[-1] for path in expected))

    def samples_type(self, service):
        return next(t for t in self.ask("query", "values", "__profile_type__", '{service_name="%s"}' % service).lines()
                    if ":samples:" in t)

    def test_the_flame_graph_is_printed_as_json(self):
        graph = json.loads(self.ask("flame", '{service_name="shop"}', "-o", "json").out)
        self.assertEqual(graph["total"], "110000000")
        self.assertEqual(graph["names"][0], "total")
        self.assertEqual([int(v) for v in graph["levels"][0]["values"]], [0, 110000000, 0, 0])

    def test_few_nodes_fold_into_other(self):
        lines = self.ask("flame", '{service_name="shop"}', "--type", SAMPLES, "--max-nodes", "2", "--min-percent", "0").lines()
        self.assertIn("other", [line.split()[-1] for line in lines])


def frame_name(frame):
    """A frame as Hearth names it: a location without lines by the file of its mapping and its offset there."""
    name, file, line = frame
    return name if line is not None or not file else "%s+%s" % (os.path.basename(file), name)


def by_name(decoded):
    """{name: (self, total)}; recursion counts once."""
    own, total = collections.Counter(), collections.Counter()
    for stack, value in decoded.by_stack(0).items():
        names = [frame_name(frame) for frame in stack]
        own[names[0]] += value
        for name in set(names):
            total[name] += value
    return {name: (own[name], total[name]) for name in total}


def shop_stacks(k):
    """{leaf-first tuple of (function, file, line): value k}."""
    return {
        tuple((name, name + ".c", 1) for name in stack): values[k]
        for stack, values in (
            (("query", "handle", "main"), (3, 30_000_000)),
            (("handle", "main"), (1, 10_000_000)),
            (("gc", "main"), (2, 20_000_000)),
            (("fib", "fib", "fib", "main"), (4, 40_000_000)),
            (("fib", "main"), (1, 10_000_000)),
        )
    }


def has_zstd():
    return any(os.access(os.path.join(d, "zstd"), os.X_OK) for d in os.environ.get("PATH", "").split(":"))


if __name__ == "__main__":
    unittest.main()
