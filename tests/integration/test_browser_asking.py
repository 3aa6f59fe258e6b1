"""The page of a profile and the bars above it, used by a browser: tables, background, folded frames, the chart, the selector as text."""

import json
import unittest
import urllib.parse

import browser
from browser import PageTest
from pprof import Profile
from server import now_ms

# What browser.py needs may be missing: the tests are then skipped.
ActionChains = getattr(browser.webdriver, "ActionChains", None)
Keys = browser.Keys
CUT = 16_384  # nodes that the page asks for at first


def rows_of(page):
    return [row.text.split("\n")[0] for row in page.driver.find_elements("css selector", ".functions tbody th button")]


class Asking(PageTest):
    @classmethod
    def fill(cls, server):
        cls.page = cls.browser
        for pod in range(10):
            made = Profile([("cpu", "nanoseconds")], time_ns=(now_ms() - 600_000) * 1_000_000)
            made.add(["main", "shop/cart.(*Basket).Add", "runtime.mallocgc"], [3_000_000_000])
            made.add(["main", "shop/cart.(*Basket).Add"], [1_000_000_000])
            made.add(["main", "shop/pay.Charge"], [1_000_000_000 * (pod + 1)])
            server.push(made.encode(), {"__name__": "process_cpu", "service_name": "shop", "pod": "shop-%d" % pod})
        for minutes, version in ((30, "1"), (20, "1"), (10, "2"), (5, "2")):
            made = Profile([("cpu", "nanoseconds")], time_ns=(now_ms() - minutes * 60_000) * 1_000_000)
            made.add(["main", "run"], [1_000_000_000])
            server.push(made.encode(), {"__name__": "process_cpu", "service_name": "deployed", "version": version})
        wide = Profile([("cpu", "nanoseconds")], time_ns=(now_ms() - 60_000) * 1_000_000)
        for i in range(CUT + 4000):
            wide.add(["main", "part%d" % (i % 7), "leaf%d" % i], [1000 + i])
        server.push(wide.encode(), {"__name__": "process_cpu", "service_name": "wide"})

    def open(self, service="shop", **params):
        super().open("/profile", **{"q": '{service_name="%s"}' % service, **params})

    def until_address(self, **wanted):
        def is_there():
            return all(self.address()[1].get(name, "") == value for name, value in wanted.items())
        self.page.until(is_there, "%s in the address" % wanted)

    def press(self, *keys):
        ActionChains(self.page.driver).send_keys(*keys).perform()

    def total(self):
        return self.page.find(".headline .figure").text

    def test_a_row_of_a_table_narrows_the_graph(self):
        self.open(table="package", view="both")
        self.page.find_text(".functions tbody th", "shop/cart")
        self.assertEqual(rows_of(self.page)[0], "shop/pay")
        before = self.total()
        self.press("j")  # the first row
        self.press("j")
        self.press("x")
        self.page.until(lambda: self.address()[1].get("rows"), "rows in the address")
        self.page.until(lambda: self.total() != before, "another total")
        kind, name = self.address()[1]["rows"].split(" ", 1)
        self.assertEqual(kind, "PACKAGE")
        self.assertIn(name, self.page.find(".headline .chip").text)
        self.assertGreaterEqual(len(rows_of(self.page)), 3, "the other rows can still be added")
        self.page.find(".headline .chip button").click()
        self.until_address(rows="")
        self.page.until(lambda: self.total() == before, "the whole total")

    def test_a_table_is_sorted_filtered_and_copied(self):
        self.open(view="table")
        self.page.find_text(".functions tbody th", "shop/pay.Charge")
        self.page.find_text(".functions thead button", "Total").click()
        self.until_address(sort="total")
        self.page.until(lambda: rows_of(self.page)[0] == "main", "the largest total first")
        self.page.find(".table-tools input").send_keys("^shop" + Keys.ENTER)
        self.page.until(lambda: len(rows_of(self.page)) == 2, "the rows that match")
        self.page.run("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve() }")
        for form in ("TSV", "Markdown"):
            self.page.find_text(".table-tools select option", form).click()
        self.assertIn("| shop/pay.Charge | 55 s (57.89%)", self.page.run("return window.copied"))

    def test_values_of_a_label_narrow_the_selector(self):
        self.open(table="label pod", view="table")
        self.page.find_text(".functions tbody th", "shop-9")
        self.assertEqual(rows_of(self.page)[0], "shop-9")
        self.press("j", "x")
        self.page.until(lambda: self.address()[1]["q"] == '{service_name="shop", pod="shop-9"}', "one pod")
        self.assertEqual(len(rows_of(self.page)), 10, "the other values can still be added")
        self.press("j", "x")
        self.page.until(lambda: self.address()[1]["q"] == '{service_name="shop", pod=~"shop-9|shop-8"}', "two pods")

    def test_background_is_hidden_and_its_share_shown(self):
        self.open(view="both")
        self.page.find_text(".functions tbody th", "runtime.mallocgc")
        self.page.find_text(".tools option", "Go runtime").click()
        self.until_address(hide="go")
        self.page.find_text(".headline .chip", "31.58%")
        self.page.until(lambda: "runtime.mallocgc" not in rows_of(self.page), "no row of the runtime")
        self.page.find(".headline .chip button").click()
        self.until_address(hide="")
        self.page.find_text(".functions tbody th", "runtime.mallocgc")

    def test_folded_frames_are_loaded_and_the_plan_is_shown(self):
        self.open("wide", view="flame")
        total = self.total()
        line = self.page.find(".others")
        self.assertRegex(line.text, r"^[\d,]+ small frames, [\d.]+%")
        line.find_element("css selector", "button").click()
        self.until_address(full="*")
        self.page.until(lambda: not self.page.driver.find_elements("css selector", ".others"), "nothing that is folded")
        self.assertEqual(self.total(), total)
        self.page.find_text(".headline button", "Explain").click()
        self.page.find_text(".plan tbody th", "single profiles")

    def test_a_subtree_is_loaded_alone(self):
        self.open("wide", view="flame")
        self.page.find(".others")
        self.page.find(".flame canvas")
        self.page.run("document.querySelector('.flame [role=treegrid], .flame [tabindex=\"0\"]').focus()")
        self.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
        self.page.until(lambda: self.address()[1].get("zoom"), "a zoom in the address")
        zoom = self.address()[1]["zoom"]
        self.page.find_text(".others", "the server summed").find_element("css selector", "button").click()
        self.until_address(full=zoom, zoom="")

    def test_groups_beyond_eight_become_others_and_a_line_narrows(self):
        self.open(by="pod")
        self.page.find_text(".lines li", "others")
        self.assertEqual(len(self.page.driver.find_elements("css selector", ".lines li")), 9)
        self.page.find_text(".lines button", "shop-9").click()
        self.page.until(lambda: 'pod="shop-9"' in self.address()[1]["q"], "the pod in the selector")

    def test_the_chart_is_brushed_by_keys_and_by_the_pointer(self):
        self.open()
        self.drag()
        self.page.until(lambda: self.address()[1].get("whole") == "now-1h now", "the whole range is kept")
        self.page.find_text("main button", "Whole range").click()
        self.until_address(whole="", **{"from": "now-1h"})
        self.page.settle()  # the chart of the whole range takes the place of the other
        self.page.until(lambda: self.page.find(".timeline .plot").is_displayed(), "the chart")
        self.page.run("document.querySelector('.timeline').focus()")
        self.press(*[Keys.ARROW_LEFT] * 5)
        actions = ActionChains(self.page.driver).key_down(Keys.SHIFT).send_keys(*[Keys.ARROW_LEFT] * 10).key_up(Keys.SHIFT)
        actions.key_down(Keys.ALT).send_keys(Keys.ENTER).key_up(Keys.ALT).perform()
        self.page.until(lambda: self.address()[0] == "/diff", "the diff")
        self.page.find_text(".band.baseline", "Baseline")
        asked = self.address()[1]
        self.assertAlmostEqual(int(asked["to"]) - int(asked["from"]), 150_000, delta=60_000)

    def drag(self, *held):
        """Drags over the chart, 120 pixels from its middle to the right, with keys held."""
        actions = ActionChains(self.page.driver)
        for key in held:
            actions.key_down(key)
        actions.move_to_element(self.page.find(".timeline .plot")).click_and_hold().move_by_offset(120, 0).release()
        for key in held:
            actions.key_up(key)
        actions.perform()

    def test_a_double_click_on_the_chart_restores_the_whole_range(self):
        self.open()
        for _ in range(2):  # the second selection lies within the first
            self.drag()
            self.page.until(lambda: self.address()[1].get("to", "now") != "now", "the selected range in the address")
            self.page.settle()
        self.assertLess(int(self.params()["to"]) - int(self.params()["from"]), 600_000)
        ActionChains(self.page.driver).double_click(self.page.find(".timeline .plot")).perform()
        self.until_address(whole="", **{"from": "now-1h"})
        self.page.settle()
        self.page.until(lambda: self.total() == "1.58 min", "the total of the whole range")

    def test_a_drag_with_alt_compares_the_selected_window_with_the_time_before_it(self):
        self.open()
        self.drag(Keys.ALT)
        self.page.until(lambda: self.address()[0] == "/diff", "the diff")
        self.page.find_text(".band.baseline", "Baseline")
        asked = self.params()
        width = int(asked["to"]) - int(asked["from"])
        self.assertTrue(300_000 < width < 900_000, asked)
        self.assertEqual(asked["q"], '{service_name="shop"}')

    def test_a_new_version_is_marked_and_compared_with_the_time_before(self):
        self.open("deployed")
        self.page.find_text(".profile-count", "4 profiles")
        marker = self.page.find(".markers button")
        self.assertIn("version 2 first appears", marker.get_attribute("aria-label"))
        marker.click()
        self.page.until(lambda: self.address()[0] == "/diff", "the diff")
        self.assertEqual(self.address()[1]["against"], "deploy")
        self.page.find_text(".verdict", "changed by")
        self.page.find_text(".band.baseline", "Baseline")

    def test_a_form_offers_the_time_around_each_deploy(self):
        super().open("/diff", q='{service_name="deployed"}')
        self.page.find_text("select option", "before version 2").click()
        deployed = int(self.page.until(lambda: self.address()[1].get("deploy"), "the time of the deploy"))
        self.page.find_text(".verdict", "before")
        # Another time, as a person types it.
        field = self.page.find("input[type=datetime-local]")
        self.page.run("""
            const [field, ms] = arguments;
            field.value = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
            field.dispatchEvent(new Event("change"));""", field, deployed - 600_000)
        self.page.until(lambda: self.address()[1]["deploy"] == str((deployed - 600_000) // 1000 * 1000), "the other time")
        self.page.find_text("select option:checked", "around a deploy")

    def test_tasks_are_marked_on_the_chart(self):
        asked = {"kind": "TASK_KIND_ON_CPU", "service": "shop", "durationMs": "60000"}
        headers = {"Content-Type": "application/json"}
        status, _, answer = self.server.http("POST", "/hearth.v1.TaskService/CreateTask", json.dumps(asked), headers)
        self.assertEqual(status, 200, answer)
        self.open()
        marker = self.page.find(".markers button")
        self.assertIn("on CPU", marker.get_attribute("aria-label"))

    def test_the_selector_is_completed_and_refused_where_it_is_wrong(self):
        self.open("wide", view="table")
        self.page.find(".functions tbody th")
        self.press("/")
        field = self.page.find("#selector-text")
        field.send_keys(Keys.BACKSPACE * len('{service_name="wide"'), "serv")
        self.page.find_text("#selector-choices li", "service_name")
        field.send_keys(Keys.TAB)
        self.page.find_text("#selector-choices li:first-child", "10 uploads")  # those of most uploads first
        field.send_keys("sh", Keys.TAB, Keys.ENTER)
        self.page.until(lambda: self.address()[1]["q"] == '{service_name="shop"}', "the selector in the address")
        self.press("/")
        self.page.find("#selector-text").send_keys(", pod=x", Keys.ENTER)
        refusal = self.page.find(".selector-error")
        self.assertEqual(refusal.find_element("css selector", "pre").text.split("\n")[1].index("^"), 26)
        self.assertEqual(self.address()[1]["q"], '{service_name="shop"}')

    def test_a_link_is_frozen(self):
        self.open()
        self.page.find(".headline .figure")
        self.page.run("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve() }")
        self.page.find_text(".tools button", "Copy link").click()
        link = urllib.parse.urlsplit(self.page.run("return window.copied"))
        asked = dict(urllib.parse.parse_qsl(link.query))
        self.assertEqual(int(asked["to"]) - int(asked["from"]), 3_600_000)

    def test_a_narrow_window_has_one_bar_and_a_sheet(self):
        size = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": False}
        self.page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.addCleanup(self.page.driver.execute_cdp_cmd, "Emulation.clearDeviceMetricsOverride", {})
        self.open()
        self.page.find_text(".functions tbody th", "shop/pay")
        self.assertLessEqual(self.page.run("return document.documentElement.scrollWidth"), 360)
        tops = self.page.run("return ['.timeline', '.functions', '.flame canvas']"
                             ".map(css => document.querySelector(css).getBoundingClientRect().top)")
        self.assertEqual(tops, sorted(tops), "chart, table, graph")
        self.page.find(".summary").click()
        self.page.find_text(".asking-sheet nav a", "Diff").click()
        self.page.until(lambda: self.address()[0] == "/diff", "the diff")
        self.page.until(lambda: not self.page.driver.find_elements("css selector", ".asking-sheet"), "no sheet")


if __name__ == "__main__":
    unittest.main()
