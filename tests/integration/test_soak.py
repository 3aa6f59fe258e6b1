"""The soak runs in pieces on one database, counts what it stored, and finds a profile that is missing."""

import json
import pathlib
import subprocess
import sys
import unittest

from server import HEARTHD, ROOT, server_environment, temporary_directory


def soak(*arguments):
    return subprocess.run(
        [sys.executable, str(ROOT / "tests/soak/soak.py"), *arguments], capture_output=True, text=True,
        env=server_environment({"HEARTHD": HEARTHD}), timeout=600,
    )


class Soak(unittest.TestCase):
    def piece(self, code=0):
        done = soak("--for", "6s", "--rate", "16", "--state", str(self.state))
        self.assertEqual(done.returncode, code, done.stderr)
        header, *lines = (self.state / "checks.tsv").read_text().splitlines()
        return dict(zip(header.split("\t"), map(int, lines[-1].split("\t"))))

    def test_pieces_add_up_and_a_missing_profile_is_found(self):
        self.state = pathlib.Path(temporary_directory())
        first = self.piece()
        second = self.piece()
        self.assertGreater(first["acknowledged"], 0)
        self.assertGreater(second["acknowledged"], first["acknowledged"])
        for check in (first, second):
            self.assertEqual((check["lost"], check["doubled"], check["wrong_sums"]), (0, 0, 0))
            self.assertEqual(check["spans"], check["spans_stored"])
        self.assertEqual((self.state / "errors.txt").read_text(), "")

        report = soak("--report", str(self.state), "--svg", str(self.state / "course.svg"))
        self.assertEqual(report.returncode, 0, report.stderr)
        self.assertIn("in 2 pieces", report.stdout)
        self.assertIn("| 0, 0; 0 of ", report.stdout)
        self.assertIn("</svg>", (self.state / "course.svg").read_text())

        # One more profile in the account is a lost one; nanoseconds that differ are a wrong sum.
        account = json.loads((self.state / "account.json").read_text())
        account["entries"][0][2] += 1
        account["entries"][1][3] += 1
        (self.state / "account.json").write_text(json.dumps(account))
        third = self.piece(code=1)
        self.assertEqual((third["lost"], third["doubled"], third["wrong_sums"]), (1, 0, 1))
        self.assertEqual(soak("--report", str(self.state)).returncode, 1)


if __name__ == "__main__":
    unittest.main()
