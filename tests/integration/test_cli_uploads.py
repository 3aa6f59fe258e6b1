"""hearth uploads: files that the server parses in the background."""

import json
import os
import pathlib
import pty
import signal
import subprocess
import time
import unittest

from pprof import Profile
from server import HEARTH, Server, eventually, now_ms, server_environment, temporary_directory
from task_data import moved_jfr
from test_cli import OK, hearth
from test_jfr import CPU, RECORDING
from test_uploads import collapsed

FAILED, USAGE, NO_DATA = 1, 2, 3


class CliUploads(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.url = "http://127.0.0.1:%d" % cls.server.port
        cls.directory = pathlib.Path(temporary_directory())

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def run_cli(self, code, *arguments, **more):
        done = hearth("uploads", *arguments, env={"HEARTH_URL": self.url}, **more)
        self.assertEqual(done.code, code, done.err)
        return done

    def file(self, name, data):
        path = self.directory / name
        path.write_bytes(data)
        return str(path)

    def test_one_note_reports_that_all_profiles_of_an_old_recording_are_stored_as_of_now(self):
        path = self.file("old.jfr", moved_jfr(RECORDING, now_ms() - 30 * 86_400_000))
        done = hearth("upload", path, "-l", "service_name=old", env={"HEARTH_URL": self.url})
        self.assertEqual(done.code, OK, done.err)
        self.assertGreater(len(done.out.splitlines()), 1)
        self.assertEqual(done.err.count("stored as of now"), 1, done.err)

    def test_merged_samples_and_lost_samples_are_reported_separately(self):
        profile = Profile([("cpu", "nanoseconds")]).add(["main"], [1]).add(["main"], [2]).add(["idle"], [0])
        path = self.file("equal.pb", profile.encode())
        done = self.run_cli(OK, "create", path, "--label", "service_name=equal", "--time", "now", "--wait")
        self.assertIn("\n  1 added to equal ones; dropped or cut: zero_samples=1\n", done.out)

    def test_one_skipped_line_is_reported_in_the_singular(self):
        heap = b"heap profile: 1: 2 [1: 2] @ heap_v2/524288\n 1: 2 [1: 2] @ 0x1\n\nMAPPED_LIBRARIES:\nfoo\n"
        for data, said in ((heap, "1 line of its mappings was"), (heap + b"bar\n", "2 lines of its mappings were")):
            path = self.file("heap", data)
            done = hearth("upload", path, "-l", "service_name=heap", env={"HEARTH_URL": self.url})
            self.assertEqual((done.code, done.err), (0, "%s: %s not understood\n" % (path, said)))

    def test_create_waits_and_prints_what_was_stored(self):
        path = self.file("app.jfr", RECORDING)
        done = self.run_cli(OK, "create", path, "--label", "service_name=cli", "--time", "now", "--wait")
        self.assertRegex(done.out, r"^[0-9a-f]{32}  done .* app\.jfr\n")
        self.assertRegex(done.out, r"\n  [0-9a-f-]{36} +140 ms  %s\n" % CPU)
        self.assertRegex(done.out, r"\n  (\d+) of \1 profiles stored, 0 refused; [\d,]+ samples\n")
        upload_id = done.out[:32]
        self.assertIn("%s: upload %s" % (path, upload_id), done.err)
        self.assertIn(upload_id, self.run_cli(OK, "list").out)
        shown = json.loads(self.run_cli(OK, "show", upload_id, "-o", "json").out)
        self.assertEqual(shown["storedProfiles"], shown["profiles"])

        # The original, which never overwrites a file.
        back = str(self.directory / "back.jfr")
        self.run_cli(OK, "download", upload_id, back)
        self.assertEqual(pathlib.Path(back).read_bytes(), RECORDING)
        self.assertIn("File exists", self.run_cli(USAGE, "download", upload_id, back).err)
        self.run_cli(OK, "delete", upload_id)
        self.assertIn("no upload", self.run_cli(NO_DATA, "show", upload_id).err)

    def test_a_damaged_file_fails_with_the_reason(self):
        done = self.run_cli(FAILED, "create", self.file("bad.jfr", RECORDING[:3000]), "--wait")
        self.assertRegex(done.out, "failed .*bad.jfr\n  the JFR chunk at byte 0 declares")

    def test_a_file_that_is_too_old_fails_with_a_way_out(self):
        path = self.file("old.jfr", moved_jfr(RECORDING, now_ms() - 30 * 86_400_000))
        failed = self.run_cli(FAILED, "create", path, "--wait").out
        self.assertIn("outside of ingestion window", failed)
        self.assertIn("\n  hearth uploads create --time now stores them as of now\n", failed)
        self.assertNotIn("--time now", self.run_cli(OK, "create", path, "--time", "now", "--wait").out)

    def interrupt(self, path):
        """Kills the command after the first part; returns the id of the upload."""
        process = subprocess.Popen(
            [HEARTH, "uploads", "create", path, "--time", "now"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=server_environment({"HEARTH_URL": self.url}),
        )
        upload_id = process.stderr.readline().split()[-1]
        eventually(lambda: self.server.sql(
            "SELECT count(*) FROM hearth_data.profile_upload_part JOIN hearth_data.profile_upload USING (upload_no)"
            " WHERE upload_id = '%s'" % upload_id) != [["0"]], pause=0.001)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return upload_id

    def test_an_interrupted_command_is_continued(self):
        text, expected = collapsed(400_000)  # more than two parts
        path = self.file("stacks.txt", text)

        # The same command finds the upload, unless it would store something else.
        upload_id = self.interrupt(path)
        other = self.run_cli(OK, "create", path, "--time", "now", "-l", "region=eu")
        self.assertNotIn(upload_id, other.err)
        done = self.run_cli(OK, "create", path, "--time", "now", "--wait")
        self.assertIn("continues upload " + upload_id, done.err)
        self.assertEqual(done.out[:32], upload_id)
        self.assertNotIn(upload_id, self.run_cli(OK, "create", path, "--time", "now").err)

        # So does --id.
        upload_id = self.interrupt(path)
        done = self.run_cli(OK, "create", path, "--id", upload_id, "--wait")
        self.assertEqual(done.out[:32], upload_id)
        (result,) = json.loads(self.run_cli(OK, "show", upload_id, "-o", "json").out)["results"]
        self.assertEqual(int(result["total"]), expected)

        # Another file is not mixed with it.
        self.assertIn("has 5 bytes", self.run_cli(USAGE, "create", self.file("b", b"a;b 1"), "--id", upload_id).err)

    def test_many_files_are_sent_side_by_side(self):
        paths = [self.file("many-%d" % i, b"main;f%d 1" % i) for i in range(9)]
        paths.insert(3, self.file("many-bad", b"\0\0"))
        for command in (["upload"], ["uploads", "create", "--wait", "--time", "now"]):
            for jobs in ("1", "16"):
                service = "many-%s-%s" % (command[0], jobs)
                done = hearth(*command, *paths, "/none/such", "-l", "service_name=" + service, "-j", jobs, env={"HEARTH_URL": self.url})
                self.assertEqual(done.code, FAILED if command[0] == "uploads" else USAGE, done.err)
                summary = done.err.split("11 files: ")[1]
                self.assertEqual(summary, "9 sent, 2 failed\nfailed: %s\nfailed: /none/such\n" % paths[3])
                rows = json.loads(hearth("profiles", "list", service, "-o", "json", env={"HEARTH_URL": self.url}).out)["profiles"]
                self.assertEqual(len(rows), 9)
        self.assertIn("--jobs must be 1 to 16", hearth("upload", *paths, "-j", "17", env={"HEARTH_URL": self.url}).err)

    def test_a_call_that_lasts_is_shown_on_a_terminal_until_it_ends(self):
        ours, theirs = pty.openpty()
        self.server.process.send_signal(signal.SIGSTOP)
        try:
            process = subprocess.Popen([HEARTH, "query", "labels"], stdout=subprocess.PIPE, stderr=theirs, text=True,
                                       env=server_environment({"HEARTH_URL": self.url, "TERM": "xterm"}))
            piped = subprocess.Popen([HEARTH, "query", "labels"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                     env=server_environment({"HEARTH_URL": self.url, "TERM": "xterm"}))
            said = os.read(ours, 1000)
        finally:
            self.server.process.send_signal(signal.SIGCONT)
        self.assertRegex(said.decode(), r"^\r\x1b\[Kwaiting for %s, \d+ s$" % self.url)
        process.communicate(timeout=60)
        self.assertTrue(os.read(ours, 1000).decode().startswith("\r\x1b[K"))
        self.assertNotIn("waiting", piped.communicate(timeout=60)[1])
        os.close(ours)
        os.close(theirs)

    def test_a_server_that_hesitates_is_waited_for(self):
        server = Server()
        try:
            text, expected = collapsed(300_000)
            url = "http://127.0.0.1:%d" % server.port
            process = subprocess.Popen(
                [HEARTH, "uploads", "create", self.file("again.txt", text), "--time", "now", "--wait", "-o", "json"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=server_environment({"HEARTH_URL": url}),
            )
            process.stderr.readline()
            server.process.send_signal(signal.SIGSTOP)
            time.sleep(1)
            server.process.send_signal(signal.SIGCONT)
            out, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, OK, err)
            self.assertEqual([int(result["total"]) for result in json.loads(out)["results"]], [expected])
        finally:
            server.stop()

    def test_mistakes_are_usage_errors(self):
        for arguments in (["create"], ["show"], ["delete"], ["download", "x"], ["create", "/nowhere"], ["create", "/dev/null"],
                          ["list", "--wait"], ["create", "a", "b", "--id", "c"]):
            self.run_cli(USAGE, *arguments)
        self.assertFalse(os.path.exists("x"))


if __name__ == "__main__":
    unittest.main()
