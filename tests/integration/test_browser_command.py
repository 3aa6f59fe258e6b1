"""The command that the page copies: hearth, run with it, answers what the page shows."""

import os
import re
import subprocess
import unittest

from browser import PageTest
from pprof import Profile
from server import HEARTHD, now_ms

SHOP = {"q": '{service_name="shop"}', "view": "flame"}
COMPLETE = re.compile(r"^[^.].*(?<!\.crdownload)$")
STACKS = {
    "main;net/http.Serve;net/http.(*conn).serve;shop.Handle;json.encode;json.encode": 30,
    "main;net/http.Serve;net/http.(*conn).serve;shop.Handle;json.encode": 20,
    "main;net/http.Serve;net/http.(*conn).serve;shop.Handle;it's a $(name) \"here\"": 10,
    "main;net/http.Serve;shop.Idle": 5,
    "main;shop.Walk;shop.Visit;shop.Walk;json.encode": 25,
    "main": 10,
}
TRANSFORMS = (
    "focus shop.Handle",
    "hide json.encode",
    "recursion json.encode",
    "module net/http",
    "recursion shop.Walk\nmodule json\nhide main",
    "module net/http\nfocus net/http\nhide it's a $(name) \"here\"",
)


class Command(PageTest):
    @classmethod
    def fill(cls, server):
        made = Profile([("cpu", "nanoseconds")], time_ns=(now_ms() - 60_000) * 1_000_000)
        for stack, seconds in STACKS.items():
            made.add(stack.split(";"), [seconds * 1_000_000_000])
        server.push(made.encode(), {"__name__": "process_cpu", "service_name": "shop"})

    def copied(self):
        """What "Copy as CLI" gives."""
        self.browser.run("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve() }")
        self.browser.find_text("button", "Copy as CLI").click()
        return self.browser.until(lambda: self.browser.run("return window.copied"), "the command")

    def run_command(self, command):
        """The lines that it prints, by a shell."""
        path = os.path.dirname(os.path.abspath(HEARTHD)) + ":" + os.environ["PATH"]
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env={**os.environ, "PATH": path, "LC_ALL": "C.UTF-8"})
        self.assertEqual(done.returncode, 0, command + "\n" + done.stderr)
        return done.stdout.splitlines()

    def drawn(self):
        """The stack traces of the graph, as it exports them."""
        for old in self.downloads.iterdir():
            old.unlink()
        self.browser.find(".export").click()
        self.browser.find_text("[role=menuitem]", "collapsed").click()
        file = self.browser.until(lambda: next((f for f in self.downloads.iterdir() if COMPLETE.match(f.name)), None), "the file")
        return sorted(line for line in file.read_text().splitlines())

    def root(self):
        """The total of the graph, as the page says it to a listener."""
        return self.browser.run("return document.querySelector('.flame-twin [aria-level]').textContent")

    def test_the_command_has_the_transforms_of_the_page(self):
        for transforms in TRANSFORMS:
            with self.subTest(transforms):
                self.open("/profile", **SHOP, transforms=transforms)
                self.browser.find(".flame-canvas")
                command = self.copied()
                total = re.match(r"\s*([\d.]+ \S+) 100\.00% .* total$", self.run_command(command)[0]).group(1)
                self.assertIn(total, self.root())
                self.assertEqual(sorted(self.run_command(command + " -o collapsed")), self.drawn())

    def test_the_command_begins_where_the_page_is_zoomed_to(self):
        self.open("/profile", **SHOP)
        self.browser.find(".flame-canvas")
        self.browser.run("document.querySelector('.flame-twin').focus()")
        for key in ("\ue015", "\ue015", "\ue007"):  # down to the largest child, twice, and Enter
            self.browser.press(key)
        self.browser.settle()
        crumb = self.browser.find(".flame-crumb[aria-current]").text
        self.assertEqual(crumb, "net/http.Serve")
        lines = self.run_command(self.copied() + " -o collapsed")
        self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in lines), 65_000_000_000)
        self.assertTrue(all(line.startswith("main;net/http.Serve") for line in lines), lines)

    def test_tables_and_sandwiches_have_commands_too(self):
        self.open("/profile", **{**SHOP, "view": "table"}, filter="^shop", sort="total")
        rows = self.run_command(self.copied() + " -o tsv --no-headers --columns name,total")
        self.assertEqual(rows[0].split("\t"), ["shop.Handle", "60000000000"])
        self.assertEqual(len(rows), 4)
        self.open("/profile", **{**SHOP, "view": "sandwich"}, function="shop.Walk")
        self.assertIn("25 s", "\n".join(self.run_command(self.copied())))


if __name__ == "__main__":
    unittest.main()
