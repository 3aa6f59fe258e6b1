"""The settings of the embedded cluster, and what `hearth admin doctor` says of it."""

import json
import os
import pathlib
import re
import subprocess
import unittest

from server import HEARTH, Cluster, Server, eventually, server_environment


class Embedded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(template=False)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setting(self, name):
        return self.server.sql("SELECT current_setting('%s')" % name)[0][0]

    def bytes_of(self, name):
        return int(self.server.sql("SELECT pg_size_bytes(current_setting('%s'))" % name)[0][0])

    def doctor(self):
        """({name: check}, exit code)"""
        done = subprocess.run(
            [HEARTH, "admin", "doctor", "-o", "json", "--url", "http://127.0.0.1:%d" % self.server.port],
            capture_output=True, text=True, env=server_environment(),
        )
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return {check["name"]: check for check in json.loads(done.stdout)["checks"]}, done.returncode

    def test_an_empty_directory_becomes_a_cluster_by_the_newest_installed_initdb(self):
        with open(self.server.log_path) as log:
            self.assertIn('msg="creating a cluster"', log.read())
        with open(os.path.join(self.server.directory, "data/postgres.log")) as log:
            self.assertIn("The files belonging to this database system will be owned by", log.read())
        with open(os.path.join(self.server.directory, "data/postgres/PG_VERSION")) as version:
            self.assertEqual(version.read().strip(), pathlib.Path(Cluster.program("initdb")).parts[-3])
        self.assertEqual(
            self.server.sql("SELECT pg_encoding_to_char(encoding), datcollate, datctype, pg_get_userbyid(datdba)"
                            " FROM pg_database WHERE datname = 'postgres'"),
            [["UTF8", "C.UTF-8", "C.UTF-8", "hearth"]],
        )

    def test_settings_fit_the_machine(self):
        with open("/proc/meminfo") as info:
            memory = int(info.readline().split()[1]) * 1024
        self.assertGreaterEqual(self.bytes_of("shared_buffers"), 128 << 20)
        self.assertLessEqual(self.bytes_of("shared_buffers"), max(memory // 8, 128 << 20))
        self.assertLessEqual(self.bytes_of("effective_cache_size"), max(memory // 2, 256 << 20))
        self.assertGreaterEqual(self.bytes_of("work_mem"), 4 << 20)
        for name, value in (
            ("fsync", "on"), ("synchronous_commit", "on"), ("full_page_writes", "on"), ("jit", "off"),
            ("checkpoint_timeout", "15min"), ("effective_io_concurrency", "64"), ("huge_pages", "try"),
            ("data_checksums", "on"),
        ):
            self.assertEqual(self.setting(name), value, name)

    def test_a_file_of_the_user_wins_and_is_kept(self):
        path = os.path.join(self.server.directory, "data/postgres/local.conf")
        with open(path, "w") as out:
            out.write("max_connections = 77\nrandom_page_cost = 3\n")
        os.chmod(path, 0o644)
        written = os.path.join(self.server.directory, "data/postgres/hearth.conf")
        with open(written, "a") as out:
            out.write("max_connections = 33\n")
        self.assertEqual(self.server.terminate(), 0)
        self.server.start()
        self.assertEqual(self.setting("max_connections"), "77")
        self.assertEqual(self.setting("random_page_cost"), "3")
        with open(written) as text:
            self.assertNotIn("= 33", text.read())
        os.unlink(path)
        self.assertEqual(self.server.terminate(), 0)
        self.server.start()
        self.assertEqual(self.setting("max_connections"), "100")

    def test_a_mistake_in_the_file_of_the_user_is_logged_with_its_line_until_it_is_mended(self):
        path = os.path.join(self.server.directory, "data/postgres/local.conf")
        with open(path, "w") as out:
            out.write("jit = off\nmax_connectons = 77\n")
        os.chmod(path, 0o644)
        self.assertEqual(self.server.terminate(), 0)
        self.server.start(wait=False)
        message = eventually(lambda: re.search('msg="the embedded PostgreSQL ended; restarting it" .* error="(.*)" log=',
                                               self.server.log()))
        self.assertEqual(message.group(1).replace("\\", "").replace(path, "FILE"), 'unrecognized configuration parameter '
                         '"max_connectons" in file "FILE" line 2; configuration file "FILE" contains errors')
        os.unlink(path)
        self.server.wait_ready()

    def test_the_doctor_finds_no_fault_in_a_new_cluster(self):
        checks, code = self.doctor()
        self.assertEqual({n: c for n, c in checks.items() if c["verdict"] == "VERDICT_WRONG"}, {})
        self.assertEqual(code, 0)
        for name in ("fsync", "shared_buffers", "jit", "wal_compression", "rights: create tables", "partitions", "pooler"):
            self.assertEqual(checks[name]["verdict"], "VERDICT_OK", checks[name])

    def test_the_doctor_finds_harmful_settings(self):
        self.server.sql("ALTER ROLE hearth SET default_transaction_isolation = 'serializable'")
        self.server.sql("ALTER ROLE hearth SET jit = on")
        try:
            self.assertEqual(self.server.terminate(), 0)
            self.server.start()
            checks, code = self.doctor()
            self.assertEqual(code, 1)
            self.assertEqual(checks["default_transaction_isolation"]["verdict"], "VERDICT_WRONG")
            self.assertEqual(checks["jit"]["verdict"], "VERDICT_ADVICE")
            self.assertIn("jit = off", checks["jit"]["advice"])
        finally:
            self.server.sql("ALTER ROLE hearth RESET ALL")
            self.assertEqual(self.server.terminate(), 0)  # its sessions keep the settings that they began with
            self.server.start()


if __name__ == "__main__":
    unittest.main()
