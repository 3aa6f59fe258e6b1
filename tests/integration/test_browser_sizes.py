"""Every page at every size that people have: nothing scrolls sideways, nothing is cut off, and everything can be hit.

A phone, a laptop, a desk, a wall, and a laptop zoomed to 200 % and to 400 %; then reduced motion and paper.
"""

import json
import unittest

import directing_data
import tasks
from browser import FIRST, Keys, PageTest, in_turns
from more_pages import MORE_PAGES, fill_more
from pprof import Profile
from server import now_ms

# (width, height, device pixels for a pixel): a zoom leaves fewer pixels, which are larger.
SIZES = [(360, 740, 2), (1280, 800, 1), (1920, 1080, 1), (3840, 2160, 1), (640, 400, 2), (320, 256, 4)]
SHOP = {"q": '{service_name="shop"}'}
PAGES = [
    ("/", {"service": "shop"}),
    ("/profile", {**SHOP, "by": "region"}),
    ("/profile", {**SHOP, "from": "now-3d"}),
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

# Names that have no place to be broken, and more of them than fit.
LONG = {kind: "_".join([kind] + ["x" * 60] * 3) for kind in ("service", "label", "value", "function", "endpoint", "file", "instance", "why", "token")}
LONG_SHOP = {"q": json.dumps({"service_name": LONG["service"]}).replace(": ", "=").replace('"service_name"', "service_name")}
TRACE = "0123456789abcdef0123456789abcdef"

WRONG = """
  const found = [];
  const name = (e) => e.outerHTML.slice(0, 140).replace(/\\s+/g, " ");
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) found.push("the page scrolls sideways by " + (root.scrollWidth - root.clientWidth));
  const bar = document.querySelector(".bar:not(.query)");
  if (root.clientWidth > 1200 && bar.offsetHeight > 60) found.push("the first bar has two lines");
  const context = document.createElement("canvas").getContext("2d");
  const widthOf = (text, style) => (context.font = style.font, context.measureText(text).width);
  const scrolls = (e) => { for (; e && e !== document.body; e = e.parentElement) if (/auto|scroll|hidden|clip/.test(getComputedStyle(e).overflowX)) return true; };
  for (const e of document.querySelectorAll("body *")) {
    const box = e.getBoundingClientRect();
    if (box.width === 0 || box.height === 0 || getComputedStyle(e).visibility !== "visible") continue;
    const style = getComputedStyle(e);
    if (/hidden|clip/.test(style.overflowX) && style.textOverflow !== "ellipsis" && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 1 &&
      [...e.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim())) found.push("cut without a sign: " + name(e));
    const inside = e.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    if (e.matches("input[placeholder]") && widthOf(e.placeholder, style) > inside + 1) found.push("the placeholder is cut: " + name(e));
    if (e.matches("td.number") && e.scrollWidth > e.clientWidth + 1) found.push("a number is cut: " + name(e));
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
        server.push(profile(45, handle_encode=3, handle_load=2, idle=3200), labels)  # 53.5 min
        server.push(profile(5, handle_encode=6, handle_load=2, idle=1), labels)
        server.push(
            profile(5, work=1), {"__name__": "process_cpu", "service_name": "a-service-with-quite-a-long-name-" * 3}
        )
        fill_more(server)
        cls.long_pages = cls.fill_long(server)

    @classmethod
    def fill_long(cls, server):
        """The addresses of pages whose every name is long."""
        labels = {"__name__": "process_cpu", "service_name": LONG["service"], **{LONG["label"] + str(i): LONG["value"] for i in range(8)}}
        for minutes in range(54, 0, -3):
            made = Profile([("cpu", "nanoseconds")], time_ns=(now_ms() - minutes * 60_000) * 1_000_000, duration_ns=10_000_000_000)
            ids = {"trace_id": TRACE, "span_id": "00f067aa0ba902b7", "trace endpoint": LONG["endpoint"]}
            made.add(["main", LONG["function"], "before" if minutes > 27 else "after"], [(100 + minutes % 7) * 10_000_000], ids)
            made.add(["main", LONG["function"]], [2_000_000_000 + minutes])
            server.push(made.encode(), labels)
        listed = server.connect("hearth.v1.ProfileService/ListProfiles", {
            "filter": {"start": str(now_ms() - 3_600_000), "end": str(now_ms()), "labelSelector": LONG_SHOP["q"]}})
        server.http("POST", "/ingest?name=" + LONG["service"], LONG["why"].encode())
        server.push(profile(5, work=1), {**labels, "gone": "1"})
        server.connect("hearth.v1.AdminService/Erase", {
            "labelSelector": LONG_SHOP["q"].replace("}", ', gone="1"}'), "start": "0", "end": str(now_ms()), "requestedBy": LONG["why"],
            "expectedSeries": "1"})
        server.connect("hearth.v1.AccessService/CreateToken", {"name": LONG["token"][:100], "grants": [
            {"tenant": "anonymous", "role": "viewer", "selector": LONG_SHOP["q"]}]})
        upload = lambda name: server.connect("adhocprofiles.v1.AdHocProfileService/Upload", {"name": name + LONG["file"], "profile": "bWFpbjtwYXJzZSA4MAo="})
        task = tasks.create(server, "PPROF", service=LONG["service"], instances=[LONG["instance"]], events=["cpu"])
        directing_data.set_policy(server, LONG["service"], [directing_data.CPU], [directing_data.ERRORS], by=LONG["why"])
        return [
            ("/", {"service": LONG["service"]}),
            ("/profile", {**LONG_SHOP, "by": LONG["label"] + "0", "search": LONG["function"]}),
            ("/profile", {**LONG_SHOP, "with": LONG["function"], "transforms": "focus " + LONG["function"]}),
            ("/diff", {**LONG_SHOP, "from": "now-27m"}),
            ("/compare", {**LONG_SHOP, "from": "now-27m"}),
            ("/function", {**LONG_SHOP, "function": LONG["function"], "history": "range"}),
            ("/heatmap", LONG_SHOP),
            ("/traces", {}),
            ("/traces", {"id": TRACE}),
            ("/profiles", {}),
            ("/profiles", {"id": listed["profiles"][0]["id"]}),
            ("/adhoc", {"ids": upload("one")["id"] + " " + upload("two")["id"]}),
            ("/tasks", {}),
            ("/tasks", {"id": task}),
            ("/tasks", {"new": "1", "service": LONG["service"]}),
            ("/policies", {}),
            ("/policies", {"service": LONG["service"]}),
            *(("/admin", {"part": part}) for part in ("applications", "retention", "deletion", "errors", "queries", "access", "audit")),
        ]

    def emulate(self, command, **parameters):
        self.driver.execute_cdp_cmd("Emulation." + command, parameters)

    def resize(self, width, height, scale=1):
        self.emulate("setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)

    def test_nothing_is_cut_off_or_hard_to_hit_at_any_size(self):
        self.open("/help")
        titles = set()
        for place, (path, params) in enumerate(PAGES + self.long_pages):
            sizes = in_turns(SIZES, place)
            self.resize(*sizes[0])
            self.go(path, **params)
            titles.add(self.browser.run("return document.querySelector('main h1').textContent"))
            for size in sizes:
                with self.subTest(path=path, size=size, first=FIRST, **params):
                    self.resize(*size)
                    self.browser.settle()
                    found = self.browser.run(WRONG)
                    self.assertEqual(found, [], "\n" + "\n".join(found))
        self.assertGreater(len(titles), 9, titles)  # these were different pages

    def test_a_table_that_is_wider_than_a_phone_scrolls_in_its_own_box_by_keys_too(self):
        self.resize(*SIZES[0])
        self.open("/admin", part="retention")
        table = "[...document.querySelectorAll('.rows')].find((box) => box.querySelectorAll('thead th').length > 4)"
        width, whole = self.browser.run("const box = %s; return [box.clientWidth, box.scrollWidth]" % table)
        self.assertGreater(whole, width, "there is nothing to scroll to")
        self.browser.run(table + ".querySelector('a').focus()")
        self.browser.press(*[Keys.ARROW_RIGHT] * 40)
        self.browser.until(lambda: self.browser.run("const box = %s; return box.scrollLeft + box.clientWidth >= box.scrollWidth - 1" % table),
                           "the last column")
        self.assertEqual(self.browser.run("return document.documentElement.scrollLeft"), 0)

    def test_the_picture_is_as_sharp_as_the_screen(self):
        for size in SIZES[:3]:
            self.resize(*size)
            self.open("/profile", **SHOP, view="flame")
            self.browser.find(".flame-canvas")
            drawn, shown = self.browser.run(
                "const { width, clientWidth } = document.querySelector('.flame-canvas'); return [width, clientWidth]"
            )
            self.assertEqual(drawn, shown * size[2])

    def test_a_wish_for_reduced_motion_stops_all_motion(self):
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
