"""Everything by keyboard: a whole investigation without a pointer, and a visible focus wherever Tab leads."""

import unittest

from browser import Keys, PageTest
from more_pages import MORE_PAGES, fill_more
from pprof import Profile
from server import now_ms

# Each element that gets the focus: what it is, where it is in the document, and whether a person sees that it has the focus.
WATCH = """
  const isNew = !window.stops;
  window.stops = [];
  window.firstStop = null;
  window.isAround = false;
  for (const e of document.querySelectorAll("[data-reached]")) delete e.dataset.reached;
  if (isNew) document.addEventListener("focusin", ({ target }) => {
    window.isAround ||= target === window.firstStop;
    if (window.isAround) return;
    window.firstStop ??= target;
    const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(target);
    const { left, top, right, bottom } = target.getBoundingClientRect();
    const isLarge = (e) => {
      const { width, height } = e.getBoundingClientRect();
      return Math.round(width) >= 24 && Math.round(height) >= 24;
    };
    let [x, y] = [scrollX, scrollY];
    for (let e = target.parentElement; e && e !== document.body; e = e.parentElement) {
      x += e.scrollLeft;
      y += e.scrollTop;
    }
    stops.push({
      what: target.outerHTML.slice(0, 120),
      left: left + x, top: top + y, right: right + x, bottom: bottom + y,
      isRinged: target.matches("main") || (outlineStyle === "solid" && parseFloat(outlineWidth) >= 2 && !/, 0\\)/.test(outlineColor)),
      isSeen: right > 0 && bottom > 0 && left < innerWidth && top < innerHeight,
      // A label can be hit in place of its field.
      isLarge: target.matches("main") || isLarge(target) || isLarge(target.closest("label") ?? target),
    });
    target.dataset.reached = "";
  });"""
# The next Tab leads to the first control, as in a page that was just loaded: Tab goes on where the removed element was.
BEGIN = """
  const first = document.createElement("span");
  first.tabIndex = -1;
  document.body.prepend(first);
  first.focus();
  first.remove();"""
# What can be worked with, but for what arrow keys reach.
MISSED = """
  const controls = "a[href], button, input, select, textarea, summary, [tabindex]";
  return [...document.querySelectorAll(controls)]
    .filter((e) => e.checkVisibility({ visibilityProperty: true }) && !e.disabled && e.tabIndex >= 0 && e.dataset.reached === undefined)
    .map((e) => e.outerHTML.slice(0, 120));"""


def profile(minutes, **seconds):
    made = Profile(
        [("cpu", "nanoseconds")], time_ns=(now_ms() - minutes * 60_000) * 1_000_000, duration_ns=10_000_000_000
    )
    for stack, value in seconds.items():
        made.add(["main", *stack.split("_")], [value * 1_000_000_000])
    return made.encode()


class Keyboard(PageTest):
    @classmethod
    def fill(cls, server):
        labels = {"__name__": "process_cpu", "service_name": "shop", "region": "eu"}
        server.push(profile(45, handle_encode=3, handle_load=2, idle=1), labels)
        server.push(profile(5, handle_encode=6, handle_load=2, idle=1), labels)
        server.push(profile(5, work=1), {"__name__": "process_cpu", "service_name": "cart"})
        fill_more(server)

    def tab_to(self, css, most=60):
        """Presses Tab until the element has the focus; each stop on the way shows it."""
        self.browser.run(WATCH + "window.wanted = arguments[0]", css)
        for _ in range(most):
            self.browser.press(Keys.TAB)
            if self.browser.run("return document.activeElement.matches(wanted)"):
                self.check_stops()
                return
        self.fail("Tab does not lead to " + css)

    def check_stops(self):
        for stop in self.browser.run("return stops"):
            self.assertTrue(stop["isRinged"] and stop["isSeen"] and stop["isLarge"], stop)

    def keys(self, *keys):
        self.browser.press(*keys)
        self.browser.settle()

    def live(self):
        return self.browser.run("return document.querySelector('.flame-live').textContent")

    def accent_pixels(self):
        """Pixels of the picture in the colour of the cursor."""
        return self.browser.run("""
            const canvas = document.querySelector(".flame-canvas");
            const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
            copy.drawImage(canvas, 0, 0);
            const probe = new OffscreenCanvas(1, 1).getContext("2d");
            probe.fillStyle = document.documentElement.dataset.theme === "dark" ? "oklch(0.75 0.15 58)" : "oklch(0.6 0.17 45)";
            probe.fillRect(0, 0, 1, 1);
            const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
            const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
            let n = 0;
            for (let i = 0; i < data.length; i += 4)
              n += Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 9 ? 1 : 0;
            return n;""")

    def test_from_the_services_to_the_hottest_function_and_on_to_its_change(self):
        self.open("/")
        self.tab_to("tbody th a")
        self.keys(Keys.ENTER)
        self.assertEqual(self.address()[0], "/profile")
        self.assertEqual(self.driver.title, "shop · Profile · Hearth")
        self.assertEqual(
            self.browser.run("return document.activeElement.localName"), "main", "Tab goes on in the new page"
        )

        # The table's first row is the hottest function.
        self.keys("f", "enc", Keys.ENTER)
        self.assertIn("1 function: 9 s, 60.00% of all", self.browser.find(".flame-matches").text)
        self.assertEqual(self.accent_pixels(), 0)
        self.tab_to(".flame-twin")
        self.keys("n")
        self.assertTrue(self.live().startswith("encode, total 60.00%, self 60.00%"), self.live())
        self.assertGreater(self.accent_pixels(), 100, "the cursor is not drawn")
        self.keys(Keys.ENTER)
        self.assertEqual(len(self.params()["zoom"].split(".")), 3)

        self.keys((Keys.SHIFT, Keys.F10))
        self.assertEqual(self.browser.run("return document.activeElement.getAttribute('role')"), "menuitem")
        while "Callers and callees" not in self.browser.run("return document.activeElement.textContent"):
            self.keys(Keys.ARROW_DOWN)
        self.check_stops()
        self.keys(Keys.ENTER)
        self.assertIn("Callers of encode", self.browser.find(".sandwich").text)
        self.driver.back()
        self.driver.back()
        self.browser.settle()
        self.assertNotIn("zoom", self.params())

        self.keys("5")
        self.assertEqual(self.address()[0], "/diff")
        self.tab_to("button.export")
        self.keys(Keys.ENTER, Keys.ARROW_UP)
        self.assertEqual(self.browser.run("return document.activeElement.textContent"), "speedscope")
        self.keys(Keys.ARROW_UP, Keys.ENTER)
        file = self.browser.until(lambda: next(self.downloads.glob("*.txt"), None), "a download")
        self.assertIn("main;handle;encode ", file.read_text())
        self.assertTrue(self.browser.run("return document.activeElement.matches('button.export')"), "the focus is lost")

    def check_order(self):
        """No stop is above the one before it in the same column, or to the left of it in the same row."""
        stops = [stop for stop in self.browser.run("return stops") if "<main" not in stop["what"]]
        for before, after in zip(stops, stops[1:]):
            is_back = after["right"] <= before["left"] and before["top"] < after["bottom"] and after["top"] < before["bottom"]
            is_up = after["bottom"] <= before["top"] and after["left"] < before["right"]
            self.assertFalse(is_back or is_up, "after %s follows %s" % (before, after))

    def tab_through(self):
        """Presses Tab until the focus leaves the page or is at its first stop again."""
        self.browser.run(BEGIN + WATCH)
        for _ in range(40):
            self.browser.press(*[Keys.TAB] * 20)
            if self.browser.run("return isAround"):
                return
        self.fail("800 times Tab did not lead through the page; the last stop was %s" % self.browser.run("return stops.at(-1)"))

    def test_tab_reaches_every_control_of_every_page_in_the_order_of_reading(self):
        self.open("/help")
        for path, params in (
            ("/", {"service": "shop"}),
            ("/profile", {"q": '{service_name="shop"}'}),
            ("/diff", {"from": "now-27m"}),
            ("/traces", {}),
            ("/profiles", {}),
            ("/adhoc", {}),
            ("/tasks", {}),
            ("/admin", {}),
            ("/help", {}),
            *MORE_PAGES,
        ):
            with self.subTest(path=path, **params):
                self.go(path, **params)
                self.tab_through()
                self.check_stops()
                self.check_order()
                self.assertEqual(self.browser.run(MISSED), [])

    def test_escape_closes_the_dialogue_that_a_key_opened(self):
        for path, opener, opened in (
            ("/profile", "button.export", "[role=menu]"),
            ("/profile", "#edit-selector", "#selector-text"),
            ("/help", "[aria-keyshortcuts]", ".commands"),
        ):
            with self.subTest(opener=opener):
                self.open(path, q='{service_name="shop"}')
                self.browser.run("document.querySelector(arguments[0]).focus()", opener)
                self.browser.press(Keys.ENTER)
                self.browser.find(opened)
                self.browser.press(Keys.ESCAPE)
                self.browser.settle()
                self.assertEqual(self.driver.find_elements("css selector", opened), [])
                self.assertTrue(self.browser.run("return document.activeElement.matches(arguments[0])", opener), "the focus is lost")

    def test_the_command_box_takes_keys_and_gives_the_focus_back(self):
        self.open("/")
        self.tab_to("tbody th a")
        self.keys((Keys.CONTROL, "k"), "admin")
        self.assertTrue(self.browser.run("return document.activeElement.matches('.commands input')"))
        self.keys(Keys.ESCAPE)
        self.assertEqual(self.driver.find_elements("css selector", ".commands"), [])
        self.assertTrue(self.browser.run("return document.activeElement.matches('tbody th a')"), "the focus is lost")
        self.keys((Keys.CONTROL, "k"), "admin", Keys.ENTER)
        self.assertEqual(self.address()[0], "/admin")


if __name__ == "__main__":
    unittest.main()
