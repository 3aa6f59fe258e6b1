"""Options, readiness, metrics, logs, and how hearthd starts and stops."""

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import threading
import time
import unittest

import grpc

import prometheus
import wire
from pprof import Profile
from questions import CPU
from server import HEARTHD, PUSH, QUERIER, Cluster, RpcError, Server, eventually, now_ms, server_environment, temporary_directory

TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
NUMBERS = ("pid", "writer", "duration_us", "in_bytes", "out_bytes", "messages", "missed", "token")
PAIR = re.compile(r'([a-zA-Z_][\w.-]*)=(?:"((?:[^"\\]|\\(?:["\\n]|u[0-9a-f]{4}))*)"|([^\s"=\\]+))')


def hearthd(*arguments, env=None):
    """(exit code, stdout, stderr) of a hearthd that is expected to end by itself."""
    done = subprocess.run(
        [HEARTHD, *arguments], capture_output=True, text=True, timeout=30, env=server_environment(env)
    )
    return done.returncode, done.stdout, done.stderr


def read_logfmt(line):
    """Ordered pairs; AssertionError when any byte is not part of a pair."""
    out, at = [], 0
    while at < len(line):
        match = PAIR.match(line, at)
        assert match, "not logfmt at %d: %r" % (at, line)
        key, quoted, plain = match.groups()
        out.append((key, plain if quoted is None else json.loads('"%s"' % quoted)))
        at = match.end()
        assert at == len(line) or line[at] == " ", "no space at %d: %r" % (at, line)
        at += 1
    return out


class Options(unittest.TestCase):
    def setUp(self):
        self.directory = temporary_directory()

    def file(self, text):
        path = os.path.join(self.directory, "hearth.conf")
        with open(path, "w") as file:
            file.write(text)
        return path

    def printed(self, *arguments, env=None):
        code, out, err = hearthd("--print-config", *arguments, env=env)
        self.assertEqual((code, err), (0, ""))
        found, prefix = {}, ""
        for line in out.splitlines():
            if re.fullmatch("[a-z]+:", line):
                prefix = "limits." if line == "limits:" else ""
            elif line.startswith("  ") and not line.startswith("  #"):
                key, value = line.split("  # from ")[0].strip().split(": ", 1)
                found[prefix + key] = value.strip('"')
        return found

    def refused(self, part, *arguments, env=None):
        code, out, err = hearthd(*arguments, env=env)
        self.assertEqual((code, out), (2, ""), err)
        self.assertIn(part, err)

    def test_help_is_one_screen(self):
        code, out, err = hearthd("--help")
        self.assertEqual((code, err), (0, ""))
        self.assertLess(len(out.splitlines()), 40)
        self.assertEqual(hearthd("-h"), (code, out, err))

    def test_the_example_file_has_every_option_with_its_default(self):
        example = os.path.join(os.path.dirname(__file__), "../../docs/reference/hearthd.yaml")
        code, out, err = hearthd("check-config", "--origin", "--config", example)
        self.assertEqual((code, out, err), (0, "the configuration is valid\n", ""))
        with open(example) as file:
            text, n = re.subn("^  #(?! )", "  ", file.read(), flags=re.M)
        self.assertEqual(n, len(self.printed()))
        every = self.file(text)
        self.assertEqual(self.printed("--config", every), self.printed())

    def test_check_config_names_the_origin_of_each_value_and_hides_secrets(self):
        path = self.file("ingest:\n  max-samples: 5\nagents:\n  agent-token: s3cret\n")
        code, out, err = hearthd("check-config", "--origin", "--config", path, "--readers=9", env={"HEARTH_USER": "root"})
        self.assertEqual(code, 0, err)
        self.assertEqual(out.replace(path, "FILE"), """\
# Database
database:
  readers: 9  # from flag

# Ingest
ingest:
  max-samples: 5  # from FILE:2

# Agents
agents:
  agent-token: "***"  # from FILE:4

# Process
process:
  user: root  # from environment
the configuration is valid
""")

    def test_help_names_every_option_once_with_its_default(self):
        code, out, err = hearthd("--help-all")
        self.assertEqual((code, err), (0, ""))
        named = re.findall(r"^  --([a-z0-9.-]+) ", out, re.M)
        self.assertEqual(len(named), len(set(named)))
        for option in self.printed():
            self.assertIn(option, named)
        self.assertIn("[127.0.0.1:4040]", out)

    def test_version_is_one_line(self):
        self.assertRegex(hearthd("--version")[1], r"\Ahearthd \d+\.\d+\.\d+\S*\n\Z")

    def test_the_printed_configuration_can_be_read_back(self):
        arguments = ["--max-samples", "77", "--listen", "127.0.0.1:1,[::1]:2", "--log-format", "json", "--commit-linger", "7ms"]
        before = self.printed(*arguments)
        self.assertEqual(before["max-samples"], "77")
        path = self.file(hearthd("--print-config", *arguments)[1])
        self.assertEqual(self.printed("--config", path), before)

    def test_flags_win_over_environment_over_file_over_defaults(self):
        path = self.file("max-samples = 1\nmax-label-names = 2\nmax-stack-depth = 3 \n# a comment\n\nreaders=9\n")
        env = {"HEARTH_MAX_SAMPLES": "10", "HEARTH_MAX_LABEL_NAMES": "20"}
        found = self.printed("--config", path, "--max-samples=100", env=env)
        self.assertEqual((found["max-samples"], found["max-label-names"], found["max-stack-depth"]), ("100", "20", "3"))
        self.assertEqual((found["readers"], found["max-sample-labels"]), ("9", "100"))
        self.assertEqual(self.printed(env={"HEARTH_CONFIG": path})["max-samples"], "1")

    def test_passwords_are_masked(self):
        for url, shown in (
            ("postgresql://user:s3cret@host:1/db?x=1", "postgresql://user:***@host:1/db?x=1"),
            ("postgresql://user@host/db?password=s3cret&a=b", "postgresql://user@host/db?password=***&a=b"),
            ("host=h user=u password=s3cret dbname=d", "host=h user=u password=*** dbname=d"),
            ("host=h password='s3 cret' dbname=d", "host=h password=*** dbname=d"),
            ("postgresql://user@host/db", "postgresql://user@host/db"),
        ):
            self.assertEqual(self.printed("--database-url", url)["database-url"], shown)

    def test_unknown_options_are_refused_with_exit_code_2(self):
        self.refused('unknown option "--no-such"', "--no-such")
        self.refused('unknown option "--no-such"', "--no-such=1")
        self.refused("unexpected argument", "serve")
        self.refused('unknown variable "HEARTH_NO_SUCH"', env={"HEARTH_NO_SUCH": "1"})
        self.refused('unknown key "no-such"', "--config", self.file("max-samples = 1\nno-such = 2\n"))
        self.refused(":2: unknown key", "--config", self.file("max-samples = 1\nno-such = 2\n"))
        self.refused("cannot open", "--config", os.path.join(self.directory, "none"))
        self.refused("expected", "--config", self.file("max-samples\n"))

    def test_check_config_names_every_mistake_of_every_source(self):
        path = self.file("ingest:\n  max-sample: 1\n  max-profile-bytes: 1x\nlistening:\n  auth: magic\n")
        code, out, err = hearthd("check-config", "--config", path, "--listen", "0.0.0.0:0", env={"HEARTH_READERS": "1"})
        self.assertEqual((code, out), (2, ""))
        self.assertEqual([line.removeprefix("hearthd: ").replace(path, "FILE")[:30] for line in err.splitlines()], [
            'FILE:2: unknown key "max-sampl',
            "FILE:3: max-profile-bytes = \"1",
            "committers, commit-rows, max-b",
            'auth: "magic" is no way to aut',
            "listen: 0.0.0.0:0 can be reach",
        ])

    def test_invalid_values_are_refused_with_exit_code_2(self):
        for flag, value in (
            ("--max-samples", "many"), ("--max-samples", "-1"), ("--max-samples", ""), ("--max-profile-bytes", "1x"),
            ("--commit-linger", "3"), ("--multitenancy=maybe", None), ("--log-level", "loud"), ("--log-format", "xml"),
            ("--committers", "0"), ("--readers", "1"), ("--max-samples", "99999999999999999999"), ("--listen", "nowhere"),
            ("--listen", "127.0.0.1:99999"), ("--max-samples", None),
        ):
            arguments = [flag] if value is None else [flag, value]
            with self.subTest(arguments):
                code, _, err = hearthd("--data-dir", os.path.join(self.directory, "d"), *arguments)
                self.assertEqual(code, 2, err)
                self.assertTrue(err.strip())

    def test_addresses_that_others_can_reach_are_refused_until_there_is_authentication(self):
        for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.com:0", "127.0.0.1:0,0.0.0.0:0", "127.0.0.1.example.com:0"):
            with self.subTest(address):
                self.refused("insecure-no-auth", "--data-dir", os.path.join(self.directory, "d"), "--listen", address)

    def test_every_listener_serves_every_protocol(self):
        server = Server("--listen", "[::1]:0", "--listen", "localhost:0")
        self.addCleanup(server.stop)
        addresses = re.findall(r"msg=listening addr=(\S+)", server.log())
        self.assertGreaterEqual(len(addresses), 3)
        for address in addresses:
            host, port = address.rsplit(":", 1)
            connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=10)
            connection.request("GET", "/ready")
            self.assertEqual(connection.getresponse().status, 200)
            connection.close()
            with grpc.insecure_channel(address) as channel:
                channel.unary_unary("/" + QUERIER + "ProfileTypes")(b"", timeout=10)

    def test_a_port_in_use_is_reported_and_ends_the_start(self):
        server = Server()
        self.addCleanup(server.stop)
        code, _, err = hearthd("--data-dir", os.path.join(self.directory, "d"), "--listen", "127.0.0.1:%d" % server.port)
        self.assertIn(code, (1, 2))
        self.assertIn("in use", err.lower())

    def test_a_directory_without_the_programs_of_postgresql_is_named(self):
        code, _, err = hearthd("--data-dir", os.path.join(self.directory, "d"), "--listen", "127.0.0.1:0",
                               "--postgres-bin", self.directory)
        self.assertEqual(code, 2)
        self.assertIn("postgres-bin: cannot run \\\"%s/initdb\\\": No such file" % self.directory, err)

    def test_the_directory_of_the_programs_of_postgresql_may_be_relative(self):
        programs = os.path.relpath(os.path.dirname(Cluster.program("initdb")))
        Server(env={"HEARTH_POSTGRES_BIN": programs}).stop()

    def test_two_servers_do_not_share_a_data_directory(self):
        server = Server()
        self.addCleanup(server.stop)
        data = os.path.join(server.directory, "data")
        log = open(os.path.join(self.directory, "log"), "w+")
        self.addCleanup(log.close)
        second = subprocess.Popen(
            [HEARTHD, "--listen", "127.0.0.1:0", "--data-dir", data], stdout=log, stderr=log, env=server_environment()
        )
        self.addCleanup(second.wait)
        self.addCleanup(second.kill)
        time.sleep(2)
        # Whatever the second one makes of it, the first goes on undisturbed.
        server.push(Profile(TYPES).add(["main"], [1, 5]).encode(), {"__name__": "process_cpu"})
        self.assertEqual(server.flamegraph(CPU, "{}", now_ms() - 3_600_000, now_ms() + 1).total, 5)
        self.assertNotIn("ended", server.log())


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--log-level", "debug")
        labels = {"__name__": "process_cpu", "service_name": 'odd "name"\\ with\nall', "pod": "ünï"}
        for k in range(3):
            cls.server.push(Profile(TYPES).add(["main"], [1, 5]).add(["z"], [0, 0]).encode(), labels)
        cls.server.label_names(1, 2)
        cls.server.http("GET", "/nothing")
        with contextlib.suppress(RpcError):
            cls.server.push(b"garbage", labels)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def test_ready_and_healthz_answer_plainly(self):
        self.assertEqual(self.server.http("GET", "/ready")[::2], (200, b"ready"))
        self.assertEqual(self.server.http("GET", "/healthz")[::2], (200, b"ok\n"))
        status, headers, body = self.server.http("GET", "/ready", headers={"Accept": "application/json"})
        self.assertEqual((status, headers["content-type"], json.loads(body)), (200, "application/json", {"ready": True, "degraded": False, "reasons": []}))
        status, headers, body = self.server.http("HEAD", "/ready")
        self.assertEqual((status, body), (200, b""))
        status, headers, _ = self.server.http("POST", "/ready")
        self.assertEqual((status, headers["allow"]), (405, "GET, HEAD"))

    def test_metrics_are_prometheus_text(self):
        status, headers, body = self.server.http("GET", "/metrics")
        self.assertEqual((status, headers["content-type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        samples = prometheus.parse(body.decode())
        self.assertEqual(prometheus.value(samples, "hearth_profiles_received_total"), 4)
        self.assertEqual(prometheus.value(samples, "hearth_profiles_stored_total"), 3)
        self.assertEqual(prometheus.value(samples, "hearth_rejected_profiles_total", client="python", reason="invalid_argument"), 1)
        self.assertEqual(prometheus.value(samples, "hearth_discarded_total", reason="zero_samples"), 3)
        self.assertEqual(prometheus.value(samples, "hearth_ready"), 1)
        self.assertEqual(prometheus.value(samples, "hearth_commit_queue_rows"), 0)
        self.assertGreater(prometheus.value(samples, "process_resident_memory_bytes"), 1_000_000)
        self.assertEqual(prometheus.value(samples, "hearth_request_seconds_count", method=PUSH), 4)
        self.assertEqual(prometheus.lint(body.decode()), [])

    def test_the_process_and_the_build_have_the_metrics_that_dashboards_expect(self):
        samples = self.server.metrics()
        version = hearthd("--version")[1].split()[1]
        self.assertEqual(prometheus.value(samples, "hearth_build_info", version=version), 1)
        self.assertAlmostEqual(prometheus.value(samples, "process_start_time_seconds"), time.time(), delta=600)
        self.assertLess(0, prometheus.value(samples, "process_cpu_seconds_total"))
        self.assertLess(prometheus.value(samples, "process_cpu_seconds_total"), 600)
        self.assertLess(3, prometheus.value(samples, "process_open_fds"))
        self.assertLess(prometheus.value(samples, "process_open_fds"), prometheus.value(samples, "process_max_fds"))
        self.assertLess(
            prometheus.value(samples, "process_resident_memory_bytes"),
            prometheus.value(samples, "process_virtual_memory_bytes"),
        )

    def test_every_labelled_counter_has_lines_before_its_first_event(self):
        server = Server()
        text = server.http("GET", "/metrics")[2].decode()
        counters = set(re.findall(r"^# TYPE (\S+) counter$", text, re.M))
        silent = counters - set(re.findall(r"^(\w+)(?:\{.*\})? \S+$", text, re.M))
        self.assertEqual(silent, {"hearth_method_errors_total"}, "its pairs are too many to be known before")
        for line in (
            'hearth_discarded_total{reason="zero_samples"} 0', 'hearth_request_errors_total{code="unavailable"} 0',
            'hearth_builder_errors_total{step="close"} 0', 'hearth_query_legs_total{source="roll_1h"} 0',
            'hearth_rejected_profiles_total{reason="unsupported_format",client="java"} 0',
            'hearth_connections_total{protocol="refused"} 0', 'hearth_dropped_partitions_total{table="profile"} 0',
            'hearth_stream_messages_total{method="skywalking.v3.TraceSegmentReportService/collect"} 0',
        ):
            self.assertIn("\n" + line + "\n", text)
        server.stop()

    def test_log_lines_are_logfmt(self):
        lines = self.server.log().splitlines()
        self.assertGreater(len(lines), 5)
        for line in lines:
            pairs = read_logfmt(line)
            self.assertEqual([key for key, _ in pairs[:4]], ["ts", "level", "component", "msg"], line)
            self.assertRegex(pairs[0][1], r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")
            self.assertIn(pairs[1][1], ("debug", "info", "warn", "error"))

    def test_log_lines_are_json_if_requested(self):
        server = Server("--log-format", "json", "--log-level", "debug", wait=False, listening=r'"msg":"listening","addr":"127\.0\.0\.1:(\d+)"')
        server.wait_ready()
        with contextlib.suppress(RpcError):
            server.push(b'gar"bage\\', {"__name__": 'quo"ted\\'})
        self.assertEqual(server.terminate(), 0)
        lines = server.log().splitlines()
        self.assertGreater(len(lines), 5)
        for line in lines:
            entry = json.loads(line)
            self.assertEqual(list(entry)[:4], ["ts", "level", "component", "msg"])
            for key, value in entry.items():
                self.assertIs(type(value), int if key in NUMBERS else str, line)
        self.assertIn('"code":"invalid_argument","duration_us":', server.log())

    def test_a_password_is_in_no_log_line(self):
        server = Server(
            "--log-level", "debug", wait=False,
            database_url="host=%s user=hearth password=s3cret" % temporary_directory(),
        )
        time.sleep(0.5)
        self.assertNotIn("s3cret", server.http("GET", "/ready")[2].decode())
        self.assertEqual(server.terminate(), 0)
        self.assertNotIn("s3cret", server.log())


class Stopping(unittest.TestCase):
    def pushing(self, server, n_threads=4):
        """Threads that push as fast as they can: counts of what was acknowledged, as they grow, and what ends them.

        What ends them returns the counts and the other codes.
        """
        stop, counts, codes = threading.Event(), [0] * n_threads, []

        def run(k):
            while not stop.is_set():
                profile = Profile(TYPES).add(["main"], [1, 1]).encode()
                pairs = [(1, [(1, n), (2, v)]) for n, v in (("__name__", "process_cpu"), ("service_name", "s%d" % k))]
                try:
                    server.channel.unary_unary("/" + PUSH)(wire.encode([(1, pairs + [(2, [(1, profile)])])]), timeout=20)
                    counts[k] += 1
                except grpc.RpcError as error:
                    codes.append(error.code())
                    return
                except ValueError:
                    return

        threads = [threading.Thread(target=run, args=(k,)) for k in range(n_threads)]
        for thread in threads:
            thread.start()

        def end():
            stop.set()
            for thread in threads:
                thread.join()
            return counts, codes

        return counts, end

    def test_sigterm_finishes_pushes_under_way_and_exits_with_0(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server = Server()
            counts, end = self.pushing(server)
            eventually(lambda: sum(counts) > 10, what="pushes")
            server.process.send_signal(number)
            self.assertEqual(server.process.wait(120), 0)
            counts, codes = end()
            # gRPC's core resets (CANCELLED) what arrives between the stop and the client's reading of its GOAWAY.
            self.assertLessEqual({code.name for code in codes}, {"UNAVAILABLE", "CANCELLED"})
            self.assertIn("msg=stopped", server.log())
            server.channel.close()
            server.start()
            for k, n in enumerate(counts):
                # What was answered is there; an answer may have been lost on the way.
                stored = server.flamegraph(CPU, '{service_name="s%d"}' % k, now_ms() - 3_600_000, now_ms() + 1000).total
                self.assertIn(stored, (n, n + 1))
            self.assertEqual(server.terminate(), 0)

    def test_a_push_that_waits_for_the_database_is_finished_before_the_end(self):
        cluster = Cluster()
        self.addCleanup(cluster.stop)
        server = Server(database_url=cluster.url())
        server.push(Profile(TYPES).add(["main"], [1, 1]).encode(), {"__name__": "process_cpu", "service_name": "s"})
        answers = []

        def push():
            labels = {"__name__": "process_cpu", "service_name": "s"}
            answers.append(server.push(Profile(TYPES).add(["main"], [1, 2]).encode(), labels))

        thread = threading.Thread(target=push)
        with server.paused_database():
            thread.start()
            eventually(lambda: prometheus.value(server.metrics(), "hearth_commit_queue_rows") == 1, what="a queued row")
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            self.assertIsNone(server.process.poll(), "it waits")
        self.assertEqual(server.process.wait(120), 0)
        thread.join()
        self.assertEqual([list(answer) for answer in answers], [["x-request-id"]])
        server.channel.close()
        server.start()
        self.assertEqual(server.flamegraph(CPU, "{}", now_ms() - 3_600_000, now_ms() + 1000).total, 3)
        self.assertEqual(server.terminate(), 0)

    def test_the_embedded_postgresql_stops_with_its_server(self):
        server = Server()
        pid = server.postmaster_pid()
        os.kill(pid, 0)
        self.assertEqual(server.terminate(), 0)
        self.assertFalse(os.path.exists(os.path.join(server.directory, "data/postgres/postmaster.pid")))
        with self.assertRaises(ProcessLookupError):
            os.kill(pid, 0)

    def test_the_embedded_postgresql_listens_on_no_port(self):
        server = Server()
        self.addCleanup(server.stop)
        self.assertEqual(server.sql("SHOW listen_addresses"), [[""]])
        self.assertEqual(server.sql("SHOW fsync"), [["on"]])
        self.assertEqual(server.sql("SHOW synchronous_commit"), [["on"]])
        run = os.stat(os.path.join(server.directory, "data/run"))
        self.assertEqual(run.st_mode & 0o077, 0)


if __name__ == "__main__":
    unittest.main()
