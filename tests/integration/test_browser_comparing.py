"""Pages that compare, used by a browser: two flame graphs, the history of a function, the heatmap."""

import unittest

import browser
from browser import PageTest
from pprof import Profile
from server import now_ms
from test_browser import HOSTILE

# What browser.py needs may be missing: the tests are then skipped.
ActionChains = getattr(browser.webdriver, "ActionChains", None)
Keys = browser.Keys

MINUTE = 60_000
SECOND_NS = 1_000_000_000
SHOP = '{service_name="shop"}'
NAMES = {"main": 1, "handle": 20, "json.encode": 31, "db.query": 40, "json.escape": 52}
SPAN, TRACE = "00000000000000a1", "%032x" % 0xb2


def profile(ms, stacks, labels=None):
    made = Profile([("cpu", "nanoseconds")], time_ns=ms * 1_000_000)
    for stack, seconds in stacks:
        locations = [((name, name.split(".")[0] + ".go", NAMES[name]),) for name in reversed(stack)]
        made.samples.append((locations, [seconds * SECOND_NS], labels or {}))
    return made.encode()


class Comparing(PageTest):
    @classmethod
    def fill(cls, server):
        cls.now = now_ms()
        before = [(["main", "handle", "json.encode"], 2), (["main", "handle", "db.query"], 6)]
        after = [(["main", "handle", "json.encode"], 3), (["main", "handle", "json.encode", "json.escape"], 1),
                 (["main", "handle", "db.query"], 4)]
        cls.push(profile(cls.now - 90 * MINUTE, before), "shop")
        for minutes in (50, 30, 10):
            cls.push(profile(cls.now - minutes * MINUTE, after), "shop")
        # The one that is found in the heatmap: it took five times as long.
        cls.push(profile(cls.now - 20 * MINUTE, [(["main", "handle", "json.encode"], 40)],
                         {"span_id": SPAN, "trace_id": TRACE, "trace endpoint": "POST /pay"}), "shop", "shop-2")
        cls.push(profile(cls.now - 15 * MINUTE, [(["main", "json.encode"], 5)]), "cart")
        hostile = Profile([("cpu", "nanoseconds")], time_ns=(cls.now - MINUTE) * 1_000_000)
        for name in HOSTILE:
            hostile.add(["main", name], [10_000_000])
        cls.push(hostile.encode(), "hostile")

    @classmethod
    def push(cls, made, service, pod="shop-1"):
        cls.server.push(made, {"__name__": "process_cpu", "service_name": service, "pod": pod})

    def text(self, css):
        return self.browser.find(css).text

    def seen(self, css):
        return self.browser.driver.find_elements("css selector", css)

    # ---- a diff ----

    def test_two_values_of_a_label_are_compared_by_one_choice(self):
        self.open("/diff", q=SHOP)
        self.browser.find_text('select[aria-label="Compare two values of a label"] option', "two values of pod").click()
        self.browser.until(lambda: self.address()[1].get("label") == "pod", "the label in the address")
        asked = self.address()[1]
        self.assertEqual(asked["base"], '{service_name="shop", pod="shop-1"}')
        self.assertEqual(asked["q"], '{service_name="shop", pod="shop-2"}')
        self.assertEqual(asked["against"], "same")
        self.assertIn("changed by", self.browser.find_text(".verdict", "changed by").text)
        self.assertIn("did not", self.browser.find_text("h2", "beyond noise").text)
        # The other way round, and back to ranges.
        self.browser.find_text('select[aria-label="Baseline, pod"] option', "shop-2").click()
        self.browser.until(lambda: "shop-2" in self.address()[1].get("base", ""), "another baseline")
        self.browser.find_text('select[aria-label="Compare two values of a label"] option', "not by a label").click()
        self.browser.until(lambda: "base" not in self.address()[1], "no other baseline")
        self.assertEqual(self.address()[1]["q"], SHOP)

    # ---- two flame graphs ----

    def compared(self):
        self.browser.until(lambda: len(self.seen(".compared .flame-canvas")) == 2, "two flame graphs")
        self.browser.until(lambda: self.seen(".compared .flame-height")[1].size["height"] >= 100, "their boxes")

    def test_the_function_under_the_pointer_is_marked_on_both_sides(self):
        self.open("/compare", q=SHOP)
        self.compared()
        for graph in (0, 1):
            self.point_at(graph, 2)
            details = lambda: [line.text for line in self.seen(".flame-detail") if "handle" in line.text]
            self.browser.until(lambda: len(details()) == 2, "the frame in both detail lines")
            lines = details()
            self.assertIn("8 s, 100.00%", lines[0])
            self.assertIn("1.07 min, 100.00%", lines[1])
        self.browser.find_text(".page-tabs a", "Diff").click()
        self.browser.find(".changes")
        self.browser.find_text(".page-tabs a", "Compare").click()
        self.compared()

    def test_search_and_zoom_apply_to_both_sides(self):
        self.open("/compare", q=SHOP, search="escape")
        self.compared()
        matches = [each.text for each in self.seen(".flame-matches")]
        self.assertIn("0 frames", matches[0])
        self.assertIn("1 frame of 1 function", matches[1])
        crumbs = lambda: [each.text for each in self.seen(".flame-crumb[aria-current]")]
        self.point_at(0, 2)
        ActionChains(self.browser.driver).click().perform()
        self.browser.until(lambda: crumbs() == ["handle", "handle"], "the zoom on both sides")
        self.browser.find_text(".tools button", "Zoom together").click()
        self.point_at(1, 1)
        ActionChains(self.browser.driver).click().perform()
        self.browser.until(lambda: crumbs() == ["handle", "main"], "the zoom on one side")
        self.browser.driver.back()
        self.browser.until(lambda: crumbs() == ["handle", "handle"], "the zoom before")

    # ---- one function ----

    def test_a_function_has_a_history_with_the_profiles_behind_it(self):
        self.open("/function", q=SHOP, function="json.encode")
        self.assertEqual(self.text(".headline .figure"), "81.25%")
        self.assertIn("total 52 s, self 49 s", self.text(".headline"))
        self.browser.find(".function-history canvas")
        calls = [each.text for each in self.seen(".function-calls h2")]
        self.assertEqual(calls, ["Callers of json.encode", "Callees of json.encode"])
        self.assertIn("100.00%", self.browser.find_text(".part tr", "json.go:31").text)
        self.assertIn("40 s", self.browser.find_text(".part tr", "POST /pay").text)
        cart = self.browser.find_text(".part tr", "cart")
        self.assertIn("5 s", cart.text)
        cart.find_element("css selector", "a").click()
        self.browser.until(lambda: "total 5 s" in self.text(".headline"), "the function in the other service")
        self.assertEqual(self.address()[1]["q"], '{service_name="cart"}')

    def test_three_ways_lead_to_a_function(self):
        self.open("/profile", q=SHOP)
        self.browser.find("a[aria-label='History of json.encode']").click()
        self.browser.find_text("h1", "json.encode")
        self.browser.driver.back()
        self.browser.find(".flame-height")
        self.browser.until(lambda: self.seen(".flame-height")[0].size["height"] >= 100, "its boxes")
        self.browser.settle()  # what is above it may still move it
        self.point_at(0, 2)
        ActionChains(self.browser.driver).context_click().perform()
        self.browser.find_text(".menu button", "Show its history").click()
        self.browser.find_text("h1", "handle")
        ActionChains(self.browser.driver).key_down(Keys.CONTROL).send_keys("k").key_up(Keys.CONTROL).perform()
        self.browser.find(".commands input").send_keys("ESCAPE")
        self.browser.find_text(".commands li", "json.escape")
        self.browser.find(".commands input").send_keys(Keys.ENTER)
        self.browser.find_text("h1", "json.escape")

    def test_a_function_that_did_not_run_is_explained_by_a_sentence(self):
        self.open("/function", q=SHOP, function="never.called")
        self.assertIn("No sample in this range contains the function", self.text(".note"))
        self.open("/function", q=SHOP)
        self.browser.find_text("tbody a", "db.query").click()
        self.browser.find_text("h1", "db.query")

    def test_hostile_names_are_text(self):
        self.open("/function", q='{service_name="hostile"}')
        self.browser.find_text("tbody a", HOSTILE[0]).click()
        self.browser.find_text(".function-calls h2", HOSTILE[0])
        for name in HOSTILE[1:3]:
            self.open("/function", q='{service_name="hostile"}', function=name)
            self.browser.find_text("h1", name)
        self.assertIsNone(self.browser.run("return window.hacked ?? null"))
        self.assertEqual(self.browser.run("return document.querySelectorAll('main script, main img').length"), 0)

    # ---- heatmap ----

    def press(self, *keys):
        self.browser.run("document.querySelector('.heatmap-box').focus()")
        ActionChains(self.browser.driver).send_keys(*keys).perform()

    def test_the_outlier_is_found_by_keys_and_leads_to_its_profile(self):
        self.open("/heatmap", q=SHOP)
        self.assertEqual(self.text(".headline .figure"), "4 profiles")
        self.browser.find(".heatmap-box canvas")
        self.browser.find_text("button", "As a table").click()
        outlier = self.browser.find_text(".heat-table tr", "40 s")
        outlier.find_element("css selector", "button").click()
        self.assertIn("1 profile", self.text(".exemplars p"))
        self.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
        self.browser.until(lambda: "0 profiles" in self.text(".heatmap-said"), "the cell below")
        self.press(Keys.ARROW_UP, Keys.ENTER)
        self.browser.find_text(".exemplars td", "pod=shop-2")
        self.browser.find(".exemplars tbody a").click()
        self.browser.find_text("h1", "Single profile")
        self.assertEqual(self.text(".headline .figure"), "40 s")
        self.browser.driver.back()
        self.browser.find(".exemplars tbody a")
        self.press(Keys.ESCAPE, Keys.ESCAPE)
        self.browser.until(lambda: "at" not in self.address()[1], "nothing chosen")

    def test_a_span_leads_to_its_trace(self):
        self.open("/heatmap", q=SHOP, of="spans")
        self.assertEqual(self.text(".headline .figure"), "1 span")
        self.browser.find(".heatmap-box canvas")
        self.press(Keys.ARROW_UP, Keys.ENTER)
        self.browser.find_text(".exemplars a", SPAN).click()
        self.browser.until(lambda: self.address()[0] == "/traces", "the trace")
        self.assertEqual(self.address()[1]["id"], TRACE)
        self.browser.find_text("main", "40 s")

    def test_a_diamond_on_the_line_leads_to_the_largest_profile(self):
        self.open("/profile", q=SHOP, **{"from": str(self.now - 60 * MINUTE), "to": str(self.now)})
        over = self.browser.find(".timeline .plot")
        # Two thirds of the range are before it, and the axis ends 8 % above the largest value.
        x, y = over.size["width"] // 6, round(over.size["height"] * (0.5 - 1 / 1.08))
        ActionChains(self.browser.driver).move_to_element_with_offset(over, x, y).perform()
        self.browser.until(lambda: "40 s" in self.text(".readout .note-below"), "what the diamond says")
        ActionChains(self.browser.driver).click().perform()
        self.browser.find_text("h1", "Single profile")
        self.assertEqual(self.text(".headline .figure"), "40 s")

    def test_a_drag_chooses_the_range(self):
        self.open("/heatmap", q=SHOP)
        box = self.browser.find(".heatmap-box canvas")
        drag = ActionChains(self.browser.driver).move_to_element_with_offset(box, -100, 0)
        drag.click_and_hold().move_by_offset(200, 0).release().perform()
        self.browser.until(lambda: self.address()[1].get("to", "now") != "now", "the range in the address")
        params = self.address()[1]
        self.assertTrue(5 * MINUTE < int(params["to"]) - int(params["from"]) < 20 * MINUTE, params)


if __name__ == "__main__":
    unittest.main()
