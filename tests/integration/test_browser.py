"""The web page, used by a browser: from the list of services to the hottest function, and everything that the address keeps."""

import collections
import glob
import gzip
import pathlib
import re
import subprocess
import unittest

import browser
import tasks
from browser import PageTest, require_page
from pprof import Profile
from server import HEARTH, ROOT, now_ms, server_environment, temporary_directory
from test_access import AccessServer

RECORDINGS = sorted(glob.glob(str(ROOT / "clients/demo/recording/*.txt.gz")))
HOSTILE = [
    "<script>window.hacked = 1</script>", "<img src=x onerror='window.hacked=1'>", "javascript:window.hacked=1", "\u202eevil\u202c",
    "zero\u200bwidth", "\u05e9\u05dc\u05d5\u05dd", "x" * 10_000, "tab\tand\x07bell", "{{7*7}}", "%s%n${jndi:ldap://x}",
    "</title><svg onload=window.hacked=1>", "a\nb", "\ufeffmark", "' onmouseover='window.hacked=1", "&lt;b&gt;", "\u2028line",
]


def profile(stacks):
    made = Profile([("cpu", "nanoseconds")], time_ns=(now_ms() - 60_000) * 1_000_000)
    for stack, value in stacks:
        made.add(stack, [value])
    return made.encode()


class Page(PageTest):
    OPTIONS = ("--builder=false", *("--retain-%s=2h" % kept for kept in ("raw", "10m", "1h", "1d")))

    @classmethod
    def fill(cls, server):
        shop = profile([(["main", "handle", "json.encode"], 6_000_000_000), (["main", "handle", "db.query"], 2_000_000_000),
                        (["main", "idle"], 1_000_000_000)])
        server.push(shop, {"__name__": "process_cpu", "service_name": "shop", "pod": "shop-1", "region": "eu"})
        server.push(profile([(["main", "work"], 1_000_000_000)]), {"__name__": "process_cpu", "service_name": "cart"})
        server.push(profile([(["main", name], 10_000_000) for name in HOSTILE]),
                        {"__name__": "process_cpu", "service_name": "hostile", "team": "<b>x</b>"})

    def test_two_clicks_lead_from_the_services_to_the_hottest_function(self):
        self.open()
        row = self.browser.find_text("tbody tr", "shop")
        self.assertRegex(row.text, r"\d (ms/s|cores)")
        self.browser.find_text("tbody th a", "shop").click()
        first = self.browser.find(".functions tbody th")
        self.assertEqual(first.text, "json.encode")
        self.assertIn("66.67%", self.browser.find_text(".functions tbody tr", "json.encode").text)
        colours = self.browser.run("""
            const canvas = document.querySelector("canvas.flame-canvas") ?? document.querySelector(".flame canvas");
            const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
            const seen = new Set();
            for (let i = 0; i < pixels.length; i += 4) seen.add(pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2]);
            return seen.size;""")
        self.assertGreater(colours, 5, "the flame graph is not drawn")

    def test_back_undoes_and_a_reload_changes_nothing(self):
        self.open("/profile", q='{service_name="shop"}')
        self.browser.find_text(".tabs button", "Table").click()
        self.browser.until(lambda: self.address()[1].get("view") == "table", "view=table in the address")
        self.assertEqual(self.browser.driver.find_elements("css selector", ".flame canvas"), [])
        self.browser.driver.refresh()
        self.browser.find(".functions tbody th")
        self.assertEqual(self.address()[1]["view"], "table")
        self.browser.driver.back()
        self.browser.find(".flame canvas")
        self.assertNotIn("view", self.address()[1])

    def services(self):
        return [link.text for link in self.driver.find_elements("css selector", "tbody th a")]

    def test_a_favourite_stands_first_until_it_is_removed(self):
        self.open()
        self.assertEqual([name for name in self.services() if name != "hostile"], ["shop", "cart"])
        self.browser.find_text("tbody tr", "cart").find_element("css selector", ".star").click()
        self.browser.until(lambda: self.services()[0] == "cart", "the favourite in the first row")
        self.open()
        self.assertEqual(self.services()[0], "cart")
        star = self.browser.find_text("tbody tr", "cart").find_element("css selector", ".star")
        self.assertEqual(star.get_attribute("aria-pressed"), "true")
        star.click()
        self.browser.until(lambda: self.services()[0] == "shop", "the most expensive service in the first row")

    def test_a_facet_narrows_the_list_of_profiles_and_counts_them(self):
        self.open("/profiles")
        self.assertEqual(self.browser.find(".figure").text, "3 profiles")
        facet = self.browser.find_text(".facet", "shop-1")
        self.assertIn("1", facet.text.split())
        facet.click()
        self.browser.settle()
        self.assertEqual(self.params()["q"], '{pod="shop-1"}')
        self.assertEqual(self.browser.find(".figure").text, "1 profile")
        self.assertEqual(len(self.driver.find_elements("css selector", ".rows tbody tr")), 1)

    def test_a_service_without_processor_time_is_shown_with_a_type_that_it_has(self):
        heap = Profile([("inuse_space", "bytes")], time_ns=(now_ms() - 60_000) * 1_000_000)
        heap.add(["main", "keep"], [2048])
        self.server.push(heap.encode(), {"__name__": "memory", "service_name": "cache"})
        self.open("/profile", q='{service_name="cache"}')
        self.assertEqual(self.browser.find_text(".headline .figure", "2 KiB").text, "2 KiB")

    def test_a_long_name_of_a_service_leaves_room_for_the_other_columns(self):
        stacks = profile([(["main"], 1_000_000_000)])
        self.server.push(stacks, {"__name__": "other", "service_name": "n" * 2000, "pod": "p" * 1000})
        self.open("/profiles", q='{__name__="other"}')
        self.browser.find_text(".rows tbody td.number", "1 s")
        self.assertEqual(self.browser.find_text(".rows thead th", "Duration").text, "Duration")
        self.assertIn("—", [cell.text for cell in self.driver.find_elements("css selector", ".rows tbody td.number")])
        self.assertTrue(self.browser.run("const rows = document.querySelector('.rows'); return rows.scrollWidth <= rows.clientWidth"))

    def test_a_selector_that_is_wrong_is_refused_with_the_error_of_the_server(self):
        self.open("/profile", q='{service_name=~"["}')
        self.assertIn("[", self.browser.find(".error").text)

    def test_an_unreachable_server_is_reported_as_such(self):
        self.lose_the_server("[role=alert]")

    def test_a_page_that_waits_for_profiles_reports_an_unreachable_server(self):
        self.lose_the_server(".sheet [role=alert]", **{"from": "now-3d", "to": "now-2d"})

    def lose_the_server(self, alert, **parameters):
        self.open("/", **parameters)
        network = lambda is_away: self.driver.execute_cdp_cmd(
            "Network.emulateNetworkConditions", {"offline": is_away, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})
        self.driver.execute_cdp_cmd("Network.enable", {})
        self.addCleanup(network, False)
        network(True)
        self.browser.find_text("button", "Refresh").click()
        self.browser.find_text(alert, "The server cannot be reached")
        self.browser.settle()
        self.assertTrue(all("INTERNET_DISCONNECTED" in each for each in self.browser.complaints()))  # which also forgets them

    def test_the_page_names_the_parts_missing_from_an_answer(self):
        self.open("/", **{"from": "now-5h"})
        self.assertIn("retain-raw", self.browser.find(".note").text)
        self.open("/", **{"from": "now-1h"})
        self.browser.find_text("tbody tr", "shop")
        self.assertEqual(self.browser.driver.find_elements("css selector", ".note"), [])

    def test_an_address_without_a_page_shows_a_note_and_the_first_page(self):
        self.open("/nowhere")
        self.assertIn("There is no page /nowhere", self.browser.find(".note").text)
        self.browser.find_text("tbody tr", "shop")

    def test_texts_of_the_server_are_chinese_if_known_and_marked_as_english_otherwise(self):
        self.open("/help")
        self.choose("light", "zh")
        english = lambda: [each.text for each in self.browser.driver.find_elements("css selector", "main [lang=en]")]
        task = tasks.create(self.server, "PPROF", instances=["shop-1"], events=["cpu"])
        for path, params, words in (
            ("/", {"from": "now-5h"}, "已过期（retain-raw）"),
            ("/traces", {"id": "0123456789abcdef0123456789abcdef"}, "没有样本带有此 ID"),
            ("/tasks", {"id": task}, "从未有该服务的实例来领取过 pprof 任务"),
        ):
            self.open(path, **params)
            self.browser.find_text("main", words)
            self.assertNotIn("gone", "".join(english()))
        self.open("/profile", q='{service_name=~"["}')
        self.browser.find_text("[role=alert]", "服务器无法理解该请求")
        self.browser.find_text("[role=alert]", "正则表达式有误：missing ]: [")
        self.open("/profiles", id="none-of-this-name")
        self.browser.find("[role=alert]")
        self.assertEqual(len(english()), 1)
        self.open("/tasks", id="none-of-this-name")
        self.browser.find_text("[role=alert]", "未找到: 没有任务“none-of-this-name”")
        self.assertRegex(self.browser.find("[role=alert] small").text, r"请求 ID: \w+")
        self.choose("light")

    def test_names_are_text_wherever_they_are_shown(self):
        for path in ("/", "/profile"):
            self.open(path, q='{service_name="hostile"}', service="hostile", by="team")
            self.browser.find("tbody th")
            self.browser.find_text("body", "<script>") if path == "/profile" else self.browser.find_text("body", "<b>x</b>")
        self.assertIsNone(self.browser.run("return window.hacked ?? null"))
        self.assertEqual(self.browser.run("return document.querySelectorAll('main script, main img, main b').length"), 0)

    def test_theme_and_language_are_remembered(self):
        self.open("/help")
        self.browser.run("localStorage.clear()")
        self.open("/help")
        before = self.browser.run("return document.documentElement.dataset.theme")
        self.browser.find_text("header button", "中文").click()
        self.browser.find("button[title='切换浅色与深色']").click()
        self.open("/help")
        self.browser.find_text("h1", "如何阅读")
        self.assertNotEqual(self.browser.run("return document.documentElement.dataset.theme"), before)
        self.browser.run("localStorage.clear()")

    def test_one_file_is_shown_and_two_are_compared(self):
        directory = pathlib.Path(temporary_directory())
        (directory / "before.txt").write_text("main;parse 80\nmain;write 20\n")
        (directory / "after.txt").write_text("main;parse 60\nmain;write 40\nmain;new 10\n")
        self.open("/adhoc")
        self.browser.find(".choose").find_element("css selector", "input").send_keys(str(directory / "before.txt"))
        self.browser.find_text(".files", "before.txt")
        self.browser.find(".flame canvas")
        self.browser.find(".choose").find_element("css selector", "input").send_keys("%s\n%s" % (directory / "before.txt", directory / "after.txt"))
        self.browser.find_text(".files label strong", "Baseline")
        sides = {row.text.split()[0]: row.text.split()[-1] for row in self.browser.driver.find_elements("css selector", ".files label:has(strong)")}
        self.assertEqual(sides, {"before.txt": "Baseline", "after.txt": "Comparison"})
        self.browser.find(".flame canvas")
        self.browser.find(".choose").find_element("css selector", "input").send_keys(str(self.picture(directory)))
        self.browser.find_text("[role=status]", "profile")

    def picture(self, directory):
        """No profile at all."""
        path = directory / "picture.png"
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
        return path

    def test_a_store_without_profiles_explains_how_to_send_one(self):
        self.open("/", **{"from": "1000", "to": "2000"})
        command = self.browser.find(".snippet").text.split()
        self.assertEqual(command[:2] + command[-2:], ["hearth", "record", "--", "./my-program"])
        done = subprocess.run([HEARTH, *command[1:-1], "true"], capture_output=True, text=True)
        self.assertNotIn("unknown option", done.stderr)
        self.assertIn("http://127.0.0.1:%d" % self.server.port, command)


class Demo(PageTest):
    """The data of `./dev demo` where perf may not run, stored by the same command."""

    @classmethod
    def fill(cls, server):
        environment = server_environment({"HEARTH_URL": "http://127.0.0.1:%d" % server.port})
        for i, path in enumerate(RECORDINGS):
            labels = "service_name=postgres", "load=" + ("read" if i < 3 else "write"), "source=recording"
            subprocess.run([HEARTH, "upload", path, "--time", "now", *("--label=" + label for label in labels)],
                           env=environment, check=True, stdout=subprocess.DEVNULL)

    def click(self, css, text):
        self.browser.find_text(css, text).click()
        self.browser.settle()
        self.clicks += 1

    def choose_option(self, css, text):
        """Two clicks: one opens the list."""
        self.clicks += 1
        self.click(css + " option", text)

    @staticmethod
    def hottest():
        """The place that most samples of the recordings are in, and its share of them, by perf's own text."""
        leaves = collections.Counter()
        for path in RECORDINGS:
            for sample in gzip.open(path, "rt").read().strip().split("\n\n"):
                leaves[re.match(r"\s*[0-9a-f]+ (\S+?)(\+0x[0-9a-f]+)? \(", sample.split("\n")[1])[1]] += 1
        name, n = leaves.most_common(1)[0]
        return name, "%.2f%%" % (100 * n / leaves.total())

    def test_five_clicks_lead_to_the_hottest_line_and_five_more_to_the_diff_of_the_two_loads(self):
        self.clicks = 0
        self.open()
        self.click("tbody th a", "postgres")
        self.choose_option(".table-tools select", "Line")
        name, share = self.hottest()
        row = self.browser.find(".functions tbody tr")
        self.assertIn(name, row.find_element("css selector", "th").get_attribute("textContent"))
        self.assertIn(share, row.text)
        self.click(".functions tbody th button", row.find_element("css selector", "th").text)
        self.assertIn("of 1 function", self.browser.find(".flame-matches").text)
        self.assertLessEqual(self.clicks, 5)

        self.clicks = 0
        self.click("nav a", "Diff")
        self.choose_option('select[aria-label="Compare two values of a label"]', "two values of load")
        self.assertIn("changed by", self.browser.find(".verdict").text)
        self.assertEqual([self.params()[side] for side in ("base", "q")],
                         ['{service_name="postgres", load="%s"}' % load for load in ("read", "write")])
        # Writing waits for the disk: what only it does is named first.
        self.browser.find_text(".changes li", "XLogFlush")
        self.assertLessEqual(self.clicks, 5)

    def tooltip_of_start(self):
        """Of _start, which nearly fills the third row."""
        self.browser.find(".flame-canvas")
        x, y = self.browser.run("""
            const canvas = document.querySelector(".flame-canvas");
            canvas.scrollIntoView();
            const { left, top, width } = canvas.getBoundingClientRect();
            return [Math.round(left + width / 4), Math.round(top) + 50]""")
        for row_below in (20, 0):
            self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y + row_below})
        self.browser.find_text(".flame-tooltip", "_start")
        return self.browser.find(".flame-tooltip").text

    def test_a_frame_of_a_diff_shows_both_sides_the_change_and_its_certainty(self):
        self.clicks = 0
        self.open("/diff", q='{service_name="postgres"}')
        self.choose_option('select[aria-label="Compare two values of a label"]', "two values of load")
        tooltip = self.tooltip_of_start()
        self.assertRegex(tooltip, r"Change [+-]\d+\.\d+ points \(95 %: \S+ … \S+\), (beyond|within) noise")
        sides = dict(re.findall(r"(Baseline|Comparison) (.*%)", tooltip))
        self.assertNotEqual(sides["Baseline"], sides["Comparison"])
        self.click("button", "Swap")
        swapped = dict(re.findall(r"(Baseline|Comparison) (.*%)", self.tooltip_of_start()))
        self.assertEqual(swapped, {"Baseline": sides["Comparison"], "Comparison": sides["Baseline"]})


class LogIn(unittest.TestCase):
    def test_an_unknown_user_logs_in_and_returns_to_the_page_of_the_link(self):
        browser.require_browser()
        seen = browser.Browser()
        self.addCleanup(seen.stop)
        hearth = AccessServer()
        self.addCleanup(hearth.stop)
        require_page(hearth.server)
        hearth.must("CreateUser", {"name": "anna", "password": "a long enough password"})
        hearth.must("AddGrant", {"subject": "user:anna", "tenant": "shop", "role": "viewer"})
        seen.open("http://%s/profile?from=now-6h&q=%%7B%%7D" % hearth.address)
        seen.find("input[name=user]").send_keys("anna")
        self.assertEqual(seen.driver.find_elements("css selector", "main a"), [], "there is no issuer to log in at")
        seen.find("input[name=password]").send_keys("not it at all")
        seen.find("form button").click()
        seen.find_text("[role=alert]", "password")
        seen.find("input[name=password]").clear()
        seen.find("input[name=password]").send_keys("a long enough password")
        seen.find("form button").click()
        seen.find_text("h1", "No profiles yet")
        self.assertIn("from=now-6h", seen.driver.current_url)
        seen.find_text("header button", "anna")


if __name__ == "__main__":
    unittest.main()
