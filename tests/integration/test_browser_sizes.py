"""Every page at every size that people have: nothing scrolls sideways, nothing is cut off, and everything can be hit.

A phone, a laptop, a desk, a wall, and a laptop zoomed to 200 % and to 400 %; then reduced motion and paper.
"""

import unittest

from browser import Keys, PageTest
from more_pages import MORE_PAGES, fill_more
from pprof import Profile
from server import now_ms

# (width, height, device pixels for a pixel): a zoom leaves fewer pixels, which are larger.
SIZES = [(360, 740, 2), (1280, 800, 1), (1920, 1080, 1), (3840, 2160, 1), (640, 400, 2), (320, 256, 4)]
SHOP = {"q": '{service_name="shop"}'}
PAGES = [
    ("/", {"service": "shop"}),
    ("/profile", {**SHOP, "by": "region"}),
    ("/profile", {**SHOP, "view": "sandwich", "function": "encode"}),
    ("/diff", {**SHOP, "from": "now-27m"}),
    ("/traces", {}),
    ("/profiles", {}),
    ("/adhoc", {}),
    ("/tasks", {}),
    ("/admin", {}),
    ("/help", {}),
    *MORE_PAGES,
]

WRONG = """
  const found = [];
  const name = (e) => e.outerHTML.slice(0, 140).replace(/\\s+/g, " ");
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) found.push("the page scrolls sideways by " + (root.scrollWidth - root.clientWidth));
  const scrolls = (e) => { for (; e && e !== document.body; e = e.parentElement) if (/auto|scroll|hidden|clip/.test(getComputedStyle(e).overflowX)) return true; };
  for (const e of document.querySelectorAll("body *")) {
    const box = e.getBoundingClientRect();
    if (box.width === 0 || box.height === 0 || getComputedStyle(e).visibility !== "visible") continue;
    if (box.right > root.clientWidth + 1 && !scrolls(e.parentElement)) found.push("beyond the edge: " + name(e));
    if (!e.matches("a, button, input, select, summary, [tabindex='0']")) continue;
    if (e.closest("p, label")) continue;  // a link in a sentence; a label is as large as its text
    if (Math.round(box.width) < 24 || Math.round(box.height) < 24) found.push("hard to hit, " + box.width + " x " + box.height + ": " + name(e));
    if (e.matches("button") && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).textOverflow !== "ellipsis") found.push("cut off: " + name(e));
  }
  return found;"""


def profile(minutes, **seconds):
    made = Profile(
        [("cpu", "nanoseconds")], time_ns=(now_ms() - minutes * 60_000) * 1_000_000, duration_ns=10_000_000_000
    )
    for stack, value in seconds.items():
        made.add(["main", *stack.split("_")], [value * 1_000_000_000])
    made.add(["main"] + ["level%d" % i for i in range(60)], [2_000_000_000])
    return made.encode()


class Sizes(PageTest):
    @classmethod
    def fill(cls, server):
        labels = {
            "__name__": "process_cpu",
            "service_name": "shop",
            "region": "eu",
            "build": "a-long-name-of-a-build-" * 4,
        }
        server.push(profile(45, handle_encode=3, handle_load=2, idle=1), labels)
        server.push(profile(5, handle_encode=6, handle_load=2, idle=1), labels)
        server.push(
            profile(5, work=1), {"__name__": "process_cpu", "service_name": "a-service-with-quite-a-long-name-" * 3}
        )
        fill_more(server)

    def emulate(self, command, **parameters):
        self.driver.execute_cdp_cmd("Emulation." + command, parameters)

    def resize(self, width, height, scale=1):
        self.emulate("setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)

    def test_nothing_is_cut_off_or_hard_to_hit_at_any_size(self):
        for path, params in PAGES:
            self.resize(*SIZES[0])
            self.open(path, **params)
            for size in SIZES:
                with self.subTest(path=path, size=size, **params):
                    self.resize(*size)
                    self.browser.settle()
                    found = self.browser.run(WRONG)
                    self.assertEqual(found, [], "\n" + "\n".join(found))

    def test_the_picture_is_as_sharp_as_the_screen(self):
        for size in SIZES[:3]:
            self.resize(*size)
            self.open("/profile", **SHOP, view="flame")
            self.browser.find(".flame-canvas")
            drawn, shown = self.browser.run(
                "const { width, clientWidth } = document.querySelector('.flame-canvas'); return [width, clientWidth]"
            )
            self.assertEqual(drawn, shown * size[2])

    def test_less_motion_is_no_motion(self):
        self.resize(1280, 800)
        self.emulate("setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
        self.open("/profile", **SHOP, view="flame")
        self.browser.find(".flame-canvas")
        self.browser.run("""
            document.querySelector(".flame-twin").focus();
            const { fillRect } = CanvasRenderingContext2D.prototype;
            window.pictures = new Set();
            CanvasRenderingContext2D.prototype.fillRect = function (...box) {
              pictures.add(box.join());
              return fillRect.apply(this, box);
            };""")
        moving = "return document.getAnimations().length + [...document.querySelectorAll('*')].filter((e) => getComputedStyle(e).transitionDuration !== '0s').length"
        self.assertEqual(self.browser.run(moving), 0)
        self.browser.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
        self.browser.settle()
        self.browser.run("pictures.clear()")
        self.browser.press(Keys.ENTER)
        self.browser.settle()
        first = self.browser.run("return [...pictures]")
        self.browser.run("pictures.clear(); document.querySelector('.flame-scroll').dispatchEvent(new Event('scroll'))")
        self.browser.until(lambda: self.browser.run("return pictures.size > 0"), "a picture")
        self.assertEqual(set(first), set(self.browser.run("return [...pictures]")), "boxes were drawn on the way")
        self.emulate("setEmulatedMedia", features=[])

    def test_paper_has_the_whole_graph_and_no_buttons(self):
        self.resize(1280, 800)
        self.open("/profile", **SHOP, view="flame")
        self.browser.find(".flame-canvas")
        visible = self.browser.run("return document.querySelector('.flame-canvas').height")
        self.emulate("setEmulatedMedia", media="print")
        self.browser.run("dispatchEvent(new Event('beforeprint'))")
        height, shown, bars = self.browser.run(
            """
            const canvas = document.querySelector(".flame-canvas");
            return [canvas.height, canvas.getBoundingClientRect().height, document.querySelector("header").getBoundingClientRect().height]"""
        )
        self.assertEqual(height, 62 * 20)  # root, main and 60 levels
        self.assertGreater(shown, visible)
        self.assertEqual(bars, 0)
        self.emulate("setEmulatedMedia", media="")
        self.browser.run("dispatchEvent(new Event('afterprint'))")
        self.assertEqual(self.browser.run("return document.querySelector('.flame-canvas').height"), visible)


if __name__ == "__main__":
    unittest.main()
