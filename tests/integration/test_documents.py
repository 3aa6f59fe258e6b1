"""The documents at /docs/: every page, link and anchor, the headers that keep them safe, the search, and what axe-core says."""

import gzip
import html.parser
import json
import pathlib
import posixpath
import unittest
import urllib.parse

import browser
from server import Server
from test_web_page import WITHOUT

TREE = pathlib.Path(__file__).resolve().parents[2]
BUDGET_BYTES = 1_300_000  # by gzip; they are part of hearthd


class Page(html.parser.HTMLParser):
    """What a page links to, shows and may be linked at."""

    def __init__(self, text):
        super().__init__()
        self.links, self.files, self.anchors, self.title, self.unsafe = [], [], set(), "", []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        if "id" in named:
            self.anchors.add(named["id"])
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        for name in ("src", "srcset") + (("href",) if tag == "link" else ()):
            if name in named:
                self.files.append(named[name])
        self.unsafe += [name for name in named if name == "style" or name.startswith("on")]
        if tag == "style" or (tag == "script" and "src" not in named):
            self.unsafe.append(tag)


def require_documents(server):
    if WITHOUT in server.http("GET", "/")[2]:
        raise unittest.SkipTest("hearthd was built without the documents")


class Documents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--builder=false")
        cls.addClassCleanup(cls.server.stop)
        require_documents(cls.server)
        cls.pages = {}
        waiting = ["/docs/index.html"]
        while waiting:
            path = waiting.pop()
            if path not in cls.pages:
                status, headers, body = cls.server.http("GET", path)
                assert status == 200, "%s: %d" % (path, status)
                cls.pages[path] = (headers, Page(body.decode()))
                waiting += [there for _, there, _ in cls.inside(path) if there.endswith(".html")]

    @classmethod
    def inside(cls, path):
        """Links of a page to others of this server: as they are written, their path, their anchor."""
        for link in cls.pages[path][1].links:
            parts = urllib.parse.urlsplit(link)
            if not parts.scheme:
                there = posixpath.normpath(posixpath.join(posixpath.dirname(path), parts.path)) if parts.path else path
                yield link, there, parts.fragment

    def test_every_document_is_a_page_that_others_lead_to(self):
        expected = {"/docs/" + str(path.relative_to(TREE / "docs")) for path in (TREE / "docs").rglob("*.md")}
        expected = {path.replace("README.md", "index.html").replace(".md", ".html") for path in expected}
        self.assertGreater(len(expected), 100)
        self.assertEqual(expected - set(self.pages), set())
        self.assertIn("/docs/tree/index.html", self.pages)

    def test_every_page_has_its_type_and_the_headers_that_keep_it_safe(self):
        for path, (headers, page) in self.pages.items():
            self.assertEqual(headers["content-type"], "text/html; charset=utf-8", path)
            policy = headers["content-security-policy"]
            for part in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"):
                self.assertIn(part, policy, path)
            self.assertNotIn("unsafe", policy)
            self.assertEqual(headers["x-content-type-options"], "nosniff", path)
            self.assertEqual(page.unsafe, [], path)

    def test_every_link_and_anchor_leads_somewhere(self):
        broken, seen = [], {}
        for path in self.pages:
            for link, there, anchor in self.inside(path):
                if there in self.pages:
                    found = anchor == "" or anchor in self.pages[there][1].anchors
                else:
                    if there not in seen:
                        seen[there] = self.server.http("GET", there)[0] == 200
                    found = seen[there] and anchor == ""
                if not found:
                    broken.append((path, link))
        self.assertEqual(broken, [])

    def test_pictures_styles_and_scripts_are_of_this_server_and_there(self):
        files = {posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) for path, (_, page) in self.pages.items() for file in page.files}
        self.assertTrue(any(file.endswith(".png") for file in files) and any(file.endswith(".svg") for file in files))
        types = {".png": "image/png", ".svg": "image/svg+xml", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
        for file in files:
            self.assertTrue(file.startswith("/docs/"), file)
            status, headers, body = self.server.http("GET", file)
            self.assertEqual((status, headers["content-type"]), (200, types[posixpath.splitext(file)[1]]), file)
            self.assertGreater(len(body), 100, file)

    def test_a_page_has_equal_bytes_compressed_and_uncompressed(self):
        plain = self.server.http("GET", "/docs/how-to/push.html")
        packed = self.server.http("GET", "/docs/how-to/push.html", None, {"Accept-Encoding": "gzip, br"})
        self.assertNotIn("content-encoding", plain[1])
        self.assertEqual(packed[1]["content-encoding"], "gzip")
        self.assertEqual(gzip.decompress(packed[2]), plain[2])
        self.assertEqual(plain[1]["etag"], packed[1]["etag"])
        again = self.server.http("GET", "/docs/how-to/push.html", None, {"If-None-Match": plain[1]["etag"]})
        self.assertEqual((again[0], again[2]), (304, b""))
        head = self.server.http("HEAD", "/docs/how-to/push.html")
        self.assertEqual((head[0], head[2]), (200, b""))

    def test_directories_have_an_index(self):
        status, headers, _ = self.server.http("GET", "/docs")
        self.assertEqual((status, headers["location"]), (308, "/docs/"))
        for directory in ("/docs/", "/docs/observability/", "/docs/tree/"):
            status, headers, body = self.server.http("GET", directory)
            self.assertEqual((status, headers["content-type"]), (200, "text/html; charset=utf-8"))
            self.assertEqual(body, self.server.http("GET", directory + "index.html")[2])

    def test_hostile_paths_are_not_found(self):
        for path in ("/docs/..", "/docs/../..", "/docs/../../etc/passwd", "/docs/%2e%2e/%2e%2e/etc/passwd", "/docs/./index.html", "/docs//index.html",
                     "/docs/how-to", "/docs/how-to/", "/docs/index.html/", "/docs/\\..\\index.html", "/docsx",
                     "/docs/../assets/index.html", "/docs/" + "a/" * 2000, "/docs/" + "%41" * 2000):
            self.assertEqual(self.server.http("GET", path)[0], 404, path)
        self.assertEqual(self.server.http("POST", "/docs/index.html", b"")[0], 404)

    def test_the_index_of_the_search_names_pages_and_anchors_that_exist(self):
        status, headers, body = self.server.http("GET", "/docs/search.json")
        self.assertEqual((status, headers["content-type"]), (200, "application/json"))
        entries = json.loads(body)
        self.assertEqual({"/docs/" + address for address, _, _ in entries}, set(self.pages))
        for address, title, headings in entries:
            self.assertTrue(title, address)
            for _, anchor in headings:
                self.assertIn(anchor, self.pages["/docs/" + address][1].anchors, address)

    def test_the_documents_keep_to_their_budget(self):
        total = sum(len(self.server.http("GET", path, None, {"Accept-Encoding": "gzip"})[2]) for path in self.pages)
        self.assertLess(total, BUDGET_BYTES)
        print("%d pages, %d bytes by gzip" % (len(self.pages), total))


class InABrowser(browser.PageTest):
    def read(self, path):
        self.browser.open("http://127.0.0.1:%d/docs/%s" % (self.server.port, path))
        self.browser.find("main h1")

    def asked(self):
        """Addresses of everything that the page asked for."""
        return self.browser.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")

    def test_no_request_is_sent_to_other_servers(self):
        own = "http://127.0.0.1:%d/docs/" % self.server.port
        for path in ("index.html", "tree/index.html", "web-page.html", "reliability.html"):
            self.read(path)
            self.browser.run("document.querySelectorAll('img').forEach((image) => image.loading = 'eager')")
            self.browser.until(lambda: self.browser.run("return [...document.images].every((image) => image.complete && image.naturalWidth > 0)"), "pictures")
            asked = self.asked()
            self.assertTrue(asked)
            self.assertEqual([address for address in asked if not address.startswith(own)], [])

    def test_titles_and_headings_are_found_by_words_and_opened_by_enter(self):
        self.read("reference/limits.html")
        self.browser.press("/")
        self.browser.press(*"push profiles")
        first = self.browser.find(".found a")
        self.assertEqual(first.text, "How to push profiles")
        self.browser.press(browser.Keys.ENTER)
        self.browser.find_text("h1", "How to push profiles")
        self.assertIn("/docs/how-to/push.html", self.driver.current_url)
        self.browser.press("/", *"no such heading")
        self.browser.find_text(".found", "Nothing found")
        self.browser.press(browser.Keys.ESCAPE)
        self.browser.until(lambda: self.browser.run("return document.querySelector('.found').childNodes.length === 0"), "an empty list")

    def test_the_page_leads_to_the_documents_and_the_theme_stays(self):
        self.open("/help")
        self.choose("dark")
        self.browser.find("main a[href='/docs/']").click()
        self.browser.find_text("h1", "Documents of Hearth")
        self.read("glossary.html")
        theme = lambda: self.browser.run("return document.documentElement.dataset.theme")
        self.assertEqual(theme(), "dark")
        self.browser.find(".theme").click()
        self.assertEqual(theme(), "light")
        self.read("glossary.html")
        self.assertEqual(theme(), "light")

    def test_axe_finds_no_violation(self):
        paths = ("index.html", "how-to/push.html", "reference/cli.html", "tree/index.html")
        for turn, theme in enumerate(("light", "dark")):
            self.open("/help")
            self.choose(theme)
            for path in browser.in_turns(paths, turn):
                self.read(path)
                self.assertEqual(self.browser.violations(path + ", " + theme), [])

    def test_no_page_is_wider_than_a_telephone(self):
        self.driver.set_window_size(500, 800)
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": False})
        self.addCleanup(self.driver.execute_cdp_cmd, "Emulation.clearDeviceMetricsOverride", {})
        for path in ("index.html", "how-to/push.html", "reference/options.html", "benchmarks.html", "decisions/0004-exactly-once.html"):
            self.read(path)
            self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 360, path)


if __name__ == "__main__":
    unittest.main()
