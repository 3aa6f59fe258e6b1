"""What operators do with a database that is distributed over nodes of Citus: nodes fail and are added, sizes are looked at.

Runs only where HEARTH_TEST_CITUS names the binaries of a PostgreSQL with Citus (docs/testing.md).
"""

import time
import unittest

import schema_dump
from citus_nodes import CITUS, WHY_NOT, Nodes, scale_out
from pprof import Profile
from questions import CPU, QUERIER
from server import Server, eventually, now_ms, sql

MINUTE = 60_000


def cpu_of(at_ms, value):
    return Profile([("cpu", "nanoseconds")], time_ns=at_ms * 1_000_000).add(["main"], [value]).encode()


def total(server, service, start, end):
    cpu = {"profileTypeID": CPU, "labelSelector": '{service_name="%s"}' % service, "start": str(start), "end": str(end)}
    answer = server.connect(QUERIER + "SelectMergeStacktraces", cpu)
    return int(answer.get("flamegraph", {}).get("total", 0))


@unittest.skipUnless(CITUS, WHY_NOT)
class CitusOperations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = Nodes()
        Server(database_url=cls.nodes.url()).stop()
        code, out, err = scale_out(cls.nodes.url())
        assert code == 0, out + err

    @classmethod
    def tearDownClass(cls):
        cls.nodes.stop()

    def shard_row(self, service):
        """The shard and the worker of the only row of a service in `profile`."""
        id = self.nodes.sql("SELECT service_id FROM hearth_data.service WHERE name = '%s'" % service)[0][0]
        shard = self.nodes.sql("SELECT tableoid::regclass::text FROM hearth_data.profile WHERE service_id = " + id)[0][0]
        place = "SELECT nodeport FROM citus_shards WHERE shardid = get_shard_id_for_distribution_column('hearth_data.profile', %s) LIMIT 1"
        port = int(self.nodes.sql(place % id)[0][0])
        return id, shard, next(worker for worker in self.nodes.workers if worker.port == port)

    def test_roll_ups_wait_for_a_commit_that_is_only_prepared_on_a_worker(self):
        at = now_ms() - 150 * MINUTE
        labels = {"__name__": "process_cpu", "service_name": "prepared"}
        server = Server(*schema_dump.QUICK, "--builder=false", database_url=self.nodes.url())
        server.push(cpu_of(at, 1), labels)
        server.stop()

        # As COMMIT PREPARED leaves it that did not reach the worker. No coordinator has the number 99, so none ends it.
        id, shard, worker = self.shard_row("prepared")
        sql(worker.url(), "SET citus.enable_manual_changes_to_shards = on; BEGIN; INSERT INTO %s SELECT * FROM %s WHERE"
            " service_id = %s; PREPARE TRANSACTION 'citus_99_1_1_1'" % (shard, shard, id))
        server = Server(*schema_dump.QUICK, database_url=self.nodes.url())
        raised = "SELECT watermark FROM hearth_data.roll_state WHERE service_id = %s AND watermark > %d000000" % (id, at)
        eventually(lambda: self.nodes.sql(raised), 30, what="a new watermark")
        time.sleep(3)
        built = "SELECT count(*) FROM hearth_data.roll_10m WHERE service_id = " + id
        self.assertEqual(self.nodes.sql(built), [["0"]])

        sql(worker.url(), "COMMIT PREPARED 'citus_99_1_1_1'")
        eventually(lambda: self.nodes.sql(built) != [["0"]], 30, what="roll-ups")
        start = at // (10 * MINUTE) * 10 * MINUTE
        self.assertEqual(total(server, "prepared", start, start + 10 * MINUTE - 1), 2)
        server.stop()


if __name__ == "__main__":
    unittest.main()
