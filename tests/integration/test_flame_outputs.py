"""Files of flame graphs that `hearth` writes, of a server and of a file: HTML, SVG, speedscope, the text
tree, pprof."""

import itertools
import json
import os
import re
import shutil
import subprocess
import unittest
from xml.etree import ElementTree

from flame_pages import PLACE, embedded, stacks_of
from hostile import NAMES, unseen
from pprof import Decoded, Profile
from server import Server, now_ms, temporary_directory
from test_cli import NO_DATA, OK, USAGE, hearth

SELECTOR = '{service_name="shop"}'
TYPE = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
MS = 1_000_000
STACKS = [(["main", name, "leaf"], MS * (i + 1)) for i, name in enumerate(NAMES)] + [(["main", "plain"], 500 * MS)]
CHANGED = STACKS[:-1:2] + [(["main", "plain"], 90_000 * MS), (["main", "new"], 700 * MS)]
TOTAL = sum(value for _, value in STACKS)


def profile(stacks):
    made = Profile([("cpu", "nanoseconds")], time_ns=(now_ms() - 60_000) * MS, duration_ns=10_000 * MS)
    for stack, value in stacks:
        made.add(stack, [value])
    return made.encode()


class FlameOutputs(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--builder=false")
        cls.addClassCleanup(cls.server.stop)
        cls.root = temporary_directory()
        cls.file = cls.root + "/shop.pb"
        pushed = profile(STACKS)
        with open(cls.file, "wb") as file:
            file.write(pushed)
        cls.server.push(pushed, {"__name__": "process_cpu", "service_name": "shop"})
        cls.server.push(profile(CHANGED), {"__name__": "process_cpu", "service_name": "changed"})

    def hearth(self, *arguments, code=OK):
        done = hearth(*arguments, env={"HEARTH_URL": "http://127.0.0.1:%d" % self.server.port})
        self.assertEqual(done.code, code, done.err)
        return done

    def sources(self):
        """Commands that answer with the same stack traces."""
        return (["flame", SELECTOR], ["query", "flamegraph", SELECTOR], ["query", "profile", SELECTOR], ["flame", self.file])

    def test_html_holds_every_stack_trace(self):
        for command in self.sources():
            with self.subTest(command=command):
                page = self.hearth(*command, "-o", "html").out
                data = embedded(page)
                self.assertEqual(stacks_of(data), {tuple(stack): value for stack, value in STACKS})
                self.assertEqual(data["unit"], "nanoseconds")
                self.assertIn(data["title"], (SELECTOR, "shop.pb"))
                self.assertNotIn("<", PLACE.search(page).group(1))

    def test_html_names_the_parts_that_were_left_out(self):
        for command in self.sources():
            data = embedded(self.hearth(*command, "--max-nodes", "5", "-o", "html").out)
            self.assertIn("other", data["names"])
            self.assertEqual(sum(data["self"][0]), TOTAL)
        self.assertGreater(data["leftOut"], 100)

    def test_an_output_is_written_to_a_file_or_to_standard_output(self):
        path = self.root + "/out.html"
        done = self.hearth("flame", SELECTOR, "-o", "html=" + path)
        self.assertEqual(done.out, "")
        self.assertIn("wrote %s: %d bytes" % (path, os.path.getsize(path)), done.err)
        with open(path) as file:
            page = file.read()
        self.assertEqual(embedded(self.hearth("flame", SELECTOR, "-o", "html=-").out)["self"], embedded(page)["self"])
        done = self.hearth("flame", SELECTOR, "-o", "html=%s/none/x" % self.root, code=1)
        self.assertIn("cannot write %s/none/x: No such file or directory" % self.root, done.err)

    def test_the_tree_is_text_also_where_another_output_is_the_default(self):
        tree = self.hearth("flame", SELECTOR).out
        for command in self.sources():
            self.assertEqual(self.hearth(*command, "-o", "flame").out, tree)

    def test_pprof_and_collapsed_of_every_source_are_equal(self):
        expected = sorted(line for line in self.hearth("query", "profile", SELECTOR, "-o", "collapsed").out.splitlines())
        for command in self.sources():
            path = self.root + "/out.pb.gz"
            self.hearth(*command, "-o", "pprof=" + path)
            with open(path, "rb") as file:
                decoded = Decoded(file.read())
            self.assertEqual(decoded.totals(), [TOTAL])
            lines = self.hearth(*command, "-o", "collapsed").out.splitlines()
            self.assertEqual(sorted(lines), expected)
        done = self.hearth("flame", SELECTOR, "--go-stacks", "repaired", "-o", "collapsed", code=USAGE)
        self.assertIn("--go-stacks is for flame graphs", done.err)

    def test_html_of_a_diff_holds_both_sides_and_the_judgement(self):
        base, now = ({tuple(stack): value for stack, value in stacks} for stacks in (STACKS, CHANGED))
        data = embedded(self.hearth("diff", SELECTOR, '{service_name="changed"}', "-o", "html").out)
        self.assertEqual(stacks_of(data, 0), base)
        self.assertEqual(stacks_of(data, 1), now)
        self.assertRegex(data["sides"][0], r'^base: {service_name="shop"}, .* to .* UTC$')
        self.assertRegex(data["sides"][1], r'^now: {service_name="changed"}, ')
        self.assertIn("changed beyond noise", data["noise"])

        answer = json.loads(self.hearth("diff", SELECTOR, '{service_name="changed"}', "-o", "json").out)
        q = [value for level in answer["noise"]["levels"] for value in level["q"]]
        marked = list(itertools.accumulate(data["changed"]))
        self.assertEqual(marked, [i for i, value in enumerate(q) if value <= 0.05])
        self.assertIn("plain", {data["names"][data["name"][i]] for i in marked})

    def test_speedscope_is_read_back_as_it_was(self):
        expected = self.hearth("query", "profile", SELECTOR, "-o", "collapsed").out
        for command in self.sources():
            path = self.root + "/out.speedscope.json"
            self.hearth(*command, "-o", "speedscope=" + path)
            read = self.hearth("flame", path, "-o", "collapsed").out
            self.assertEqual(sorted(read.splitlines()), sorted(expected.splitlines()))

    def test_speedscope_of_a_diff_has_both_sides(self):
        made = json.loads(self.hearth("diff", SELECTOR, '{service_name="changed"}', "-o", "speedscope").out)
        names = [frame["name"] for frame in made["shared"]["frames"]]
        for side, stacks in zip(made["profiles"], (STACKS, CHANGED)):
            self.assertEqual(side["unit"], "nanoseconds")
            self.assertEqual(side["endValue"], sum(side["weights"]))
            read = {tuple(names[i] for i in sample): weight for sample, weight in zip(side["samples"], side["weights"])}
            self.assertEqual(read, {tuple(stack): value for stack, value in stacks})
        self.assertIn('base: {service_name="shop"}', made["profiles"][0]["name"])

    def test_svg_is_a_picture_of_the_boxes_and_nothing_else(self):
        for command in (*self.sources(), ["diff", SELECTOR, '{service_name="changed"}']):
            text = self.hearth(*command, "-o", "svg").out
            self.assertEqual(unseen(text), [])
            picture = ElementTree.fromstring(text)
            kinds = {element.tag.rpartition("}")[2] for element in picture.iter()}
            self.assertEqual(kinds, {"svg", "title", "style", "defs", "pattern", "path", "rect", "g", "text"})
            for element in picture.iter():
                self.assertFalse({key for key in element.attrib if key.startswith("on") or "href" in key}, command)
                self.assertNotIn("http", "".join(element.attrib.values()))
            titles = [title.text for title in picture.iter("{http://www.w3.org/2000/svg}title")][1:]
            self.assertTrue(any(title.startswith("plain · total ") for title in titles), titles[:9])
            if command[0] != "diff":  # where they are too narrow
                self.assertTrue(any("</text></svg><script>" in title for title in titles), command)
            boxes = [float(rect.get("width")) for rect in picture.iter("{http://www.w3.org/2000/svg}rect")]
            self.assertEqual(max(boxes), 1200)

    def test_svg_marks_new_and_missing_frames(self):
        titles = [
            title.text
            for title in ElementTree.fromstring(
                self.hearth("diff", SELECTOR, '{service_name="changed"}', "-o", "svg").out
            ).iter("{http://www.w3.org/2000/svg}title")
        ]
        (new,) = [title for title in titles if title.startswith("new · ")]
        self.assertIn("total 0.00% → ", new)
        self.assertIn(" · new", new)
        self.assertTrue(any(" · gone · " in title for title in titles))
        (plain,) = [title for title in titles if title.startswith("plain · ")]
        self.assertTrue(plain.endswith(" · beyond noise"), plain)

    def test_dot_is_a_digraph_with_the_same_functions_from_every_source(self):
        def functions(text):
            nodes = re.findall(r'self=(\d+), total=(\d+), .*tooltip="((?:[^"\\]|\\.)*)"', text)
            return {name: (int(own), int(total)) for own, total, name in nodes}

        made = [functions(self.hearth(*command, "--max-nodes", "999", "-o", "dot").out) for command in self.sources()]
        self.assertEqual(made[0]["plain"], (500 * MS, 500 * MS))
        self.assertEqual(made[0]["main"], (0, TOTAL))
        self.assertGreater(len(made[0]), len(NAMES) // 2)
        for one in made[1:]:
            self.assertEqual(one, made[0])
        done = self.hearth("flame", self.file, "-o", "dot")
        self.assertIn("note: 100 of ", done.err)
        if shutil.which("dot"):
            drawn = subprocess.run(["dot", "-Tplain"], input=done.out.encode(), capture_output=True, timeout=60)
            self.assertEqual((drawn.returncode, drawn.stderr), (0, b""))
            self.assertEqual(drawn.stdout.count(b"\nnode "), 100)

    def test_a_diff_of_files_names_them_without_their_paths(self):
        later = self.root + "/later.pb"
        with open(later, "wb") as file:
            file.write(profile(CHANGED))
        page = self.hearth("diff", self.file, later, "-o", "html").out
        data = embedded(page)
        self.assertEqual((data["title"], data["sides"]), ("shop.pb → later.pb", ["base: shop.pb", "now: later.pb"]))
        self.assertEqual(stacks_of(data, 1), {tuple(stack): value for stack, value in CHANGED})
        self.assertTrue(data["noise"].startswith("Noise is not known: "), data["noise"])
        self.assertNotIn("changed", data)
        self.assertNotIn(self.root, page)

    def test_no_data_writes_no_file(self):
        path = self.root + "/none.html"
        for command in (["flame", '{service_name="none"}'], ["query", "profile", '{service_name="none"}']):
            self.hearth(*command, "-o", "html=" + path, code=NO_DATA)
        self.assertFalse(os.path.exists(path))


if __name__ == "__main__":
    unittest.main()
