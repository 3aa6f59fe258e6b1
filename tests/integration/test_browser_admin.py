"""Administration, files and the empty store, used by a browser that has logged in."""

import os
import pathlib
import re
import subprocess
import unittest
import urllib.parse

import browser
from server import HEARTH, eventually, now_ms, server_environment, temporary_directory
from test_access import AccessServer, bearer
from test_browser import profile, require_page

PASSWORD = "a long enough password"


class Administration(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        browser.require_browser()
        cls.seen = browser.Browser()
        cls.addClassCleanup(cls.seen.stop)
        cls.hearth = AccessServer("--builder=false", "--multitenancy=false")
        cls.addClassCleanup(cls.hearth.stop)
        require_page(cls.hearth.server)
        # The first grant of admin ends the token of the setup.
        cls.hearth.root = cls.hearth.token(("*", "admin"))["token"]
        cls.hearth.must("CreateUser", {"name": "anna", "password": PASSWORD})
        cls.hearth.must("AddGrant", {"subject": "user:anna", "tenant": "*", "role": "admin"})
        cls.open("/admin")
        cls.seen.find("input[name=user]").send_keys("anna")
        cls.seen.find("input[name=password]").send_keys(PASSWORD)
        cls.seen.find("form button").click()
        cls.seen.find_text(".admin p", "This server is ready")

    def tearDown(self):
        self.assertEqual(self.seen.complaints(), [])

    @classmethod
    def open(cls, path, **params):
        cls.seen.open("http://%s%s?%s" % (cls.hearth.address, path, urllib.parse.urlencode(params)))

    def rpc(self, method, message):
        status, _, answer = self.hearth.post("/" + method, message, bearer(self.hearth.root))
        self.assertEqual(status, 200, answer)
        return answer

    def push(self, service, token=None):
        path = "/ingest?name=" + urllib.parse.quote(service)
        return self.hearth.server.http("POST", path, profile([(["main"], 1_000_000)]), bearer(token or self.hearth.root))[0]

    def press(self, css, text):
        self.seen.find_text(css, text).click()

    def press_twice(self, css, first, second):
        self.press(css, first)
        self.press(css, second)

    def test_a_service_is_switched_off_and_its_refusal_is_seen(self):
        self.assertEqual(self.push("off"), 200)
        eventually(lambda: "off" in str(self.rpc("hearth.v1.ApplicationService/List", {})), what="the service is listed")
        self.open("/admin", part="applications", filter="off")
        self.seen.find_text("tbody tr", "off")
        self.seen.find("select[aria-label='Profiling of off'] option[value=PROFILING_OFF]").click()
        eventually(lambda: self.push("off") == 403, what="profiles are refused")
        eventually(lambda: self.rpc("hearth.v1.AdminService/IngestErrors", {}).get("errors"), what="the refusal is listed")
        self.press(".parts a", "Refused uploads")
        self.seen.find_text("tbody tr", "permission_denied")
        self.seen.driver.back()
        self.seen.find("select[aria-label='Profiling of off']")

    def test_every_limit_is_described_in_chinese_on_a_chinese_page(self):
        limits = self.rpc("hearth.v1.AdminService/GetLimits", {})["limits"]
        self.open("/admin", part="limits", language="zh")
        self.seen.find_text("th.limit-name", "max-series")
        shown = self.seen.run("return [...document.querySelectorAll('th.limit-name')].map(each => each.innerText)")
        self.assertEqual(len(shown), len(limits))
        for text in shown:
            self.assertRegex(text, "[\u4e00-\u9fa5]")
        self.assertEqual(self.seen.run("return document.querySelectorAll('th.limit-name [lang=en]').length"), 0)

    def test_a_limit_of_the_tenant_is_set_and_reset(self):
        self.open("/admin", part="limits", filter="max-query-range")
        self.seen.find_text("tbody th", "longest time range of a query")
        self.press("td button", "Change")
        field = self.seen.find("td input")
        field.clear()
        field.send_keys("nonsense\n")
        self.assertIn("max-query-range", self.seen.find("[role=alert]").text)
        field = self.seen.find("td input")
        field.clear()
        field.send_keys("31d\n")
        self.seen.find_text("tr[aria-selected=true] td", "31d")
        self.press("td button", "Use the server's")
        self.seen.until(lambda: not self.seen.driver.find_elements("css selector", "tr[aria-selected=true]"), "the server's limit")

    def test_a_shorter_retention_needs_a_confirmation(self):
        self.open("/admin", part="retention")
        self.press("td button", "Change")
        field = self.seen.find("td input")
        field.clear()
        field.send_keys("3")
        self.press_twice("td button", "Shorten", "Delete what is older")
        self.seen.find_text("tbody tr", "3 d")
        self.assertEqual(self.rpc("hearth.v1.AdminService/GetRetention", {})["profilesMs"], str(3 * 86_400_000))

    def print_disk(self):
        done = subprocess.run(
            [HEARTH, "admin", "disk", "--no-headers"], capture_output=True, text=True, timeout=60, check=True,
            env=server_environment({"HEARTH_URL": "http://" + self.hearth.address, "HEARTH_TOKEN": self.hearth.root}))
        return done.stdout

    def sizes_agree(self, services):
        """Whether the page shows for each service a size that the command line printed just before or after."""
        printed = self.print_disk()
        self.open("/admin", part="retention")
        self.seen.find_text("tbody tr", "disk-large")
        table = self.seen.find_text("section:not(:has(section))", "Disk by service").find_element("css selector", "tbody")
        rows = [[cell.text for cell in row.find_elements("css selector", "th, td")] for row in table.find_elements("css selector", "tr")]
        self.assertEqual([row[0] for row in rows], services)
        printed += self.print_disk()
        agree = True
        for name, whole, *_ in rows:
            size, share = re.fullmatch(r"(.* \S*B) (\S+%)", whole).groups()
            self.assertNotEqual(share, "0.00%")
            lines = [line + " " for line in printed.splitlines() if line.split()[0] == name]
            agree = agree and any(" %s " % size in line for line in lines)
        return agree

    def test_the_page_the_server_and_the_command_line_agree_on_the_disk_of_services(self):
        for service, n_stacks in (("disk-small", 20), ("disk-large", 2000)):
            stacks = [(["main", "%s.call_%d" % (service, i)], 1 + i) for i in range(n_stacks)]
            path = "/ingest?name=" + service
            self.assertEqual(self.hearth.server.http("POST", path, profile(stacks), bearer(self.hearth.root))[0], 200)
        services = [each["serviceName"] for each in self.rpc("hearth.v1.AdminService/Disk", {"limit": "30"})["services"]]
        self.assertLess(services.index("disk-large"), services.index("disk-small"))
        # PostgreSQL's own housekeeping may change the sizes at any time, also between two looks.
        eventually(lambda: self.sizes_agree(services), what="the sizes of the command line on the page")
        self.seen.find_text("tbody a", "disk-large").click()
        self.seen.find(".flame canvas")
        self.assertIn("disk-large", urllib.parse.unquote(self.seen.driver.current_url))

    def test_every_bar_of_the_disk_has_a_name_and_the_length_of_its_share(self):
        tables = self.rpc("hearth.v1.AdminService/Status", {})["tables"]
        self.open("/admin", part="retention")
        self.seen.find_text("tbody tr", "smaller tables")
        body = self.seen.find_text("section:not(:has(section))", "Tables of all tenants").find_element("css selector", "tbody")
        rows = [[cell.text for cell in row.find_elements("css selector", "th, td")] for row in body.find_elements("css selector", "tr")]
        bars = self.seen.run("return [...arguments[0].querySelectorAll('.bar-cell')].map((cell) => parseFloat(cell.style.backgroundSize))", body)
        self.assertEqual(rows[-1][0], "%d smaller tables" % (len(tables) - 12))
        self.assertLessEqual({name for name, _ in rows[:-1]}, {each["table"] for each in tables})
        self.assertEqual(len({name for name, _ in rows}), 13)
        shares = [float(size.split()[-1].rstrip("%")) for _, size in rows]
        self.assertEqual(shares, bars)
        self.assertAlmostEqual(sum(shares), 100, delta=0.1)
        self.assertEqual(shares[:-1], sorted(shares[:-1], reverse=True))

    def test_profiles_are_deleted_after_a_preview(self):
        self.assertEqual(self.push("doomed"), 200)
        self.open("/admin", part="deletion")
        self.seen.find("input[name=erase]").send_keys('{service_name="doomed"}')
        self.seen.find("input[name=why]").send_keys("ticket 4711")
        self.press("form button", "Preview")
        self.assertIn("1 series (services: 1)", self.seen.find(".warned .verdict").text)
        self.press_twice(".warned button", "Delete profiles", "Delete for good")
        row = self.seen.find_text("tbody tr", "doomed")
        self.assertIn("hidden", row.text)
        self.assertIn("ticket 4711", row.text)
        self.press(".parts a", "Audit log")
        self.seen.find_text("tbody tr", "/hearth.v1.AdminService/Erase")

    def test_a_token_made_on_the_page_is_accepted(self):
        self.open("/admin", part="access")
        self.seen.find_text("h2", "Tokens")
        form = self.seen.find("form:has([name=days])")
        form.find_element("css selector", "[name=name]").send_keys("ci")
        form.find_element("css selector", "button").click()
        self.assertEqual(self.push("made-by-ci", self.seen.find(".chosen").text), 200)

    def test_a_reader_is_offered_no_changes(self):
        self.hearth.must("CreateUser", {"name": "vera", "password": PASSWORD})
        self.hearth.must("AddGrant", {"subject": "user:vera", "tenant": "anonymous", "role": "viewer"})
        cookies = self.seen.driver.get_cookies()
        status, headers, _ = self.hearth.post("/api/v1/login", {"user": "vera", "password": PASSWORD},
                                              {"Origin": "http://" + self.hearth.address})
        self.assertEqual(status, 200)
        name, value = {key.lower(): text for key, text in dict(headers).items()}["set-cookie"].split(";")[0].split("=", 1)
        self.seen.driver.add_cookie({"name": name, "value": value, "httpOnly": True})
        try:
            self.open("/admin", part="limits")
            self.seen.find_text("tbody tr", "max-series")
            self.assertNotIn("Audit log", self.seen.find(".parts").text)
            self.assertEqual(self.seen.driver.find_elements("css selector", "td button"), [])
            self.press(".parts a", "Access")
            self.seen.find_text("h2", "Your account: user:vera")
            self.assertEqual(self.seen.driver.find_elements("css selector", "[name=days]"), [])
        finally:
            self.seen.driver.delete_all_cookies()
            for cookie in cookies:
                self.seen.driver.add_cookie(cookie)

    def test_files_are_stored_as_profiles_side_by_side(self):
        directory = pathlib.Path(temporary_directory())
        (directory / "one.txt").write_text("main;parse 80\nmain;write 20\n")
        (directory / "two.txt").write_text("main;read 60\n")
        (directory / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
        self.open("/adhoc", part="store")
        self.seen.find("input[name=service]").send_keys("filed")
        self.seen.find("input[name=labels]").send_keys("env=prod")
        names = ("one.txt", "two.txt", "picture.png")
        self.seen.find(".choose").find_element("css selector", "input").send_keys("\n".join(str(directory / name) for name in names))
        self.press("form .primary", "3 files")
        self.seen.find_text("tbody tr", "Failed: ")
        for name in names[:2]:
            self.seen.until(lambda: "stored" in self.seen.find_text("tbody tr", name).text, name + " is stored")
        self.seen.find("button[aria-label='What was stored: one.txt']").click()
        self.press(".warned td a", "Open")
        self.seen.find(".flame canvas")
        self.seen.find_text("dd", "prod")

    def test_an_upload_whose_connection_broke_continues_at_its_offset(self):
        path = pathlib.Path(temporary_directory()) / "long.txt"
        path.write_text("".join("main;call_%d 1\n" % i for i in range(10_000)))
        made = self.rpc("hearth.v1.UploadService/CreateUpload", {
            "fileName": path.name, "sizeBytes": str(os.path.getsize(path)), "partBytes": 65_536,
            "labels": [{"name": "service_name", "value": "long"}], "fromMs": str(now_ms())})
        part = "/api/v1/uploads/part?id=%s&part=0" % made["uploadId"]
        status, _, _ = self.hearth.server.http("POST", part, path.read_bytes()[:65_536], bearer(self.hearth.root))
        self.assertEqual(status, 200)
        self.open("/adhoc", part="store")
        row = self.seen.find_text("tbody tr", "long.txt")
        self.assertIn("interrupted", row.text)
        row.find_element("css selector", "input[type=file]").send_keys(str(path))
        self.seen.until(lambda: "stored" in self.seen.find_text("tbody tr", "long.txt").text, "the file is stored")
        self.assertEqual(self.rpc("hearth.v1.UploadService/GetUpload", {"uploadId": made["uploadId"]})["samples"], "10000")

    def test_an_empty_range_offers_a_token_and_shows_arriving_profiles(self):
        self.open("/", **{"from": "1000", "to": "2000", "with": "Go"})
        self.seen.find_text(".snippet", "TOKEN")
        self.press("button", "Create a token for it")
        self.seen.until(lambda: "hearth_" in self.seen.find(".snippet").text, "the token is filled in")
        token = self.seen.find(".snippet").text.split('BasicAuthPassword: "')[1].split('"')[0]
        self.assertEqual(self.push("arrived", token), 200)
        self.seen.find_text("[role=status]", "received from arrived")
        self.press("[role=status] a", "Open it")
        self.seen.find(".flame canvas")

    def test_a_service_that_stopped_sending_is_listed_with_the_others(self):
        self.assertEqual(self.push("cart"), 200)
        path = "/ingest?name=heap.alloc_space&format=collapsed"
        self.assertEqual(self.hearth.server.http("POST", path, b"main;parse 80", bearer(self.hearth.root))[0], 200)
        eventually(lambda: "heap" in str(self.rpc("hearth.v1.ApplicationService/List", {})), what="the service is listed")
        self.open("/")
        self.seen.find_text(".services tr", "cart")
        self.assertIn("no process_cpu cpu", self.seen.find_text(".gone tr", "heap").text)
        self.assertNotIn("cart", self.seen.find(".gone").text)


if __name__ == "__main__":
    unittest.main()
