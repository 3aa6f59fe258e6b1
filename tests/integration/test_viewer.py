"""The HTML flame graphs of `hearth` in Chromium: names from strangers stay text, nothing is asked of the network, and zoom,
search, keys and themes work, of a profile and of a diff."""

import unittest

from browser import AXE, Browser, Keys, require_browser
from hostile import ELEMENTS, NAMES, unseen
from pprof import Profile
from server import Server, now_ms, temporary_directory
from test_browser_hostile import FOREIGN, TEXTS
from test_cli import OK, hearth

MS = 1_000_000
# fib calls itself: a search must count its stack traces once.
SHOP = [(["main", "fib", "fib", "fib"], 40), (["main", "fib"], 10), (["main", "io.Read"], 30), (["idle"], 20)]
LATER = [(["main", "fib"], 4_000), (["main", "io.Write"], 3_000), (["idle"], 3_000)]
HOSTILE = [(["main", name, "leaf"], 10) for name in NAMES]


def profile(stacks):
    made = Profile([("cpu", "nanoseconds")], time_ns=(now_ms() - 60_000) * MS, duration_ns=10_000 * MS)
    for stack, value in stacks:
        made.add(stack, [value * MS])
    return made.encode()


class Viewer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        require_browser()
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.stop)
        cls.driver = cls.browser.driver
        cls.server = Server("--builder=false")
        cls.addClassCleanup(cls.server.stop)
        cls.root = temporary_directory()
        for service, stacks in (("shop", SHOP), ("later", LATER), ("hostile", HOSTILE)):
            cls.server.push(profile(stacks), {"__name__": "process_cpu", "service_name": service})

    def setUp(self):
        self.look(1280, 800)
        self.prefer("light")

    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [])
        self.assertIsNone(self.browser.run("return window.hacked ?? null"))
        self.assertEqual(self.browser.run("return performance.getEntriesByType('resource').length"), 0)

    def look(self, width, height):
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def prefer(self, theme):
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def open(self, *arguments):
        path = self.root + "/graph.html"
        done = hearth(*arguments, "-o", "html=" + path, env={"HEARTH_URL": "http://127.0.0.1:%d" % self.server.port})
        self.assertEqual(done.code, OK, done.err)
        self.browser.open("file://" + path)
        self.painted()

    def painted(self):
        self.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")

    def text(self, part):
        return self.browser.run("return document.getElementById(arguments[0]).textContent", part)

    def point(self, x, row, kind="mouseMoved"):
        """The pointer at a share of the picture's width and in a row of it."""
        place = self.browser.find("#stage").rect
        where = {"x": int(place["x"] + x * place["width"]), "y": int(place["y"] + 10 + 20 * row)}
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "button": "none", **where})

    def click(self, x, row):
        self.point(x, row)
        place = self.browser.find("#stage").rect
        where = {"x": int(place["x"] + x * place["width"]), "y": int(place["y"] + 10 + 20 * row)}
        for kind in ("mousePressed", "mouseReleased"):
            self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "button": "left", "clickCount": 1, **where})
        self.painted()

    def search(self, text):
        self.browser.press("/")
        self.browser.press(*text, Keys.ENTER)
        self.painted()
        return self.text("found")

    def colours(self):
        """Colours of the picture by their number of pixels, the most frequent first."""
        return self.browser.run("""
            const canvas = document.getElementById("canvas");
            const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
            copy.drawImage(canvas, 0, 0);
            const pixels = new Uint32Array(copy.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
            const counts = new Map();
            for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
            return [...counts].sort((a, b) => b[1] - a[1]).map(([pixel]) => pixel);""")

    # ---- names ----

    def test_hostile_names_are_text_wherever_they_appear(self):
        self.open("flame", '{service_name="hostile"}')
        for i in range(0, 60):
            self.point((i + 0.5) / 60, 2)
            self.assertEqual(unseen(self.text("detail")), [])
        self.browser.run("document.getElementById('table').open = true")
        rows = self.browser.until(lambda: self.driver.find_elements("css selector", "#rows tr"), "rows")
        self.assertEqual(len(rows), min(200, len(set(NAMES)) + 2))
        self.assertIn("<img src=x onerror=window.hacked=1>", self.text("rows"))
        self.assertEqual(self.browser.run(FOREIGN, ELEMENTS), ["<style>", "a script"])  # its own
        shown = self.browser.run(TEXTS).replace(self.text("profile"), "")
        self.assertEqual(unseen(shown), [])

    def test_a_hostile_name_in_the_table_is_searched_as_it_stands(self):
        self.open("flame", '{service_name="hostile"}')
        self.browser.run("document.getElementById('table').open = true")
        self.browser.find_text("#rows button", "${jndi:ldap://x}").click()
        self.assertEqual(self.text("found"), "1 function, 10 ms (%.2f%%)" % (100 / len(NAMES)))

    # ---- a profile ----

    def test_the_headline_names_selector_type_range_and_total(self):
        self.open("flame", '{service_name="shop"}')
        self.assertEqual(self.text("title"), '{service_name="shop"}')
        self.assertRegex(self.text("facts"), r"^process_cpu:cpu:nanoseconds:cpu:nanoseconds · .* to .* UTC · 100 ms$")
        self.assertEqual(self.driver.title, '{service_name="shop"}')
        self.assertEqual(self.text("notes"), "")
        self.assertGreater(len(self.colours()), 5)

    def test_the_pointer_describes_and_a_click_zooms(self):
        self.open("flame", '{service_name="shop"}')
        self.point(0.1, 2)
        self.assertEqual(self.text("detail"), "fibtotal 50 ms (50.00%) · self 10 ms (10.00%)")
        self.click(0.1, 2)
        self.assertFalse(self.browser.run("return document.getElementById('out').disabled"))
        self.point(0.79, 3)  # the inner fib is now four fifths of the width
        self.assertEqual(self.text("detail"), "fibtotal 40 ms (40.00%) · self 0 ns (0.00%)")
        self.point(0.81, 3)
        self.browser.find("#out").click()
        self.assertTrue(self.browser.run("return document.getElementById('out').disabled"))

    def test_everything_works_by_keys(self):
        self.open("flame", '{service_name="shop"}')
        self.browser.press(Keys.ARROW_DOWN)
        self.assertTrue(self.text("detail").startswith("maintotal 80 ms"))
        self.browser.press(Keys.ARROW_RIGHT)
        self.assertTrue(self.text("detail").startswith("idle"))
        self.browser.press(Keys.ARROW_LEFT, Keys.ARROW_DOWN)
        self.assertTrue(self.text("detail").startswith("fibtotal 50 ms"))
        self.browser.press(Keys.ENTER)
        self.assertFalse(self.browser.run("return document.getElementById('out').disabled"))
        self.browser.press(Keys.BACKSPACE)
        self.assertTrue(self.text("detail").startswith("main"))
        self.browser.press(Keys.ESCAPE)
        self.assertTrue(self.browser.run("return document.getElementById('out').disabled"))
        self.browser.press(Keys.ARROW_DOWN, Keys.ARROW_UP)
        self.assertTrue(self.text("detail").startswith("total"))

    def test_a_search_counts_no_stack_trace_twice(self):
        self.open("flame", '{service_name="shop"}')
        before = self.colours()
        self.assertEqual(self.search("^fib$"), "1 function, 50 ms (50.00%)")
        self.assertNotEqual(self.colours()[:3], before[:3])
        self.browser.press(Keys.ESCAPE)
        self.assertEqual(self.text("found"), "")
        self.assertEqual(self.search("fib|read"), "2 functions, 80 ms (80.00%)")
        self.browser.press("/", (Keys.CONTROL, "a"))
        self.assertEqual(self.search("Read("), "0 functions, 0 ns (0.00%) (not a regular expression: searched as it stands)")

    def test_themes_follow_the_system_and_the_button(self):
        self.open("flame", '{service_name="shop"}')
        light = self.colours()[0]
        self.prefer("dark")
        self.painted()
        dark = self.colours()[0]
        self.assertNotEqual(dark, light)
        self.browser.find("#theme").click()
        self.painted()
        self.assertEqual(self.colours()[0], light)

    def test_page_layouts_fit_a_telephone_and_a_wall(self):
        for width, height in ((360, 640), (3840, 2160)):
            self.look(width, height)
            self.open("flame", '{service_name="shop"}')
            self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width)
            self.assertGreater(self.browser.run("return document.getElementById('stage').clientHeight"), 100)
            self.point(0.1, 2)
            self.assertTrue(self.text("detail").startswith("fib"))

    def test_a_note_gives_the_folded_share(self):
        self.open("flame", '{service_name="shop"}', "--max-nodes", "2")
        self.assertRegex(self.text("notes"), r"^This is not all: 90.00% is in hatched frames “other”")

    @unittest.skipUnless(AXE.exists(), "axe-core is not installed: hearthd was built without the web page")
    def test_axe_finds_no_violation_in_both_themes(self):
        for theme in ("light", "dark"):
            self.prefer(theme)
            self.open("diff", '{service_name="shop"}', '{service_name="later"}')
            self.browser.run("document.getElementById('table').open = true")
            self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": AXE.read_text()})
            found = self.driver.execute_async_script("""
                const done = arguments[0];
                axe.run().then((found) => done(found.violations.map(({ id, help, nodes }) => id + ": " + help + nodes[0].target)),
                               (error) => done([String(error)]));""")
            self.assertEqual(found, [], theme)

    # ---- a diff ----

    def test_a_diff_shows_both_sides_and_noise(self):
        self.open("diff", '{service_name="shop"}', '{service_name="later"}')
        self.assertTrue(self.browser.find("#legend").is_displayed())
        self.assertEqual(self.text("title"), '{service_name="shop"} → {service_name="later"}')
        self.assertRegex(self.text("facts"), r'base: {service_name="shop"}, .*now: {service_name="later"}, .* · 100 ms → 10 s$')
        self.assertRegex(self.text("notes"), r"changed beyond noise")
        seen = {}
        for i in range(200):
            self.point((i + 0.5) / 200, 2)
            name, _, rest = self.text("detail").partition("total ")
            seen[name] = rest
        self.assertTrue(seen["io.Write"].startswith("0.00% → 30.00% (+30.00%, 0 ns → 3 s)"), seen)
        self.assertIn(" · new", seen["io.Write"])
        self.assertRegex(seen["fib"], r"^50.00% → 40.00% \(-10.00%, 50 ms → 4 s\)")
        self.assertRegex(seen["fib"], r"beyond noise|within noise")
        self.browser.run("document.getElementById('table').open = true")
        self.assertTrue(self.browser.find("#rows tr").text.startswith("0.00% → 30.00% (+30.00%"), self.text("rows"))


if __name__ == "__main__":
    unittest.main()
