"""A headless Chromium, as Debian packages it, that looks at hearthd's web page.

It is chromium-headless-shell where that is installed: the same engine without the window around the page, which costs
less processor time. What is traced, to be measured, is drawn by the whole Chromium.
"""

import json
import os
import pathlib
import shutil
import time
import unittest
import urllib.parse

from server import HEARTHD, TEST_ROOT, Server, temporary_directory
from test_web_page import WITHOUT

try:
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    webdriver = Keys = None

WAIT_S = 20
# The program itself: the driver ends what it started, which would be Debian's script, and leave the browser behind.
SHELL = pathlib.Path("/usr/lib/chromium/chromium-headless-shell")
FIRST = int(os.environ.get("HEARTH_TEST_FIRST", int(time.time()))) % 2

AXE = pathlib.Path(HEARTHD).parents[1] / "web/node_modules/axe-core/axe.min.js"

COUNT_REQUESTS = """{
  const ask = window.fetch;
  window.openRequests = 0;
  window.fetch = (...of) => {
    window.openRequests++;
    return ask(...of).finally(() => window.openRequests--);
  };
}"""
# Six frames in a row with every answer there and nothing that moves: one request may follow another.
SETTLE = """
  const done = arguments[0];
  const isSettled = () => document.querySelector("main h1") && !document.querySelector("[aria-busy=true]") &&
    window.openRequests === 0 && document.getAnimations().length === 0;
  let calm = 0;
  let frames = 0;
  const look = () => {
    calm = isSettled() ? calm + 1 : 0;
    if (calm === 6 || ++frames === 60) done(calm === 6);
    else requestAnimationFrame(look);
  };
  look();"""
# The first element of a selector that is seen and has the text in it; null: none yet. An option is seen with its select.
# Selenium's own questions send a script of 80 kB for each element, which Chromium compiles each time.
SEEN = """
  const [css, text] = arguments;
  const isSeen = (element) => element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) &&
    [element, ...element.querySelectorAll("*")].some((part) => part.getClientRects().length > 0);
  return [...document.querySelectorAll(css)].find((element) =>
    (element.innerText ?? element.textContent).includes(text) && isSeen(element.closest("select") ?? element)) ?? null;"""


def in_turns(items, place=0):
    """Every other item, beginning with the first or the second: the other one at the next place, and in the next run.

    What repeats one check for many pages, sizes and languages takes most of the browser's time. `./dev test --long` has
    all of them; HEARTH_TEST_FIRST repeats a run.
    """
    return list(items) if "HEARTH_TEST_LONG" in os.environ else list(items)[(FIRST + place) % 2 :: 2]


def require_browser():
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if webdriver is None:
        missing.append("python3-selenium")
    if missing:
        raise unittest.SkipTest("not installed: " + ", ".join(missing))


def require_page(server):
    if WITHOUT in server.http("GET", "/")[2]:
        raise unittest.SkipTest("hearthd was built without the web page")


class Browser:
    def __init__(self, width=1280, height=800, downloads=None, trace=None):
        options = Options()
        own, shell = temporary_directory(), SHELL.exists() and not trace
        if shell:
            options.binary_location = str(SHELL)  # keeps its data in a directory that the driver makes
        else:
            options.add_argument("--user-data-dir=" + own)
        for argument in ("--headless=new", "--disable-gpu", "--lang=en-US", "--disable-dev-shm-usage", "--no-first-run",
                         "--window-size=%d,%d" % (width, height)):
            options.add_argument(argument)
        if os.getuid() == 0:
            options.add_argument("--no-sandbox")  # Chromium's own needs a user other than root
        if downloads:
            options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"} if trace else {"browser": "ALL"})
        if trace:
            options.add_experimental_option("perfLoggingPrefs", {"enableNetwork": False, "enablePage": False, "traceCategories": trace})
        try:
            self.driver = webdriver.Chrome(
                service=Service(shutil.which("chromedriver"), env={**os.environ, "TMPDIR": own}), options=options
            )
        except WebDriverException as error:  # a container may refuse what it needs
            if TEST_ROOT:  # nobody reads what `./dev test` skips
                raise
            raise unittest.SkipTest("Chromium does not start here: " + str(error).splitlines()[0]) from None

        self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": COUNT_REQUESTS})
        if shell and downloads:  # it does not know the preference
            self.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)})

    def open(self, url):
        self.driver.get(url)

    def find(self, css):
        """The element, as soon as it is there and seen."""
        return self.until(lambda: self.run(SEEN, css, ""), css)

    def find_text(self, css, text):
        """The first element with the text in it."""
        return self.until(lambda: self.run(SEEN, css, text), "%r in %s" % (text, css))

    def until(self, look, what):
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            try:
                found = look()
                if found:
                    return found
            except Exception as error:  # the page has replaced the element meanwhile
                if "stale" not in str(error):
                    raise
            time.sleep(0.05)
        raise AssertionError("did not see %s at %s:\n%s" % (what, self.driver.current_url, self.driver.find_element(By.TAG_NAME, "body").text[:2000]))

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def press(self, *keys):
        """Keys one after the other, whatever has the focus; those of a tuple are held together."""
        actions = webdriver.ActionChains(self.driver, duration=0)
        for key in keys:
            *held, last = key if isinstance(key, tuple) else (key,)
            for each in held:
                actions.key_down(each)
            actions.send_keys(last)
            for each in held:
                actions.key_up(each)
        actions.perform()

    def complaints(self):
        """What the browser logged, but for answers that were refusals: errors of scripts, reports of the Content-Security-Policy."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] in ("SEVERE", "WARNING") and "the server responded with a status of" not in entry["message"]]

    def traced(self):
        """The events of the categories `trace` since the last call."""
        messages = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        return [message["params"] for message in messages if message["method"] == "Tracing.dataCollected"]

    def violations(self, name):
        """What axe-core finds in the page as it is. The driver injects axe: the policy of pages lets no foreign script in."""
        if not AXE.exists():
            raise unittest.SkipTest("axe-core is not installed: the page was built elsewhere")
        if not self.run("return 'axe' in window"):
            self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": AXE.read_text()})
        answer = self.driver.execute_async_script("""
            const done = arguments[0];
            axe.run(document, { resultTypes: ["violations"] }).then((found) => done(found.violations.map((violation) => ({
              rule: violation.id, help: violation.help,
              nodes: violation.nodes.map((node) => node.target.join(" ") + ": " + node.failureSummary + " " + node.html.slice(0, 300)),
            }))), (error) => done([{ rule: "axe failed", help: String(error), nodes: [] }]));""")
        return [
            "%s: %s: %s\n    %s" % (name, each["rule"], each["help"], "\n    ".join(each["nodes"])) for each in answer
        ]

    def stop(self):
        self.driver.quit()

    def settle(self):
        """Waits until every answer is there and drawn, and nothing moves."""
        self.until(lambda: self.driver.execute_async_script(SETTLE), "all answers")


class PageTest(unittest.TestCase):
    """One server and one browser for the tests of a class. No test may leave a complaint of the browser."""

    SIZE = (1280, 800)
    OPTIONS = ("--builder=false",)

    @classmethod
    def setUpClass(cls):
        require_browser()
        cls.downloads = pathlib.Path(temporary_directory())
        cls.browser = Browser(*cls.SIZE, downloads=cls.downloads)
        cls.addClassCleanup(cls.browser.stop)
        cls.driver = cls.browser.driver
        cls.server = Server(*cls.OPTIONS)
        cls.addClassCleanup(cls.server.stop)
        require_page(cls.server)
        cls.fill(cls.server)

    @classmethod
    def fill(cls, server):
        """Sends profiles to the server."""

    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [])

    def open(self, path="/", **params):
        self.browser.open("http://127.0.0.1:%d%s?%s" % (self.server.port, path, urllib.parse.urlencode(params)))
        self.browser.settle()

    def go(self, path="/", **params):
        """As by a link of the page, which is not loaded again: a quarter of the processor time of open()."""
        self.browser.run("history.pushState(null, '', arguments[0]); dispatchEvent(new PopStateEvent('popstate'))",
                         "%s?%s" % (path, urllib.parse.urlencode(params)))
        self.browser.settle()

    def point_at(self, graph, row):
        """Points at a row of a flame graph, near its left end."""
        x, y = self.browser.run("""
            const box = document.querySelectorAll(".flame-scroll")[arguments[0]];
            box.scrollIntoView({ block: "center" });
            const { left, top } = box.getBoundingClientRect();
            return [left, top];""", graph)
        actions = webdriver.ActionChains(self.driver)
        actions.w3c_actions.pointer_action.move_to_location(int(x) + 30, int(y) + 20 * row + 10)
        actions.perform()

    def address(self):
        parts = urllib.parse.urlsplit(self.driver.current_url)
        return parts.path, dict(urllib.parse.parse_qsl(parts.query))

    def params(self):
        return self.address()[1]

    def choose(self, theme, language="en"):
        self.browser.run("localStorage['hearth.theme'] = arguments[0]; localStorage['hearth.language'] = arguments[1]", theme, language)
