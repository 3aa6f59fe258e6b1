"""Everything by keyboard: a whole investigation without a pointer, and a visible focus wherever Tab leads."""

import unittest

from browser import Keys, PageTest
from pprof import Profile
from server import now_ms

# Of each element that gets the focus: what it is, and whether a person sees that it has it.
WATCH = """
  window.stops = [];
  document.addEventListener("focusin", ({ target }) => {
    const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(target);
    const { left, top, right, bottom } = target.getBoundingClientRect();
    // A label can be hit in place of its field.
    const { width, height } = (target.closest("label") ?? target).getBoundingClientRect();
    stops.push({
      what: target.outerHTML.slice(0, 120),
      isRinged: target.matches("main") || (outlineStyle === "solid" && parseFloat(outlineWidth) >= 2 && !/, 0\\)/.test(outlineColor)),
      isSeen: right > 0 && bottom > 0 && left < innerWidth && top < innerHeight,
      isLarge: target.matches("main") || (Math.round(width) >= 24 && Math.round(height) >= 24),
    });
  });"""


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

    def test_from_the_services_to_the_hottest_function_and_on_to_what_changed(self):
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

    def test_every_stop_of_tab_is_large_and_shows_that_it_has_the_focus(self):
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
        ):
            with self.subTest(path=path):
                self.open(path, **params)
                self.browser.run(WATCH)
                self.browser.press(*[Keys.TAB] * 70)
                self.check_stops()
                self.assertGreater(self.browser.run("return stops.length"), 10)

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
