"""hearth record: a profiler that is installed runs, and what it recorded is uploaded."""

import os
import shlex
import shutil
import subprocess
import sys
import unittest

from server import HEARTH, Server, server_environment, temporary_directory

BUSY = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"


class Record(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def record(self, *arguments, code=0):
        folder = temporary_directory()
        done = subprocess.run([HEARTH, "record", "--url", "http://127.0.0.1:%d" % self.server.port, *arguments],
                              capture_output=True, text=True, timeout=120, env=server_environment({"TMPDIR": folder}))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(os.listdir(folder), [])
        return done.stdout + done.stderr

    @unittest.skipUnless(shutil.which("perf"), "perf is not installed")
    def test_perf_records_a_program_until_it_ends(self):
        out = self.record("--label", "env=test", "--", "sh", "-c", BUSY)
        self.assertIn("samples", out)
        series = self.server.sql("SELECT DISTINCT service, labels->>'env' FROM hearth.series WHERE service = 'sh'")
        self.assertEqual(series, [["sh", "test"]])

    @unittest.skipUnless(shutil.which("perf"), "perf is not installed")
    def test_perf_records_a_process_for_a_time(self):
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        self.addCleanup(busy.wait)
        self.addCleanup(busy.kill)
        self.record("--with", "perf", "--for", "1s", "--label", "service_name=loop", "--pid", str(busy.pid))
        self.assertEqual(self.server.sql("SELECT DISTINCT service FROM hearth.series WHERE service = 'loop'"), [["loop"]])

    def test_a_profile_that_a_program_offers_is_fetched(self):
        url = "http://127.0.0.1:%d/debug/pprof/profile" % self.server.port
        self.assertIn("sample types", self.record("--pprof-url", url, "--for", "1s", "--label", "service_name=self"))

    def test_a_recording_that_cannot_be_uploaded_is_kept(self):
        folder = os.path.join(temporary_directory(), "a b")
        os.mkdir(folder)
        source = "http://127.0.0.1:%d/debug/pprof/profile" % self.server.port
        done = subprocess.run([HEARTH, "record", "--url", "http://127.0.0.1:1", "--pprof-url", source, "--for", "1s",
                               "-l", "service_name=kept", "-l", "env=a's b", "--name", "idle"],
                              capture_output=True, text=True, timeout=60, env=server_environment({"TMPDIR": folder}))
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertNotIn("run the same command again", done.stderr)
        command = done.stderr.splitlines()[-1].removeprefix("the recording is kept: hearth ")
        arguments = shlex.split(command)
        self.assertEqual(arguments[2:], ["--time", "now", "-l", "service_name=kept", "-l", "env=a's b", "--name", "idle"])
        self.assertTrue(arguments[1].startswith(folder))
        sent = subprocess.run([HEARTH, *arguments, "--url", "http://127.0.0.1:%d" % self.server.port],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(sent.returncode, 0, sent.stderr)

    def test_mistakes_are_named_in_the_error(self):
        self.assertIn("requires one of", self.record(code=2))
        self.assertIn("requires one of", self.record("--pid", "1", "--", "true", code=2))
        self.assertIn('"x" is not a process id', self.record("--pid", "x", code=2))
        self.assertIn("there is no process with the id 99999999", self.record("--pid", "99999999", code=2))
        self.assertIn('"vtune" is not a value for --with, which takes perf, py-spy or asprof', self.record("--with", "vtune", "--pid", "1", code=2))
        self.assertIn("--for must be", self.record("--for", "1ms", "--pid", "1", code=2))
        self.assertIn("use --pid", self.record("--with", "asprof", "--", "java", code=2))
        self.assertIn("leave --for out", self.record("--for", "2s", "--", "true", code=2))
        self.assertIn('there is no program "no-such-program" in PATH', self.record("--", "no-such-program", code=2))
        self.assertIn('"/no/program" is not a program that can be run', self.record("--", "/no/program", code=2))
        self.assertIn('"/tmp" is not a program that can be run', self.record("--", "/tmp", code=2))

    def test_a_profiler_that_is_not_installed_is_named(self):
        if shutil.which("py-spy"):
            self.skipTest("py-spy is installed")
        self.assertIn("pip install py-spy", self.record("--with", "py-spy", "--pid", "1", code=1))

    def test_other_commands_refuse_the_options_of_record(self):
        done = subprocess.run([HEARTH, "top", "--pid", "1"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("top does not take --pid: it is for record", done.stderr)


if __name__ == "__main__":
    unittest.main()
