"""How many samples stand behind a frame: told on every flame graph whose profiles count them, asked for when somebody looks."""

import unittest

from browser import PageTest
from pprof import Profile
from server import now_ms

MINUTE = 60_000
SHOP = '{service_name="shop"}'
SPAN = "00000000000000a1"
ASKED = r"return performance.getEntriesByType('resource').filter(({ name }) => /QueryService\/(?!Lines)/.test(name)).length"
# Seconds of an hour and a half ago, and of half an hour ago; each is three samples.
BEFORE = {"main;handle;json.encode": 2, "main;handle;db.query": 6}
NOW = {"main;handle;json.encode": 3, "main;handle;db.query": 4, "main;json.encode;json.encode": 1}


class Samples(PageTest):
    @classmethod
    def fill(cls, server):
        cls.now = now_ms()
        for minutes, stacks, labels in ((90, BEFORE, {}), (30, NOW, {"span_id": SPAN, "trace_id": "%032x" % 0xb2})):
            made = Profile([("samples", "count"), ("wall", "nanoseconds")], time_ns=(cls.now - minutes * MINUTE) * 1_000_000)
            for stack, seconds in stacks.items():
                made.add(stack.split(";"), [3 * seconds, seconds * 1_000_000_000], labels)
            server.push(made.encode(), {"__name__": "wall", "service_name": "shop"})
        # Nothing counts these.
        made = Profile([("cpu", "nanoseconds")], time_ns=(cls.now - 30 * MINUTE) * 1_000_000)
        made.add(["main"], [1_000_000_000])
        server.push(made.encode(), {"__name__": "process_cpu", "service_name": "shop"})
        types = server.connect("querier.v1.QuerierService/ProfileTypes", {"start": str(cls.now - 120 * MINUTE), "end": str(cls.now)})["profileTypes"]
        cls.types = {each["sampleType"]: each["ID"] for each in types}

    def look(self, page, **params):
        self.open(page, **{"q": SHOP, "type": self.types["wall"], **params})
        self.browser.find(".flame-canvas")
        self.browser.settle()
        self.asked = self.browser.run(ASKED)

    def details(self):
        return [line.text for line in self.driver.find_elements("css selector", ".flame-detail")]

    def says(self, graph, *words):
        said = lambda: len(self.details()) > graph and all(word in self.details()[graph] for word in words)
        self.browser.until(said, "%r in %r" % (words, self.details()))

    def asked_once_more(self):
        self.browser.settle()
        self.assertEqual(self.browser.run(ASKED), self.asked + 1, "one question counts the samples of all frames")

    def test_both_graphs_of_a_comparison_show_the_samples_of_their_side(self):
        self.look("/compare")
        self.assertNotIn("samples", " ".join(self.details()))
        self.point_at(0, 2)
        self.says(0, "handle", "24 samples")
        self.says(1, "handle", "21 samples")
        self.point_at(1, 1)
        self.says(1, "main", "24 samples")
        self.asked_once_more()

    def test_a_frame_of_a_diff_shows_the_samples_of_both_sides(self):
        self.look("/diff")
        self.point_at(0, 1)
        self.says(0, "main", "24 → 24 samples")
        self.point_at(0, 2)
        self.says(0, "handle", "24 → 21 samples", "handle.c:1")
        tooltip = lambda: self.browser.find(".flame-tooltip").text
        self.browser.until(lambda: "24 → 21 samples" in tooltip(), "the samples in the tooltip")
        self.asked_once_more()

    def test_callers_and_callees_show_the_samples_that_contain_the_function(self):
        self.look("/profile", view="sandwich", function="handle")
        self.point_at(0, 0)
        self.says(0, "handle", "21 samples")
        self.point_at(0, 1)
        self.says(0, "main", "21 samples")
        self.point_at(1, 1)
        self.says(1, "db.query", "12 samples")
        self.asked_once_more()
        # Of a recursive call, only the outermost one counts.
        self.look("/function", function="json.encode")
        self.point_at(1, 0)
        self.says(1, "json.encode", "12 samples")

    def test_one_profile_and_one_span_show_their_own_samples(self):
        profiles = self.server.connect("hearth.v1.ProfileService/ListProfiles",
                                    {"filter": {"labelSelector": SHOP, "start": str(self.now - 120 * MINUTE), "end": str(self.now)}})["profiles"]
        before = next(each["id"] for each in profiles if int(each["timeNs"]) < (self.now - 60 * MINUTE) * 1_000_000)
        self.look("/profiles", id=before)
        self.point_at(0, 2)
        self.says(0, "handle", "24 samples", "handle.c:1")
        self.asked_once_more()
        self.look("/traces", id=SPAN)
        self.point_at(0, 1)
        self.says(0, "main", "24 samples")
        self.point_at(0, 2)
        self.says(0, "handle", "21 samples")

    def test_samples_are_not_queried_where_no_type_counts_them(self):
        for page, more in (("/compare", {}), ("/diff", {}), ("/profile", {"view": "sandwich", "function": "main"})):
            self.look(page, type=self.types["cpu"], **more)
            graph = 1 if page == "/compare" else 0
            self.point_at(graph, 1 if page != "/profile" else 0)
            self.says(graph, "main")
            self.browser.settle()
            self.assertNotIn("samples", " ".join(self.details()))
            self.assertEqual(self.browser.run(ASKED), self.asked, page)


if __name__ == "__main__":
    unittest.main()
