"""The flame graph under pointer, finger and keys: every gesture does what people know from other tools, and back undoes it."""

import re
import unittest

from browser import Keys, PageTest
from pprof import Profile
from server import now_ms

ROW = 20
SHOP = {"q": '{service_name="shop"}', "view": "flame"}
# In each row the largest is drawn first: main; handle 60 %, retry 40 %; encode and load below handle; encode below retry.
STACKS = {
    "main;handle;json.encode": 40,
    "main;handle;db.load": 20,
    "main;retry;json.encode;json.encode": 30,
    "main;retry": 10,
}
WORDS = ("Focus", "Hide", "recursion", "package", "Callers", "history", "lines", "traces", "with it", "without it", "Copy name",
         "Copy stack", "Copy link")


class Interactions(PageTest):
    @classmethod
    def fill(cls, server):
        made = Profile([("cpu", "nanoseconds")], time_ns=(now_ms() - 60_000) * 1_000_000)
        counted = Profile([("samples", "count"), ("wall", "nanoseconds")], time_ns=(now_ms() - 60_000) * 1_000_000)
        for stack, seconds in STACKS.items():
            made.add(stack.split(";"), [seconds * 100_000_000])
            counted.add(stack.split(";"), [7 * seconds, seconds * 100_000_000])
        loads = made.samples[1][0]
        loads[0] += ("/usr/bin/shop",)  # the binary of db.load; pprof.py makes its build id
        server.push(made.encode(), {"__name__": "process_cpu", "service_name": "shop"})
        server.push(counted.encode(), {"__name__": "wall", "service_name": "shop"})
        cls.driver.execute_cdp_cmd(
            "Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
        )

    def setUp(self):
        self.open("/profile", **SHOP)
        self.browser.find(".flame-canvas")

    # ---- places of frames, in the order of the row ----

    def point(self, row, share):
        """Where a frame is in the window, by its row and the share of the width."""
        box = self.browser.run(
            "const { left, top, width } = document.querySelector('.flame-canvas').getBoundingClientRect();"
            "return { left, top, width }"
        )
        return round(box["left"] + share * box["width"]), round(box["top"] + row * ROW + ROW / 2)

    def mouse(self, kind, row, share, **more):
        x, y = self.point(row, share)
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **more})

    def hover(self, row, share, **more):
        self.mouse("mouseMoved", row, share, **more)

    def click(self, row, share, button="left"):
        self.hover(row, share)
        self.mouse("mousePressed", row, share, button=button, clickCount=1)
        self.mouse("mouseReleased", row, share, button=button, clickCount=1)
        self.browser.settle()

    def detail(self):
        return self.browser.run("return document.querySelector('.flame-detail').innerText")

    def shows(self, *words):
        self.browser.until(lambda: all(word in self.detail() for word in words), "%r in %r" % (words, self.detail()))

    def crumbs(self):
        return [crumb.text for crumb in self.driver.find_elements("css selector", ".flame-crumb")]

    def live(self):
        return self.browser.run("return document.querySelector('.flame-live').textContent")

    def keys(self, *keys):
        self.browser.press(*keys)
        self.browser.settle()

    def focus_picture(self):
        self.browser.run("document.querySelector('.flame-twin').focus()")

    def pixels(self):
        return self.browser.run("return document.querySelector('.flame-canvas').toDataURL()")

    # ---- pointer ----

    def test_a_click_zooms_and_the_address_keeps_the_frame_by_stable_ids(self):
        self.click(2, 0.1)
        self.assertEqual(self.crumbs(), ["total", "main", "handle"])
        zoom = self.params()["zoom"]
        self.assertRegex(zoom, r"^[0-9a-z]+\.[0-9a-z]+$")
        self.driver.refresh()
        self.browser.settle()
        self.assertEqual(self.crumbs(), ["total", "main", "handle"])
        self.shows("handle", "60.00%")
        self.driver.back()
        self.browser.settle()
        self.assertEqual(self.crumbs(), ["total"])
        self.driver.forward()
        self.browser.settle()
        self.assertEqual(self.params()["zoom"], zoom)

    def test_the_detail_line_changes_at_once_and_the_tooltip_after_80_ms(self):
        self.browser.run(
            """
            window.seen = [];
            const note = (what) => seen.push([what, performance.now()]);
            const find = () => document.querySelector(".flame-tooltip");
            new MutationObserver(() => {
              if (document.querySelector(".flame-detail").innerText.includes("handle") && !seen.some(([what]) => what === "detail")) note("detail");
              if (find() && !seen.some(([what]) => what === "tooltip")) note("tooltip");
            }).observe(document.querySelector(".flame"), { subtree: true, childList: true, characterData: true });
            document.querySelector(".flame-scroll").addEventListener("pointermove", () => note("moved"), { capture: true, once: true });"""
        )
        self.hover(2, 0.1)
        seen = dict(
            self.browser.until(
                lambda: len(self.browser.run("return seen")) == 3 and self.browser.run("return seen"), "a tooltip"
            )
        )
        self.assertLess(seen["detail"], seen["tooltip"])
        self.assertGreaterEqual(seen["tooltip"] - seen["moved"], 79)
        tooltip = self.browser.find(".flame-tooltip")
        for fact in ("handle", "6 s", "60.00%", "of all", "of its caller", "self", "native"):
            self.assertIn(fact, tooltip.text.replace("Self", "self"))
        row_end = self.point(2, 0)[1] + ROW / 2
        self.assertGreaterEqual(tooltip.rect["y"], row_end, "the tooltip covers the row under the pointer")

    def wall(self):
        """The id of the type whose profiles have a type that counts samples."""
        return self.browser.run(
            "return [...document.querySelectorAll('.query select option')].map(({ value }) => value).find((id) => id.includes('wall:wall'))"
        )

    def asked_merges(self):
        return len(self.browser.run(
            "return performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('QueryService/Merge'))"
        ))

    def test_samples_are_counted_where_the_profiler_counted_them_once_a_frame_is_described(self):
        self.open("/profile", **SHOP, type=self.wall())
        self.browser.find(".flame-canvas")
        self.assertEqual(self.asked_merges(), 1, "samples were asked for before anybody wanted them")
        self.hover(2, 0.1)
        self.shows("handle", "6 s", "420 samples")
        self.assertIn("420 samples", self.browser.find(".flame-tooltip").text)
        self.hover(3, 0.1)
        self.shows("json.encode", "280 samples")
        self.assertEqual(self.asked_merges(), 2, "one question counts all frames")

    def test_samples_follow_transforms_and_the_direction_of_the_graph(self):
        self.open("/profile", **SHOP, type=self.wall(), transforms="recursion json.encode", flip="1")
        self.browser.find(".flame-canvas")
        self.hover(1, 0.1)
        self.shows("json.encode", "490 samples")

    def test_no_samples_are_shown_where_no_type_counts_them(self):
        self.hover(2, 0.1)
        self.assertIn("6 s", self.browser.find(".flame-tooltip").text)
        self.browser.settle()
        self.assertNotIn("samples", self.detail() + self.browser.find(".flame-tooltip").text)
        self.assertEqual(self.asked_merges(), 1)

    def test_below_a_zoomed_frame_shares_of_it_are_shown_too(self):
        self.hover(3, 0.1)
        self.shows("json.encode", "66.67% of its caller")
        self.assertNotIn("of the zoomed frame", self.detail())
        self.click(2, 0.1)
        self.hover(3, 0.1)
        self.shows("json.encode", "40.00% of all", "66.67% of the zoomed frame")

    def test_shift_keeps_what_is_shown_wherever_the_pointer_goes(self):
        self.hover(2, 0.1)
        self.browser.find(".flame-tooltip")
        self.hover(2, 0.9, modifiers=8)
        self.shows("handle")
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": 5, "y": 5, "modifiers": 8})
        self.assertIn("handle", self.browser.find(".flame-tooltip").text)
        self.driver.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "keyUp", "key": "Shift", "code": "ShiftLeft"})
        self.browser.until(lambda: not self.driver.find_elements("css selector", ".flame-tooltip"), "no tooltip")
        self.hover(2, 0.9)
        self.shows("retry")

    def test_all_frames_of_the_function_under_the_pointer_are_outlined(self):
        self.click(0, 0.5)
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": 5, "y": 5})
        # A copy is read: reading the page's own canvas slows it down, of which the browser complains.
        colour = """const [x, y] = arguments, canvas = document.querySelector(".flame-canvas"), ratio = devicePixelRatio;
            const copy = new OffscreenCanvas(1, 1).getContext("2d");
            copy.drawImage(canvas, x * ratio, y * ratio, 1, 1, 0, 0, 1, 1);
            return [...copy.getImageData(0, 0, 1, 1).data].join()"""
        box = self.browser.run("return document.querySelector('.flame-canvas').clientWidth")
        # The upper edges of json.encode below handle and below retry, and of db.load.
        edges = [(0.1 * box, 3 * ROW), (0.7 * box, 3 * ROW), (0.5 * box, 3 * ROW)]
        before = [self.browser.run(colour, *edge) for edge in edges]
        self.hover(3, 0.1)
        self.shows("json.encode")
        self.browser.settle()
        after = [self.browser.run(colour, *edge) for edge in edges]
        self.assertNotEqual(before[0], after[0])
        self.assertEqual(after[0], after[1])
        self.assertEqual(before[2], after[2])

    def test_the_menu_opens_by_right_click_by_key_and_by_a_long_press(self):
        self.click(3, 0.1, button="right")
        menu = self.browser.find("[role=menu]")
        for word in WORDS:
            self.assertIn(word, menu.text)
        self.keys(Keys.ESCAPE)
        self.click(2, 0.1, button="right")
        self.assertNotIn("package", self.browser.find("[role=menu]").text, "the name of the function tells none")
        self.assertEqual(self.browser.run("return document.activeElement.getAttribute('role')"), "menuitem")
        self.keys(Keys.ESCAPE)
        self.assertEqual(self.driver.find_elements("css selector", "[role=menu]"), [])

        self.focus_picture()
        self.keys(Keys.ARROW_DOWN)
        self.keys((Keys.SHIFT, Keys.F10))
        self.assertEqual(self.browser.find("[role=menu]").get_attribute("aria-label"), "main")
        self.keys(Keys.ESCAPE)
        self.assertEqual(self.browser.run("return document.activeElement.className"), "flame-twin")

        x, y = self.point(2, 0.9)
        self.driver.execute_cdp_cmd(
            "Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]}
        )
        self.assertEqual(self.browser.find("[role=menu]").get_attribute("aria-label"), "retry")
        self.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        self.keys(Keys.ESCAPE)
        self.assertNotIn("zoom", self.params(), "a long press does not zoom, too")

    def test_transforms_are_chips_that_can_be_removed_and_undone(self):
        for word, kind in (("Hide", "hide"), ("recursion", "recursion"), ("package", "module"), ("Focus", "focus")):
            before = self.params()
            self.click(3, 0.1, button="right")
            name = self.browser.find("[role=menu]").get_attribute("aria-label")
            self.browser.find_text("[role=menuitem]", word).click()
            self.browser.settle()
            wanted = "json" if kind == "module" else name
            self.assertEqual(self.params()["transforms"], "%s %s" % (kind, wanted))
            chip = self.browser.find(".flame-chip")
            self.assertIn(wanted, chip.text)
            self.driver.back()
            self.browser.settle()
            self.assertEqual(self.params(), before)
            self.assertEqual(self.driver.find_elements("css selector", ".flame-chip"), [])
            self.driver.forward()
            self.browser.find(".flame-chip button").click()
            self.browser.settle()
            self.assertEqual(self.params(), before)
            self.setUp()  # a page without entries to go forward to

    def test_stacks_with_or_without_a_function_are_queried_from_the_server(self):
        self.click(2, 0.9, button="right")
        self.browser.find_text("[role=menuitem]", "Only stacks without it").click()
        self.browser.settle()
        self.assertEqual(self.params()["without"], "retry")
        self.assertEqual(self.browser.find(".figure").text, "6 s")

    def choose_of(self, row, share, word):
        self.click(row, share, button="right")
        self.browser.find_text("[role=menuitem]", word).click()
        self.browser.settle()

    def test_a_resting_pointer_shows_where_the_function_is_defined(self):
        self.hover(3, 0.1)
        self.shows("json.encode", "json, Go", "json.encode.c:1")
        self.hover(3, 0.5)
        self.shows("db.load", "db.load.c:1")
        tooltip = self.browser.find(".flame-tooltip").text
        for fact in ("db.load.c:1", "/usr/bin/shop", "build id id of /usr/bin/shop"):
            self.assertIn(fact, tooltip.splitlines())

    def test_the_menu_leads_to_lines_and_traces_of_the_function(self):
        focused = "return document.activeElement.textContent"
        for word, part, head in (("Show its lines", "lines", "Lines"), ("Find its traces", "spans", "Spans behind it")):
            self.choose_of(3, 0.1, word)
            self.assertEqual(self.address()[0], "/function")
            self.assertEqual((self.params()["function"], self.params()["part"]), ("json.encode", part))
            self.assertEqual(self.browser.run(focused), head)
            self.driver.back()
            self.browser.settle()

    # ---- what is remembered, and what a link says ----

    def test_a_link_to_a_frame_shows_it_in_the_colours_of_the_sender(self):
        self.browser.find_text("select option", "by self").click()
        self.browser.settle()
        self.assertEqual(self.params()["palette"], "self")
        self.choose_of(2, 0.1, "Copy link to this frame")
        link = self.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0], arguments[0])")
        self.browser.run("localStorage.clear()")
        self.browser.open(link)
        self.browser.settle()
        self.assertEqual(self.crumbs(), ["total", "main", "handle"])
        self.assertEqual(self.params()["palette"], "self")

    def test_a_choice_is_remembered_and_the_address_may_override_it(self):
        theme = "return document.documentElement.dataset.theme"
        self.browser.run("localStorage.clear()")
        self.open("/profile", **SHOP, theme="light", palette="package")
        by_package = self.pixels()
        self.browser.find_text("select option", "by kind").click()
        self.open("/profile", **SHOP, theme="light")
        self.assertNotEqual(self.pixels(), by_package)
        self.open("/profile", **SHOP, theme="light", palette="package")
        self.assertEqual(self.pixels(), by_package)

        self.keys("t")
        self.assertEqual(self.browser.run(theme), "dark")
        self.assertNotIn("theme", self.params())
        self.open("/profile", **SHOP, theme="light", language="zh")
        self.assertEqual(self.browser.run(theme), "light")
        self.browser.find_text("main button", "火焰图")
        self.open("/profile", **SHOP)
        self.assertEqual(self.browser.run(theme), "dark")
        self.browser.find_text("main button", "Flame graph")
        self.browser.run("localStorage.clear()")

    # ---- search ----

    def test_search_counts_nested_matches_once_and_n_leads_from_match_to_match(self):
        self.keys("f")
        self.assertEqual(self.browser.run("return document.activeElement.id"), "search")
        self.keys("^json\\.", Keys.ENTER)
        # 40 + 30: the inner json.encode of the 30 is within the outer one.
        self.assertIn("3 frames of 1 function: 7 s, 70.00% of all", self.browser.find(".flame-matches").text)
        self.browser.find_text("summary", "Functions that match").click()
        self.browser.find(".flame-match-list li")
        (row,) = self.driver.find_elements("css selector", ".flame-match-list li")
        self.assertEqual(row.text, "json.encode 7 s, 70.00% of all, in 3 frames")
        row.find_element("css selector", "button").click()
        self.browser.settle()
        self.assertEqual(self.crumbs(), ["total", "main", "handle", "json.encode"])
        self.driver.back()
        self.browser.settle()
        self.assertEqual(self.params()["search"], "^json\\.")
        self.focus_picture()
        levels = []
        for _ in range(4):
            self.keys("n")
            self.assertIn("json.encode", self.live())
            levels.append(
                self.browser.run("return document.querySelector('[aria-selected=true]').getAttribute('aria-level')")
            )
        self.assertEqual(levels, ["4", "4", "5", "4"])
        self.keys((Keys.SHIFT, "n"))
        self.assertEqual(
            self.browser.run("return document.querySelector('[aria-selected=true]').getAttribute('aria-level')"), "5"
        )
        self.open("/profile", **SHOP, search="[")
        self.assertIn("not a regular expression", self.browser.find(".flame-matches").text)
        self.keys((Keys.CONTROL, "f"))
        self.assertEqual(self.browser.run("return document.activeElement.id"), "search")

    # ---- keys ----

    def test_keys_move_zoom_copy_and_return(self):
        self.focus_picture()
        for key, name in (
            (Keys.ARROW_DOWN, "main"),
            (Keys.ARROW_DOWN, "handle"),
            (Keys.ARROW_RIGHT, "retry"),
            (Keys.ARROW_LEFT, "handle"),
            (Keys.ARROW_UP, "main"),
            (Keys.HOME, "total"),
            (Keys.ARROW_DOWN, "main"),
            (Keys.ARROW_DOWN, "handle"),
        ):
            self.keys(key)
            self.assertTrue(self.live().startswith(name + ", total"), (key, self.live()))
            self.shows(name)
        self.keys((Keys.CONTROL, "c"))
        self.assertEqual(
            self.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0], arguments[0])"),
            "handle",
        )
        self.keys(Keys.ENTER)
        self.assertEqual(self.crumbs(), ["total", "main", "handle"])
        self.keys(Keys.BACKSPACE)
        self.assertEqual(self.crumbs(), ["total", "main"])
        for key in (Keys.ESCAPE, "0"):
            self.keys(Keys.ARROW_DOWN, Keys.ENTER)
            self.assertGreater(len(self.crumbs()), 1)
            self.keys(key)
            self.assertEqual(self.crumbs(), ["total"])

    def test_keys_of_the_page_choose_view_direction_theme_and_help(self):
        for key, view in (("2", "table"), ("3", "both"), ("4", "sandwich"), ("1", "flame")):
            self.keys(key)
            self.assertEqual(self.params()["view"], view)
        self.keys("i")
        self.assertEqual(self.params()["flip"], "1")
        self.assertIn("From the leaves", self.browser.find(".flame-chip").text)
        self.hover(1, 0.1)
        self.shows("json.encode", "70.00%")
        self.keys("i")
        self.assertNotIn("flip", self.params())
        before = self.browser.run("return document.documentElement.dataset.theme")
        picture = self.pixels()
        self.keys("t")
        self.assertNotEqual(self.browser.run("return document.documentElement.dataset.theme"), before)
        self.assertNotEqual(self.pixels(), picture)
        self.keys("t")
        self.keys("?")
        self.assertEqual(self.address()[0], "/help")
        self.driver.back()
        self.browser.settle()
        self.keys("5")
        self.assertEqual(self.address()[0], "/diff")
        self.assertEqual(self.params()["q"], SHOP["q"])

    def test_names_that_the_menu_copies_are_whole(self):
        read = "navigator.clipboard.readText().then(arguments[0], arguments[0])"
        self.click(3, 0.1, button="right")
        self.browser.find_text("[role=menuitem]", "Copy stack").click()
        self.assertEqual(self.driver.execute_async_script(read).split("\n"), ["main", "handle", "json.encode"])
        self.browser.find_text("button", "Copy link").click()
        link = self.driver.execute_async_script(read)
        self.assertTrue(re.search(r"from=\d{13}&.*to=\d{13}", link), link)


if __name__ == "__main__":
    unittest.main()
