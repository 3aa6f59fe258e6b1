"""Names from strangers are text on every page and in every file that the page makes, whatever they are called."""

import base64
import gzip
import json
import re
import struct
import unittest

from browser import Keys, PageTest
from flame_pages import embedded
from hostile import ELEMENTS, NAMES, unseen
from pprof import Decoded, Profile
from server import now_ms

SERVICE = "<img src=x onerror=window.hacked=1>\u202e\u200b&lt;</title>"
LABELS = {
    "__name__": "process_cpu",
    "service_name": SERVICE,
    "team": "<script>window.hacked=1</script>\u2066",
    "pod": "\u202epod",
}
HOSTILE = {"q": "{service_name=%s}" % json.dumps(SERVICE, ensure_ascii=False)}
VALUE = 10_000_000
# A file that is complete, with a name that is safe anywhere: Chromium writes to others first.
COMPLETE = re.compile(r"[\w-][\w.-]*\.(png|svg|html|pb\.gz|txt|json)$")

# What of the document is not the page's own: elements, handlers of events, addresses that are code, and text that is not seen.
FOREIGN = r"""
  const known = new Set(arguments[0]);
  const found = [];
  for (const element of document.querySelectorAll("*")) {
    if (!known.has(element.localName)) found.push("<" + element.localName + ">");
    for (const { name, value } of element.attributes)
      if (/^on|^srcdoc$/.test(name) || /^(href|src|action)$/.test(name) && /^\s*(javascript|data):/.test(value)) found.push(name + "=" + value);
  }
  if (document.querySelectorAll("script:not([src^='/assets/'])").length) found.push("a script");
  return found;"""
TEXTS = """
  const texts = [];
  for (const walk = document.createTreeWalker(document, NodeFilter.SHOW_TEXT); walk.nextNode();) texts.push(walk.currentNode.data);
  for (const element of document.querySelectorAll("[title], [aria-label]"))
    texts.push(element.getAttribute("title") ?? "", element.getAttribute("aria-label") ?? "");
  return texts.join("\\n");"""


def profile(minutes, names):
    made = Profile(
        [("cpu", "nanoseconds")], time_ns=(now_ms() - minutes * 60_000) * 1_000_000, duration_ns=10_000_000_000
    )
    for name in names:
        made.add(
            ["main", name, "leaf"],
            [VALUE],
            {"trace_id": "0123456789abcdef0123456789abcdef", "span_id": "00000000000000a1"},
        )
    return made.encode()


class HostileNames(PageTest):
    @classmethod
    def fill(cls, server):
        assert len(NAMES) > 100
        server.push(profile(45, NAMES[::2]), LABELS)
        server.push(profile(5, NAMES), LABELS)
        cls.total = (len(NAMES[::2]) + len(NAMES)) * VALUE

    def nothing_is_made_of_names(self, where):
        self.assertEqual(self.browser.run(FOREIGN, ELEMENTS), [], where)
        self.assertEqual(unseen(self.browser.run(TEXTS)), [], where)
        self.assertIsNone(self.browser.run("return window.hacked ?? null"), where)
        self.assertEqual(self.browser.complaints(), [], where)

    def test_names_are_text_on_every_page(self):
        files = [
            self.server.connect(
                "adhocprofiles.v1.AdHocProfileService/Upload",
                {
                    "name": NAMES[i] + ".txt",
                    "profile": base64.b64encode(
                        "".join("main;%s %d\n" % (re.sub(r"[\s;]", "_", name), i + 1) for name in NAMES).encode()
                    ).decode(),
                },
            )["id"]
            for i in range(2)
        ]
        listed = self.server.connect(
            "hearth.v1.ProfileService/ListProfiles",
            {"filter": {"start": str(now_ms() - 3_600_000), "end": str(now_ms())}},
        )["profiles"]
        self.open("/help", page=NAMES[0])
        for path, params in (
            ("/", {"service": SERVICE}),
            ("/", HOSTILE),
            *(
                ("/profile", {**HOSTILE, "view": view, "function": NAMES[0], "by": "team"})
                for view in ("flame", "table", "both", "sandwich")
            ),
            (
                "/profile",
                {**HOSTILE, "flip": "1", "search": NAMES[0], "transforms": "hide %s\nfocus %s" % (NAMES[1], NAMES[2])},
            ),
            ("/profile", {**HOSTILE, "with": NAMES[0], "without": NAMES[1]}),
            ("/profile", {**HOSTILE, "type": NAMES[0], "by": NAMES[1]}),
            ("/diff", {**HOSTILE, "from": "now-27m"}),
            ("/traces", HOSTILE),
            ("/traces", {"id": "0123456789abcdef0123456789abcdef"}),
            ("/profiles", HOSTILE),
            ("/profiles", {"id": listed[0]["id"]}),
            ("/profiles", {"id": NAMES[0]}),
            ("/adhoc", {"ids": files[0]}),
            ("/adhoc", {"ids": " ".join(files)}),
            ("/tasks", {"id": NAMES[0]}),
            ("/help", {"page": NAMES[0]}),
            ("/compare", HOSTILE),
            ("/function", {**HOSTILE, "function": NAMES[0], "history": "range"}),
            ("/heatmap", HOSTILE),
            ("/policies", {"service": SERVICE}),
            ("/network", {"service": SERVICE, "instance": NAMES[0]}),
            ("/admin", {"part": "applications"}),
        ):
            with self.subTest(path=path, **params):
                self.go(path, **params)
                self.nothing_is_made_of_names(path + str(params))

    def test_menu_tooltip_and_twin_show_names_as_text(self):
        self.open("/profile", **HOSTILE, view="flame")
        canvas = self.browser.find(".flame-canvas").rect
        for i in range(0, 40):
            x, y = int(canvas["x"] + (i + 0.5) * canvas["width"] / 40), int(canvas["y"] + 50)
            self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})
            if i % 8 == 0:
                self.browser.find(".flame-tooltip")
            self.nothing_is_made_of_names("tooltip %d" % i)
        self.browser.run("document.querySelector('.flame-twin').focus()")
        self.browser.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, (Keys.SHIFT, Keys.F10))
        self.browser.find("[role=menu]")
        self.nothing_is_made_of_names("menu")

    # ---- files ----

    def download(self, form):
        for old in self.downloads.iterdir():
            old.unlink()
        self.browser.find("button.export").click()
        self.browser.find_text("[role=menuitem]", form).click()
        return self.browser.until(
            lambda: next((f for f in self.downloads.iterdir() if COMPLETE.match(f.name)), None), form
        )

    def opened(self, file):
        self.browser.open(file.as_uri())
        self.assertEqual(self.browser.complaints(), [], file)
        self.assertIsNone(self.browser.run("return window.hacked ?? null"), file)
        self.assertEqual(
            self.browser.run("return performance.getEntriesByType('resource').length"), 0, "the file asked the network"
        )

    def exported(self, form):
        self.open("/profile", **HOSTILE, view="flame")
        return self.download(form)

    def test_a_png_export_has_the_size_of_the_graph(self):
        content = self.exported("PNG").read_bytes()
        self.assertEqual(content[:8], b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", content[16:24])
        self.assertGreater(width, 1500)
        self.assertEqual(height, 2 * 4 * 20)  # root, main, name, leaf, at two pixels for one

    def test_an_svg_export_shows_names_as_text(self):
        file = self.exported("SVG")
        self.assertEqual(unseen(file.read_text()), [])
        self.opened(file)
        kinds = self.browser.run(
            "return [...new Set([...document.querySelectorAll('*')].map((e) => e.localName))].sort()"
        )
        self.assertLessEqual(set(kinds), {"svg", "title", "defs", "pattern", "path", "rect", "g", "text"})
        self.assertEqual(self.browser.run(FOREIGN, ELEMENTS), [])
        titles = self.browser.run(
            "return [...document.querySelectorAll('g > title')].map((t) => t.textContent).join('\\n')"
        )
        self.assertIn("<script>window.hacked=1</script> ·", titles)

    def test_an_html_export_shows_names_as_text(self):
        file = self.exported("HTML")
        text = file.read_text()
        self.assertEqual(unseen(text), [])
        self.assertIn("""content="default-src 'none'""", text)
        self.assertNotRegex(text, r"(?i)https?://(?!www\.w3\.org/2000/svg)")
        self.opened(file)
        self.assertEqual(self.browser.run(FOREIGN, ELEMENTS), ["<style>", "a script"])  # its own
        data = embedded(text)
        self.assertIn("<script>window.hacked=1</script>", data["names"])
        self.assertEqual(sum(data["self"][0]), self.total)
        self.browser.run("document.getElementById('table').open = true")
        self.browser.find_text("#rows td", "<script>window.hacked=1</script>")
        self.assertEqual(
            self.browser.run("return document.querySelectorAll('#rows tr').length"), min(200, len(set(NAMES)) + 2)
        )
        self.opened(file)

    def test_a_pprof_export_keeps_hostile_names(self):
        made = Decoded(self.exported("pprof").read_bytes())
        self.assertEqual(made.sample_types, [("process_cpu cpu", "nanoseconds")])
        self.assertEqual(unseen("".join(made.strings)), [])
        self.assertIn("<script>window.hacked=1</script>", made.strings)

    def test_a_collapsed_export_has_one_line_for_each_stack(self):
        lines = self.exported("collapsed").read_text().splitlines()
        self.assertEqual(unseen("".join(lines)), [])
        for line in lines:
            self.assertRegex(line, r"^main;[^;]*;leaf \d+$")
        self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in lines), self.total)

    def test_a_speedscope_export_keeps_the_total(self):
        text = self.exported("speedscope").read_text()
        made = json.loads(text)
        self.assertEqual(unseen(text + "".join(frame["name"] for frame in made["shared"]["frames"])), [])
        (shown,) = made["profiles"]
        self.assertEqual(
            (shown["unit"], shown["endValue"], sum(shown["weights"])), ("nanoseconds", self.total, self.total)
        )
        self.assertEqual(len(shown["samples"]), len(shown["weights"]))

    def test_a_zoomed_and_searched_graph_is_exported_as_it_is_seen(self):
        self.open("/profile", **HOSTILE, view="flame", search="hacked")
        self.browser.find(".flame-matches")
        self.browser.run("document.querySelector('.flame-twin').focus()")
        self.browser.press("n", Keys.ENTER)
        self.browser.settle()
        self.assertEqual(len(self.download("collapsed").read_text().splitlines()), 1)
        gzip.decompress(self.download("pprof").read_bytes())


if __name__ == "__main__":
    unittest.main()
