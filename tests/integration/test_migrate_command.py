"""`hearthd migrate`, `hearthd scale-out` and `hearthd check-config`: what operators run before they start a server."""

import subprocess
import threading
import time
import unittest

from server import HEARTHD, Cluster, Session, server_environment, sql


def hearthd(*arguments):
    done = subprocess.run(
        [HEARTHD, *arguments], env=server_environment(), capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout, done.stderr


class Migrate(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.stop)
        sql(self.cluster.url(), "CREATE DATABASE empty TEMPLATE template0")
        self.url = self.cluster.url("empty")

    def n_schemas(self):
        return int(sql(self.url, "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'hearth%'")[0][0])

    def test_a_dry_run_names_what_is_missing_and_changes_nothing(self):
        code, out, _ = hearthd("migrate", "--dry-run", "--database-url", self.url)
        self.assertEqual(code, 1)
        lines = out.splitlines()
        self.assertEqual(lines[0], "missing 0001_init.sql")
        self.assertTrue(all(line.startswith("missing ") for line in lines), out)
        self.assertEqual(self.n_schemas(), 0)

        # What it named is what is applied.
        code, applied, err = hearthd("migrate", "--database-url", self.url)
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(applied, out.replace("missing ", "applied "))

        for option in ((), ("--dry-run",)):
            code, out, _ = hearthd("migrate", *option, "--database-url", self.url)
            self.assertEqual((code, out), (0, "the schema is up to date\n"))

    def test_a_newer_history_is_refused_by_name(self):
        hearthd("migrate", "--database-url", self.url)
        sql(self.url, "INSERT INTO hearth_data.migration VALUES (9999, '9999_later.sql', 'x')")
        for option in ((), ("--dry-run",)):
            code, out, err = hearthd("migrate", *option, "--database-url", self.url)
            self.assertEqual((code, out), (1, ""))
            self.assertIn('migration "9999_later.sql", which this hearthd does not know', err)

    def test_scale_out_names_its_missing_conditions_and_changes_nothing(self):
        for option in ((), ("--dry-run",)):
            code, out, err = hearthd("scale-out", *option, "--database-url", self.url)
            self.assertEqual((code, out), (1, ""))
            self.assertEqual(err, "hearthd: the schema is not that of this hearthd; run hearthd migrate first\n")
        self.assertEqual(self.n_schemas(), 0)
        hearthd("migrate", "--database-url", self.url)
        code, out, err = hearthd("scale-out", "--database-url", self.url)
        self.assertEqual((code, out), (1, ""))
        self.assertIn("the database lacks the extension citus", err)
        code, _, err = hearthd("scale-out")
        self.assertEqual((code, err), (2, "hearthd: scale-out needs --database-url; the embedded database is one machine\n"))

    def test_a_table_that_is_in_use_is_not_blocked_by_the_wait_for_it(self):
        """As beside an older hearthd: a long query on the table, and short ones that come after it."""
        hearthd("migrate", "--database-url", self.url)
        sql(self.url, "ALTER TABLE hearth_data.hour_totals DROP totals CASCADE; DELETE FROM hearth_data.migration WHERE number >= 25")
        reader = Session(self.url)
        self.addCleanup(reader.close)
        reader.run("BEGIN; SELECT count(*) FROM hearth_data.hour_totals")
        done = []
        migration = threading.Thread(target=lambda: done.append(hearthd("migrate", "--database-url", self.url)))
        migration.start()
        waits, end = [], time.monotonic() + 4
        while time.monotonic() < end:
            began = time.monotonic()
            sql(self.url + " options='-c statement_timeout=3s'", "SELECT count(*) FROM hearth_data.hour_totals")
            waits.append(time.monotonic() - began)
            time.sleep(0.01)
        self.assertEqual(done, [], "it did not wait for the query")
        reader.run("COMMIT")
        migration.join()
        self.assertEqual(done, [(0, "applied 0025_totals_of_hours.sql\napplied 0026_totals_of_several_series.sql\n", "")])
        # Some of them met the wait, and none waited for the long query.
        self.assertGreater(max(waits), 0.2)
        self.assertLess(max(waits), 2)

    def test_without_a_database_it_names_the_command_that_migrates(self):
        code, _, err = hearthd("migrate")
        self.assertEqual(code, 2)
        self.assertIn("migrate needs --database-url", err)


class CheckConfig(unittest.TestCase):
    def test_valid_options_are_valid(self):
        self.assertEqual(hearthd("check-config"), (0, "the configuration is valid\n", ""))

    def test_options_that_the_start_would_refuse_are_refused(self):
        for options, message in (
            (("--max-samples", "many"), "max-samples"),
            (("--listen", "4040"), "not HOST:PORT"),
            (("--listen", "0.0.0.0:4040"), "can be reached from other machines"),
            (("--auth", "mtls"), "mtls needs an https listener"),
            (("--auth", "oidc"), "oidc-issuer: the way \"oidc\" needs an issuer"),
            (("--max-connections", "0"), "max-connections is 0; it must be at least 1"),
            (("--database-url", "postgresql://hearth@db:port/hearth"), "the database URL cannot be parsed"),
            (("--read-database-url", "db.example"), "the URL of the read replica cannot be parsed"),
            (("--listen", "https://127.0.0.1:0"), "tls-cert-file is needed to listen on https://"),
            (("--listen", "https://127.0.0.1:0", "--tls-cert-file", "/nonexistent.pem", "--tls-key-file", "/nonexistent.key"),
             "tls-cert-file /nonexistent.pem: No such file or directory"),
            (("--tls-cert-file", "/nonexistent.pem"), "no address of listen begins with https://"),
            (("--scrape-config", "/nonexistent.yml"), "/nonexistent.yml"),
        ):
            with self.subTest(options=options):
                code, out, err = hearthd("check-config", *options)
                self.assertEqual((code, out), (2, ""))
                self.assertIn(message, err)

    def test_an_authority_of_clients_that_is_not_used_is_a_warning(self):
        code, out, err = hearthd("check-config", "--tls-client-ca-file", "ca.pem")
        self.assertEqual((code, out), (0, "the configuration is valid\n"))
        self.assertIn("warning: tls-client-ca-file has no effect", err)


if __name__ == "__main__":
    unittest.main()
