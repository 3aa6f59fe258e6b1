"""cmake --install puts programs, manual pages, documents and the systemd unit below a prefix, and they work there."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from server import HEARTHD, ROOT

BUILD = pathlib.Path(HEARTHD).resolve().parents[1]


def output_of(*command):
    """Standard output of a command that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, "%s: %s%s" % (command, done.stdout, done.stderr)
    return done.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.prefix = pathlib.Path(directory.name)
        output_of("cmake", "--install", str(BUILD), "--prefix", str(cls.prefix))
        cls.unit = cls.prefix / "lib/systemd/system/hearthd.service"

    def test_every_file_is_installed_in_its_directory(self):
        for name in ("bin/hearthd", "bin/hearth", "share/man/man1/hearthd.1", "share/man/man1/hearth.1",
                     "lib/systemd/system/hearthd.service", "lib/systemd/system/hearthd.socket", "lib/sysusers.d/hearth.conf", "share/doc/hearth/README.md",
                     "share/doc/hearth/LICENSE", "share/doc/hearth/docs/README.md",
                     "share/bash-completion/completions/hearth", "share/fish/vendor_completions.d/hearth.fish"):
            self.assertTrue((self.prefix / name).is_file(), name)

    def test_documents_are_installed_with_the_files_that_they_name(self):
        for folder in ("docs", "grammar", "proto", "sql"):
            for path in (ROOT / folder).rglob("*"):
                if path.is_file() and path.name != "CMakeLists.txt":
                    name = path.relative_to(ROOT)
                    self.assertTrue((self.prefix / "share/doc/hearth" / name).is_file(), name)

    def test_the_installed_programs_start(self):
        self.assertRegex(output_of(str(self.prefix / "bin/hearthd"), "--version"), r"^hearthd \d+\.\d+")
        self.assertRegex(output_of(str(self.prefix / "bin/hearth"), "version"), r"^hearth \d+\.\d+")

    def test_the_unit_starts_the_installed_program(self):
        self.assertEqual(re.findall(r"^ExecStart=(.*)$", self.unit.read_text(), re.M), [str(self.prefix / "bin/hearthd")])

    def test_systemd_accepts_the_unit(self):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("systemd-analyze is not installed")
        # The manual page is below a prefix that man does not search.
        output_of("systemd-analyze", "verify", "--man=no", str(self.unit))

    def test_the_unit_exposes_little(self):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("systemd-analyze is not installed: the exposure of the unit was not measured")
        told = output_of("systemd-analyze", "security", "--offline=true", "--no-pager", str(self.unit))
        score = re.search(r"Overall exposure level for hearthd\.service: (\d+\.\d+)", told)
        self.assertIsNotNone(score, told)
        self.assertLess(float(score.group(1)), 2.0, told)

    def test_manual_pages_list_the_options(self):
        self.assertIn(r"\-\-database\-url", (self.prefix / "share/man/man1/hearthd.1").read_text())
        self.assertIn(r"\-\-tenant", (self.prefix / "share/man/man1/hearth.1").read_text())


if __name__ == "__main__":
    unittest.main()
