"""Uploads while servers and the database are lost: each file is parsed once, by whichever server is left."""

import random
import time
import unittest

from server import PROFILES, Cluster, Server, Session, eventually, sql
from test_jfr import CPU, OURS, RECORDING
from test_uploads import Client, collapsed, sha256, total

# The lease of a killed server ends soon. A batch of a killed server that waits for a lock ends with its connection; one of
# prepared statements would be stored when it gets the lock.
OPTIONS = ("--upload-lease", "3s", "--commit-prepared-rows", "0")


class Crashes(unittest.TestCase):
    """Two servers, or one after another, over a PostgreSQL that lives on."""

    def setUp(self):
        self.cluster = Cluster()
        self.url = self.cluster.url()
        self.server = Server(*OPTIONS, database_url=self.url)
        self.client = Client(self.server)

    def tearDown(self):
        self.server.stop()
        self.cluster.stop()

    def sql(self, text):
        return sql(self.url, text)

    def hold_commits(self):
        """A session in which nobody can store profiles until it ends."""
        session = Session(self.url)
        session.run("BEGIN; LOCK TABLE hearth_data.profile, hearth_data.profile_late IN SHARE MODE")
        return session

    def wait_for(self, condition, seconds=30):
        eventually(lambda: self.sql("SELECT count(*) FROM hearth_data.profile_upload WHERE " + condition) != [["0"]],
                   seconds, what=condition)

    def restart(self):
        self.server.start()
        self.client = Client(self.server)

    def check_once(self, upload_id):
        done = self.client.ended(upload_id)
        self.assertEqual(done["state"], "UPLOAD_STATE_DONE", done)
        self.assertEqual(done["storedProfiles"], done["profiles"])
        for profile_type, expected in OURS.items():
            self.assertEqual(total(self.server, profile_type, "shop"), expected, profile_type)
        return done

    def test_kill_9_while_profiles_are_being_stored_loses_and_doubles_nothing(self):
        hold = self.hold_commits()
        upload_id = self.client.upload(RECORDING)
        self.wait_for("state = 2 AND storing_at > 0")
        self.server.kill9()
        hold.close()
        self.restart()
        done = self.check_once(upload_id)
        self.assertTrue(all(result.get("profileId") for result in done["results"]), done["results"])
        self.assertEqual(self.sql("SELECT n_lost FROM hearth_data.profile_upload"), [["1"]])

    def test_kill_9_between_the_commit_and_its_note_doubles_nothing(self):
        hold = self.hold_commits()
        upload_id = self.client.upload(RECORDING)
        self.wait_for("state = 2 AND storing_at > 0")
        row = Session(self.url)
        row.run("BEGIN; SELECT FROM hearth_data.profile_upload FOR UPDATE")
        hold.close()
        eventually(lambda: self.sql("SELECT count(*) FROM " + PROFILES) != [["0"]], what="stored profiles")
        time.sleep(0.3)
        self.server.kill9()
        row.close()
        stored = self.sql("SELECT count(*) FROM " + PROFILES)
        self.restart()
        self.check_once(upload_id)
        self.assertEqual(self.sql("SELECT count(*) FROM " + PROFILES), stored)

    def lose_while_storing(self, change):
        """An upload whose server was killed while it stored profiles, with its row changed meanwhile; its end."""
        hold = self.hold_commits()
        upload_id = self.client.upload(RECORDING)
        self.wait_for("state = 2 AND storing_at > 0")
        self.server.kill9()
        self.sql("UPDATE hearth_data.profile_upload SET " + change)
        hold.close()
        self.restart()
        return self.client.ended(upload_id)

    def test_an_upload_that_was_in_doubt_for_too_long_fails(self):
        failed = self.lose_while_storing("storing_at = storing_at - 51 * 60000")
        self.assertEqual(failed["state"], "UPLOAD_STATE_FAILED", failed)
        self.assertIn("could not be repeated within 50 minutes", failed["reason"])
        self.assertEqual(self.sql("SELECT count(*) FROM " + PROFILES), [["0"]])

    def test_a_file_that_loses_its_server_three_times_fails(self):
        failed = self.lose_while_storing("n_lost = 2")
        self.assertIn("each time when 3 servers were lost; 0 of its profiles are stored", failed["reason"])

    def test_kill_9_at_random_moments_loses_and_doubles_nothing(self):
        seed = random.randrange(10**6)
        rng = random.Random(seed)
        text, expected = collapsed(200_000)
        upload_id = self.client.upload(text)
        for _ in range(2):
            self.wait_for("state >= 2")
            time.sleep(rng.random() * 0.6)
            self.server.kill9()
            self.restart()
        done = self.client.ended(upload_id)
        with self.subTest(seed=seed):
            self.assertEqual(done["state"], "UPLOAD_STATE_DONE", done)
            self.assertEqual(total(self.server, done["results"][0]["profileType"], "shop"), expected)

    def test_an_interrupted_upload_continues_on_the_next_server(self):
        text, expected = collapsed(9000)
        upload = self.client.create(text)
        for part in (0, 1):
            self.client.put(upload, text, part)
        self.server.kill9()
        self.restart()
        missing = self.client.get(upload["uploadId"])["missingParts"]
        self.assertEqual(missing, list(range(2, upload["parts"])))
        for part in missing:
            self.client.put(upload, text, part)
        self.client.ask("FinishUpload", uploadId=upload["uploadId"], sha256=sha256(text))
        self.assertEqual(int(self.client.ended(upload["uploadId"])["results"][0]["total"]), expected)

    def test_an_orderly_stop_gives_the_upload_to_another_server_at_once(self):
        hold = self.hold_commits()
        upload_id = self.client.upload(RECORDING)
        self.wait_for("state = 2 AND storing_at > 0")
        self.server.options.append("--shutdown-timeout=1s")
        other = Server(*OPTIONS, database_url=self.url)
        try:
            started = time.monotonic()
            self.server.terminate()
            hold.close()
            Client(other).ended(upload_id)
            self.assertLess(time.monotonic() - started, 25)
            self.restart()
            self.check_once(upload_id)
            self.assertEqual(self.sql("SELECT n_lost FROM hearth_data.profile_upload"), [["0"]])
        finally:
            other.stop()

    def test_an_upload_that_is_deleted_while_it_is_parsed_makes_way(self):
        hold = self.hold_commits()
        upload_id = self.client.upload(RECORDING)
        self.wait_for("state = 2 AND storing_at > 0")
        self.client.ask("DeleteUpload", uploadId=upload_id)
        next_id = self.client.upload(collapsed(9)[0], "next")
        self.wait_for("state = 2")  # the parser has given up the push of the deleted one
        hold.close()
        self.assertEqual(self.client.ended(next_id)["state"], "UPLOAD_STATE_DONE")
        self.assertNotIn("could not be written", self.server.log())

    def test_two_servers_share_the_queue(self):
        other = Server(*OPTIONS, database_url=self.url)
        try:
            hold = self.hold_commits()
            ids = [self.client.upload(RECORDING, "shop-%d" % i) for i in range(2)]
            eventually(lambda: self.sql("SELECT count(*) FROM hearth_data.profile_upload WHERE state = 2") == [["2"]])
            hold.close()
            for i, upload_id in enumerate(ids):
                self.assertEqual(self.client.ended(upload_id)["state"], "UPLOAD_STATE_DONE")
                self.assertEqual(total(self.server, CPU, "shop-%d" % i), OURS[CPU])
            for server in (self.server, other):
                self.assertEqual(server.log().count('msg="upload was parsed"'), 1)
        finally:
            other.stop()

    def test_a_server_without_parsers_leaves_the_queue_to_others(self):
        self.server.stop()
        self.server = Server(*OPTIONS, "--upload-parsers", "0", database_url=self.url)
        self.client = Client(self.server)
        upload_id = self.client.upload(collapsed(9)[0])
        time.sleep(2)
        self.assertEqual(self.client.get(upload_id)["state"], "UPLOAD_STATE_QUEUED")
        other = Server(*OPTIONS, database_url=self.url)
        try:
            self.assertEqual(self.client.ended(upload_id)["state"], "UPLOAD_STATE_DONE")
        finally:
            other.stop()

    def test_uploads_survive_a_database_that_returns_within_the_lease_or_later(self):
        hold = self.hold_commits()
        upload_id = self.client.upload(RECORDING)
        self.wait_for("state = 2 AND storing_at > 0")
        self.cluster.stop()
        hold.close()
        time.sleep(2)
        self.cluster.start()
        eventually(lambda: self.server.http("GET", "/ready")[0] == 200, 60)
        self.check_once(upload_id)


if __name__ == "__main__":
    unittest.main()
