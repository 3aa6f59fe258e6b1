"""The web page out of hearthd: its files, their codings and the headers that keep it safe. A program that was built without the
page says so."""

import gzip
import re
import unittest

from server import Server

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
WITHOUT = b"built without the web page"


class WebPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--builder=false")
        cls.addClassCleanup(cls.server.stop)
        if WITHOUT in cls.get("/")[2]:
            raise unittest.SkipTest("hearthd was built without the web page")

    @classmethod
    def get(cls, path, headers={}, method="GET"):
        return cls.server.http(method, path, None, headers)

    def assets(self):
        page = self.get("/", BROWSER)[2].decode()
        found = re.findall(r'(?:src|href)="(/assets/[^"]+)"', page)
        self.assertTrue(any(f.endswith(".js") for f in found) and any(f.endswith(".css") for f in found), page)
        return found

    def test_a_browser_gets_the_page_and_others_the_list_of_routes(self):
        status, headers, body = self.get("/", BROWSER)
        self.assertEqual((status, headers["content-type"]), (200, "text/html; charset=utf-8"))
        self.assertIn(b"<title>Hearth</title>", body)
        status, headers, body = self.get("/")
        self.assertEqual((status, headers["content-type"]), (200, "text/plain; charset=utf-8"))
        self.assertIn(b"/querier.v1.QuerierService/SelectSeries", body)

    def test_addresses_within_the_page_are_the_page_for_a_browser_only(self):
        self.assertIn(b"<title>Hearth</title>", self.get("/profile", BROWSER)[2])
        self.assertEqual(self.get("/profile")[0], 404)
        self.assertEqual(self.get("/api/v1/nothing", BROWSER)[0], 404)
        self.assertEqual(self.get("/assets/../profile", BROWSER)[0], 404)
        self.assertEqual(self.get("/assets/nothing.js", BROWSER)[0], 404)
        self.assertNotIn(b"<title>", self.get("/metrics", BROWSER)[2])

    def test_nothing_but_this_server_may_give_scripts_and_nothing_may_frame_the_page(self):
        policy = self.get("/", BROWSER)[1]["content-security-policy"]
        for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"):
            self.assertIn(part, policy)
        page = self.get("/", BROWSER)[2].decode()
        self.assertEqual(re.findall(r"<script(?![^>]*\ssrc=)|<style|\son\w+=|\sstyle=|https?://", page), [])

    def test_files_are_served_compressed_and_keep_their_bytes(self):
        for path in self.assets():
            plain, packed = self.get(path), self.get(path, {"Accept-Encoding": "gzip"})
            self.assertNotIn("content-encoding", plain[1])
            if "content-encoding" in packed[1]:
                self.assertEqual(gzip.decompress(packed[2]), plain[2])
            if path.endswith((".js", ".css")):
                self.assertEqual(packed[1]["content-encoding"], "gzip")
                brotli = self.get(path, {"Accept-Encoding": "gzip, deflate, br"})
                self.assertEqual(brotli[1]["content-encoding"], "br")
                self.assertLess(len(brotli[2]), len(packed[2]))
            self.assertIn("Accept-Encoding", plain[1]["vary"])
            self.assertEqual(plain[1]["x-content-type-options"], "nosniff")

    def test_files_with_a_hash_are_cached_and_the_page_is_revalidated(self):
        for path in self.assets():
            self.assertIn("immutable", self.get(path)[1]["cache-control"])
        headers = self.get("/", BROWSER)[1]
        self.assertEqual(headers["cache-control"], "no-cache")
        status, _, body = self.get("/", {**BROWSER, "If-None-Match": headers["etag"]})
        self.assertEqual((status, body), (304, b""))
        self.assertEqual(self.get("/", {**BROWSER, "If-None-Match": '"another"'})[0], 200)

    def test_the_page_refuses_methods_other_than_get_and_head(self):
        self.assertEqual(self.get("/", BROWSER, "POST")[0], 405)
        status, headers, body = self.get("/", BROWSER, "HEAD")
        self.assertEqual((status, body), (200, b""))
        self.assertIn("content-security-policy", headers)


if __name__ == "__main__":
    unittest.main()
