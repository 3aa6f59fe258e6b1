"""A server that does a little of everything fills its tables, and test_placement.py reads the statements that it recorded."""

import unittest

import schema_dump
from schema_dump import HOUR
from server import Cluster, now_ms

# Marks are removed once all rules have counted their bucket; segments of tasks are those of imported trace tasks.
MAY_BE_EMPTY = {"rule_mark", "task_segment"}


class AllTables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.end = now_ms() // HOUR * HOUR
        cls.server = schema_dump.fill(cls.cluster, cls.end - 8 * HOUR, cls.end)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.cluster.stop()

    def test_the_dump_of_a_schema_has_rows_of_its_tables(self):
        self.assertLessEqual(set(schema_dump.empty_tables(self.cluster)), MAY_BE_EMPTY)

    def test_queries_of_the_dump_have_answers(self):
        for method, request in schema_dump.questions(self.end - 8 * HOUR, self.end - 1):
            self.assertTrue(self.server.connect(method, request), method)


if __name__ == "__main__":
    unittest.main()
