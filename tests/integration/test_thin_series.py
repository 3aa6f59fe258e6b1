"""Many series with few profiles each."""

import base64
import unittest

from pprof import Profile
from questions import CPU, QUERIER
from server import PUSH, Server, now_ms, unless_sanitized

SERIES = 2_000


class ThinSeries(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--builder=false", "--max-query-memory-bytes", "4m")
        cls.addClassCleanup(cls.server.stop)
        cls.at = now_ms() - 60_000
        body = Profile([("cpu", "nanoseconds")], time_ns=cls.at * 1_000_000)
        body.add(["main"], [10_000_000])
        sample = {"rawProfile": base64.b64encode(body.encode()).decode()}
        for first in range(0, SERIES, 500):
            cls.server.connect(PUSH, {"series": [
                {"labels": [{"name": "__name__", "value": "process_cpu"}, {"name": "service_name", "value": "thin"},
                            {"name": "pod", "value": "pod-%05d" % i}], "samples": [sample]}
                for i in range(first, first + 500)]})

    def select(self, **more):
        return self.server.connect(QUERIER + "SelectSeries", {
            "profileTypeID": CPU, "labelSelector": '{service_name="thin"}', "start": self.at - 3_600_000, "end": self.at + 60_000,
            "groupBy": ["pod"], "step": 15, **more})["series"]

    def test_a_point_of_a_thin_series_does_not_need_a_page(self):
        series = self.select()
        self.assertEqual(len(series), SERIES)
        self.assertEqual({len(one["points"]) for one in series}, {1})
        self.assertEqual({one["points"][0]["value"] for one in series}, {10_000_000})
        self.assertEqual(len({one["points"][0]["timestamp"] for one in series}), 1)

    def test_equal_series_are_in_the_order_of_their_labels(self):
        pods = [one["labels"][0]["value"] for one in self.select()]
        self.assertTrue(pods == ["pod-%05d" % i for i in range(SERIES)], pods[:10])

    def test_series_are_sorted_by_sum_and_then_by_labels(self):
        at = self.at - 7_200_000
        for pod, value in (("d", 3), ("a", 1), ("c", 3), ("e", 2), ("b", 3)):
            body = Profile([("cpu", "nanoseconds")], time_ns=at * 1_000_000)
            body.add(["main"], [value])
            self.server.connect(PUSH, {"series": [
                {"labels": [{"name": "__name__", "value": "process_cpu"}, {"name": "service_name", "value": "ranked"},
                            {"name": "pod", "value": pod}],
                 "samples": [{"rawProfile": base64.b64encode(body.encode()).decode()}]}]})
        ranked = {"labelSelector": '{service_name="ranked"}', "start": at - 60_000, "end": at + 60_000}
        series = self.select(**ranked)
        self.assertEqual([(one["labels"][0]["value"], one["points"][0]["value"]) for one in series],
                         [("b", 3), ("c", 3), ("d", 3), ("e", 2), ("a", 1)])
        limited = self.select(**ranked, limit="4")
        self.assertEqual([one["labels"][0]["value"] for one in limited], ["b", "c", "d", "e"])

    @unless_sanitized("arenas take a block for each allocation: 4 MiB do not suffice")
    def test_protobuf_and_json_answers_are_equal(self):
        sets = self.server.connect(QUERIER + "Series", {"start": self.at - 1000, "end": self.at + 1000})["labelsSet"]
        packed = self.server.series(self.at - 1000, self.at + 1000)
        plain = [sorted((pair["name"], pair["value"]) for pair in one["labels"]) for one in sets]
        self.assertEqual(len(packed), SERIES)
        self.assertTrue(plain == [sorted(dict(one).items()) for one in packed])  # a diff of both would take minutes


if __name__ == "__main__":
    unittest.main()
