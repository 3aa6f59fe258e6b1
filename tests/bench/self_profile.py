"""Hearth profiles itself: perf looks at a hearthd under ingest and questions, the recording is pushed into that same hearthd, and
what it answers is drawn: `./dev bench --self-profile` writes docs/pictures/self-ingest.svg and self-query.svg.
"""

import gzip
import hashlib
import pathlib
import re
import subprocess
import threading
import time

import sets
from measure import Running, say
from plots import PICTURES, Picture

SECONDS = 10


class SelfProfile:
    def __init__(self, setting):
        self.setting = setting

    def run(self):
        self.setting.make_pool()
        fleet = sets.Fleet(self.setting, "self", self.setting.pool, sets.streams(10), 150, sets.QUESTIONS)
        self.running = fleet.running = Running(self.setting, self.setting.server_module.temporary_directory(),
                                               *sets.OPTIONS, *sets.STATES["raw"])
        self.server = self.running.server
        self.push(4)  # dictionaries
        numbers = {"ingest": self.record("ingest", lambda: self.push(SECONDS + 2))}
        fleet.load()
        fleet.enter("rolled", fleet.is_rolled, "close", "hearth_rollup_profiles_total")
        numbers["query"] = self.record("query", lambda: self.ask(fleet.end))
        self.server.terminate()
        return numbers

    def push(self, seconds):
        self.setting.tool("bench_load", "push", "127.0.0.1:%d" % self.server.port, self.setting.pool, 8, 64, seconds, 0)

    def ask(self, end):
        """All questions of the sets in turn, for as long as the recording lasts."""
        until = time.monotonic() + SECONDS + 2
        while time.monotonic() < until:
            for question in sets.QUESTIONS.values():
                self.running.ask_once(*sets.fields(question, end))

    def record(self, load, work):
        say("recording %d s of %s" % (SECONDS, load))
        directory = pathlib.Path(self.setting.directory)
        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(1)
        data = directory / "perf.data"
        done = subprocess.run(
            ["perf", "record", "-q", "-o", str(data), "-e", "cpu-clock", "-F", "199", "--call-graph", "dwarf,16384",
             "-p", str(self.server.process.pid), "--", "sleep", str(SECONDS)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        thread.join()
        if done.returncode != 0:
            raise SystemExit("bench: perf may not record here: " + done.stderr)
        say("reading the recording")
        script = subprocess.run(["perf", "script", "-i", str(data), "--no-inline", "--max-stack", "96"],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
        data.unlink()
        path = directory / (load + ".perf.gz")
        path.write_bytes(gzip.compress(script))
        subprocess.run(
            [str(self.setting.bin / "hearth"), "--url", "http://127.0.0.1:%d" % self.server.port, "upload", str(path), "--time", "now",
             "--label", "service_name=hearthd", "--label", "load=" + load],
            check=True, stdout=subprocess.DEVNULL,
        )
        return self.draw(load)

    def draw(self, load):
        selector = '{service_name="hearthd", load="%s"}' % load
        now = self.setting.server_module.now_ms()
        types = [found[0] for found in self.server.profile_types(now - 600000, now + 1000)]
        for profile_type in types:
            if not self.server.series(now - 600000, now + 1000, [selector, '{__profile_type__="%s"}' % profile_type]):
                continue
            graph = self.server.flamegraph(profile_type, selector, now - 600000, now + 1000, 4096)
            fold_names(graph.root)
            PICTURES.mkdir(parents=True, exist_ok=True)
            flame(graph, "hearthd under %s, as Hearth answers it (%s)" % (load, profile_type),
                  PICTURES / ("self-%s.svg" % load))
            return top(graph)
        raise SystemExit("bench: Hearth has no profile of itself")


def fold_names(node):
    """One node for each library without symbols ("libdeflate.so.0+0x6b8b"), one for threads of one kind ("ingest-0")."""
    merged, children = {}, []
    for child in node.children:
        found = re.fullmatch(r"(.*)\+0x[0-9a-f]+", child.name)
        child.name = "[%s]" % found[1] if found else re.sub(r"-\d+$", "", child.name)
        if child.name in merged:
            into = merged[child.name]
            into.total += child.total
            into.self_value += child.self_value
            into.children += child.children
        else:
            merged[child.name] = child
            children.append(child)
    node.children = children
    at = node.start + node.self_value
    for child in children:
        child.start = at
        at += child.total
        fold_names(child)


def top(graph, n=16):
    """[(function, self in percent)] by self."""
    by_self = sorted(((own, name) for name, (own, _) in graph.functions().items()), reverse=True)
    return [(name, round(100 * own / graph.total, 1)) for own, name in by_self[:n]]


def flame(graph, title, path, width=1200, least=0.002):
    """Flame graph, callers below callees; cells narrower than `least` of the whole are left out."""
    depth = 0

    def depths(node, level):
        nonlocal depth
        depth = max(depth, level)
        for child in node.children:
            if child.total >= least * graph.total:
                depths(child, level + 1)

    depths(graph.root, 0)
    row = 17
    height = (depth + 1) * row + 50
    picture = Picture(width, height, title)
    picture.text(10, 22, title, 14, bold=True)

    def cell(node, level):
        x = 10 + node.start / graph.total * (width - 20)
        wide = node.total / graph.total * (width - 20)
        y = height - 12 - (level + 1) * row
        name = "all" if level == 0 else node.name
        picture.box(x, y, max(wide - 0.5, 0.5), row - 1, color(name), "%s: %.1f %%" % (name, 100 * node.total / graph.total))
        room = int((wide - 6) / 6.1)
        if room >= 4:
            picture.text(x + 3, y + 12, name if len(name) <= room else name[: room - 1] + "…", 10)
        for child in node.children:
            if child.total >= least * graph.total:
                cell(child, level + 1)

    cell(graph.root, 0)
    picture.save(path)


def color(name):
    """Ours that say so orange, libraries without symbols grey, the rest blue; shades by name."""
    shade = hashlib.sha256(name.encode()).digest()[0] / 255
    if name.startswith("hearth"):
        return "#%02x%02x%02x" % (235, 150 + int(50 * shade), 80 + int(40 * shade))
    if name.startswith("["):
        return "#d5d5d5"
    return "#%02x%02x%02x" % (190 + int(30 * shade), 205 + int(25 * shade), 225)


def run(setting):
    return SelfProfile(setting).run()
