"""libhearth as a stranger uses it: installed, found by pkg-config, linked into C programs that talk to a real server."""

import os
import pathlib
import random
import re
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import tasks
from pprof import Profile
from server import HEARTHD, ROOT, Server, eventually, unless_sanitized

BUILD = pathlib.Path(HEARTHD).resolve().parents[1]
HERE = pathlib.Path(__file__).resolve().parent
EXAMPLE = ROOT / "clients/example/hearth_example.c"
THREADS, ROUNDS = 6, 40
WARNINGS = ["-std=c17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-D_POSIX_C_SOURCE=200809L"]


def output_of(*command, env=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **(env or {})})
    assert done.returncode == 0, "%s: %s%s" % (command, done.stdout, done.stderr)
    return done.stdout


def free_port():
    """A port that stays free while the server is down: below those that the kernel gives to connections of others."""
    for port in random.sample(range(20000, 30000), 100):
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise AssertionError("no free port")


def shop():
    p = Profile([("cpu", "nanoseconds")], duration_ns=10_000_000_000)
    p.add(["main", "handle", "query"], [30])
    p.add(["main", "handle"], [10])
    p.add(["main", "gc"], [2])
    return p.encode()


@unless_sanitized("the libraries are not built")
class ClientLibrary(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.directory = pathlib.Path(directory.name)
        cls.prefix = cls.directory / "prefix"
        output_of("cmake", "--install", str(BUILD), "--prefix", str(cls.prefix))
        (found,) = cls.prefix.rglob("hearth.pc")
        cls.env = {"PKG_CONFIG_PATH": str(found.parent), "LD_LIBRARY_PATH": str(found.parent.parent)}
        cls.library = found.parent.parent
        cls.file = cls.directory / "shop.pb.gz"
        cls.file.write_bytes(shop())
        cls.port = free_port()
        cls.server = Server("--listen", "127.0.0.1:%d" % cls.port)
        cls.url = "http://127.0.0.1:%d" % cls.port

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def pkg_config(self, *options):
        return output_of("pkg-config", *options, "hearth", env=self.env).split()

    def build(self, source, *more):
        """A program that is compiled against the installed header and library, and against nothing else of the tree."""
        program = self.directory / source.stem
        output_of("cc", *WARNINGS, "-o", str(program), str(source), *(more or self.pkg_config("--cflags", "--libs")))
        return str(program)

    def run_example(self, program, service):
        """Its output, once its task was cancelled."""
        lines = []
        with subprocess.Popen(
            [program, self.url, str(self.file), service], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, **self.env},
        ) as process:
            for line in process.stdout:
                lines.append(line)
                if line.startswith("task ") and "CANCELLED" not in line:
                    created = re.search(r"^created (\S+)$", "".join(lines), re.M)[1]
                    self.server.connect(tasks.TASKS + "CancelTask", {"taskId": created})
        self.assertEqual(process.returncode, 0, "".join(lines))
        return "".join(lines)

    def check_example(self, out):
        self.assertIn("pushed %s\n" % self.file, out)
        self.assertIn("total 42 nanoseconds\n", out)
        self.assertIn("0 below 0: total self 0 total 42\n", out)
        self.assertIn("1 below 0: main self 0 total 42\n", out)
        self.assertRegex(out, r"\n(2|3) below 1: handle self 10 total 40\n")
        self.assertRegex(out, r"\n(2|3) below 1: gc self 2 total 2\n")
        self.assertRegex(out, r"\n4 below (2|3): query self 30 total 30\n")
        self.assertRegex(out, r"task [A-Z_]+: .*\ntask CANCELLED: .*\n$")

    def test_the_example_runs_with_the_installed_library(self):
        self.check_example(self.run_example(self.build(EXAMPLE), "example"))

    def test_the_example_runs_with_the_static_library(self):
        flags = [flag for flag in self.pkg_config("--static", "--cflags", "--libs") if flag != "-lhearth"]
        archive = str(self.library / "libhearth.a")
        program = self.build(EXAMPLE, *[flag for flag in flags if flag.startswith("-I")], archive,
                             *[flag for flag in flags if not flag.startswith("-I")])
        self.assertNotIn("libhearth", output_of("readelf", "-d", program))
        self.check_example(self.run_example(program, "static"))

    def test_the_header_stands_alone_in_c_and_in_cxx(self):
        source = self.directory / "alone.c"
        source.write_text("#include <hearth/client.h>\nint main(void) { struct hearth_client_options o; "
                          "hearth_client_options_init(&o); return o.retry_ms == 10000 ? 0 : 1; }\n")
        output_of(self.build(source), env=self.env)
        output_of("c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-x", "c++", "-o", str(self.directory / "alone"),
                  str(source), *self.pkg_config("--cflags", "--libs"))
        output_of(str(self.directory / "alone"), env=self.env)

    def test_nothing_else_is_installed_or_exported(self):
        headers = sorted(path.relative_to(self.prefix).as_posix() for path in self.prefix.glob("include/**/*.h"))
        self.assertEqual(headers, ["include/hearth/client.h"])
        declared = set(re.findall(r"\b(hearth_client_[a-z_]+)\(", (self.prefix / headers[0]).read_text()))
        declared -= {"hearth_client_message_fn", "hearth_client_task_fn"}
        shared = output_of("nm", "-D", "--defined-only", str(self.library / "libhearth.so"))
        self.assertEqual({line.split()[-1] for line in shared.splitlines() if " T " in line},
                         {name + "@@HEARTH_0.1" for name in declared})
        static = output_of("nm", "-g", "--defined-only", str(self.library / "libhearth.a"))
        self.assertEqual(set(re.findall(r" [A-Z] (\S+)$", static, re.M)), declared)

    def test_a_wrong_address_is_reported_at_once(self):
        program = self.build(EXAMPLE)
        begun = time.monotonic()
        done = subprocess.run([program, "127.0.0.1:%d" % free_port(), str(self.file), "s"], capture_output=True,
                              text=True, timeout=60, env={**os.environ, **self.env})
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^push: cannot reach 127\.0\.0\.1:\d+: .*[Cc]onnection refused\n$")
        self.assertLess(time.monotonic() - begun, 10)

    def test_threads_lose_and_double_nothing_while_the_server_restarts(self):
        program = self.build(HERE / "client_threads.c", "-pthread", *self.pkg_config("--cflags", "--libs"))
        process = subprocess.Popen(
            [program, self.url, str(self.file), str(THREADS), str(ROUNDS)], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env={**os.environ, **self.env},
        )
        self.addCleanup(process.kill)
        rounds, errors = [], []
        readers = [threading.Thread(target=rounds.extend, args=(process.stdout,), daemon=True),
                   threading.Thread(target=errors.extend, args=(process.stderr,), daemon=True)]
        for reader in readers:
            reader.start()

        # Restart it as an administrator does, then as a crash does, each time in the middle of calls.
        for number, end in enumerate((self.server.terminate, self.server.kill9), 1):
            enough = number * THREADS * ROUNDS // 4
            eventually(lambda: len(rounds) >= enough or process.poll() is not None, what="a quarter of the rounds")
            self.assertIsNone(process.poll(), "".join(errors))
            end()
            self.server.start()

        self.assertEqual(process.wait(600), 0, "".join(errors))
        for reader in readers:
            reader.join()
        process.stdout.close()
        process.stderr.close()
        self.assertEqual(len(rounds), THREADS * ROUNDS)
        answer = self.server.connect("querier.v1.QuerierService/SelectMergeStacktraces", {
            "profileTypeID": "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            "labelSelector": '{service_name="threads"}',
            "start": time.time_ns() // 1_000_000 - 3_600_000, "end": time.time_ns() // 1_000_000 + 3_600_000,
        })
        self.assertEqual(int(answer["flamegraph"]["total"]), 42 * THREADS * ROUNDS)


if __name__ == "__main__":
    unittest.main()
