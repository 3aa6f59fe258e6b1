"""hearth.v1.AdminService/RecentQueries: what was asked, by whom, how long it took; of the caller's tenant only."""

import json
import unittest

from server import now_ms
from test_access import AccessServer, bearer, profile

RECENT = "/hearth.v1.AdminService/RecentQueries"
KEPT = 100


class RecentQueries(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hearth = AccessServer("--builder=false")
        cls.addClassCleanup(cls.hearth.stop)
        for tenant in ("red", "blue"):
            made = cls.hearth.token((tenant, "admin"), name=tenant)
            setattr(cls, tenant, made["token"])
            setattr(cls, tenant + "_id", made["id"])

    def ask(self, token, message=None, path=RECENT):
        return self.hearth.post(path, message or {}, bearer(token))[::2]

    def recent(self, token, **message):
        status, answer = self.ask(token, message)
        self.assertEqual(status, 200, answer)
        return answer.get("queries", [])

    def series(self, token, selector, **more):
        message = {"profileTypeID": "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "labelSelector": selector,
                   "start": now_ms() - 3_600_000, "end": now_ms(), "step": 60, **more}
        return self.ask(token, message, "/querier.v1.QuerierService/SelectSeries")

    def test_a_query_is_listed_with_its_request_and_its_end(self):
        self.hearth.server.http("POST", "/ingest?name=shop", profile(), bearer(self.red))
        self.assertEqual(self.series(self.red, '{service_name="shop"}')[0], 200)
        self.assertEqual(self.series(self.red, "{")[0], 400)
        refused, answered = self.recent(self.red)[:2]
        self.assertEqual((refused["code"], answered["code"]), ("invalid_argument", "ok"))
        self.assertIn("selector", refused["message"])
        self.assertNotIn("message", answered)
        self.assertEqual(json.loads(answered["request"])["labelSelector"], '{service_name="shop"}')
        self.assertEqual(answered["subject"], "token:" + self.red_id)
        self.assertEqual(answered["method"], "/querier.v1.QuerierService/SelectSeries")
        self.assertLess(abs(int(answered["receivedMs"]) - now_ms()), 60_000)
        self.assertGreaterEqual(int(answered["tookUs"]), int(answered.get("waitedUs", 0)))

    def test_a_plain_route_is_listed_with_its_arguments(self):
        arguments = "query=process_cpu:cpu:nanoseconds:cpu:nanoseconds%7B%7D&from=now-1h"
        self.hearth.server.http("GET", "/pyroscope/render?" + arguments, b"", bearer(self.red))
        found = self.recent(self.red)[0]
        self.assertEqual((found["method"], found["request"]), ("/pyroscope/render", arguments))

    def test_tenants_see_only_their_own_queries(self):
        self.series(self.red, '{service_name="of-red"}')
        self.series(self.blue, '{service_name="of-blue"}')
        self.assertNotIn("of-red", str(self.recent(self.blue)))
        self.assertIn("of-blue", str(self.recent(self.blue)))

    def test_the_number_of_kept_queries_and_their_texts_are_limited(self):
        self.series(self.red, '{service_name="%s"}' % ("\u00e4" * 5000))
        found = self.recent(self.red)[0]
        self.assertLessEqual(len(found["request"].encode()), 1024 + 3)
        for i in range(KEPT + 5):
            self.series(self.red, '{service_name="number-%d"}' % i)
        found = self.recent(self.red)
        self.assertEqual(len(found), KEPT)
        self.assertIn("number-%d" % (KEPT + 4), found[0]["request"])

    def test_quick_queries_are_not_slow(self):
        self.series(self.red, "{}")
        self.assertTrue(all(int(query["tookUs"]) >= 1_000_000 for query in self.recent(self.red, slowOnly=True)))

    def test_the_list_is_for_administrators_of_the_whole_tenant(self):
        viewer = self.hearth.token(("red", "viewer"))["token"]
        narrowed = self.hearth.token(("red", "admin", '{service_name="shop"}'))["token"]
        for token in (viewer, narrowed):
            self.assertEqual(self.ask(token)[0], 403)


if __name__ == "__main__":
    unittest.main()
