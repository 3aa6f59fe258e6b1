#!/usr/bin/python3
"""Pictures of the web page and of the client, for README and docs: pictures.py DIRECTORY [WIDTH HEIGHT]

A hearthd with the recordings of the demo, spread over an hour: PostgreSQL that first reads, then writes. Each page is drawn in
both themes. Whoever changes the page looks at all of them.
"""

import gzip
import pathlib
import subprocess
import sys
import time
import urllib.parse

import browser
import directing_data
import terminal_picture
from server import HEARTH, ROOT, Server, now_ms, server_environment, temporary_directory
from terminal import Terminal

RECORDINGS = ROOT / "clients/demo/recording"
SELECTED = {"q": '{service_name="postgres"}'}
PAGES = {
    "explore": ("/", {"service": "postgres"}),
    "profile": ("/profile", {**SELECTED, "by": "load"}),
    "sandwich": ("/profile", {**SELECTED, "view": "sandwich", "function": "secure_read"}),
    "diff": ("/diff", {**SELECTED, "from": "now-26m", "to": "now"}),
    "compare": ("/compare", {**SELECTED, "from": "now-26m", "to": "now"}),
    "function": ("/function", {**SELECTED, "function": "secure_read", "by": "load", "history": "range"}),
    "heatmap": ("/heatmap", {}),
    "profiles": ("/profiles", {}),
    "traces": ("/traces", {}),
    "tasks": ("/tasks", {}),
    "policy": ("/policies", {"service": "shop", "from": "now-1h"}),
    "network": ("/network", {"service": "shop", "instance": "pod-1"}),
    "store": ("/adhoc", {"part": "store"}),
    "empty": ("/", {"from": "1000", "to": "2000"}),
    "admin": ("/admin", {}),
    **{"admin-" + part: ("/admin", {"part": part}) for part in ("applications", "limits", "retention", "deletion", "access", "queries")},
    "help": ("/help", {}),
}


def fill(server):
    for minutes in range(56, 0, -4):
        load = "read" if minutes > 26 else "write"
        recording = RECORDINGS / ("%d.txt.gz" % (1 + minutes // 4 % 3 + (0 if load == "read" else 3)))
        for service in ["postgres"] + (["postgres-standby"] if minutes % 8 == 0 else []):
            at = now_ms() // 1000 - minutes * 60
            name = urllib.parse.quote("%s{load=%s}" % (service, load))
            path = "/ingest?name=%s&from=%d&until=%d&format=perf_script&sampleRate=99" % (name, at, at + 3)
            status, _, answer = server.http("POST", path, gzip.decompress(recording.read_bytes()))
            assert status == 200, answer


def draw_client(seen, server, directory):
    """`hearth flame` on a terminal, and the page of `-o html` in both themes."""
    ask = [HEARTH, "flame", SELECTED["q"], "--since", "1h"]
    variables = {"HEARTH_URL": "http://127.0.0.1:%d" % server.port, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    folder = pathlib.Path(temporary_directory())

    terminal = Terminal(ask, server_environment(variables), 120, 34)
    terminal.see("q quit")
    (folder / "terminal.html").write_text(terminal_picture.page(terminal.screen))
    terminal.end()
    subprocess.run(ask + ["-o", "html=%s" % (folder / "viewer.html")], env=server_environment(variables), check=True)

    for name, scheme in (("terminal", "dark"), ("viewer", "light"), ("viewer", "dark")):
        seen.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        seen.driver.get("file://%s/%s.html" % (folder, name))
        time.sleep(1)
        seen.driver.save_screenshot(str(directory / ("%s-%s.png" % (name, scheme))))


def main():
    directory = pathlib.Path(sys.argv[1])
    width, height = (int(n) for n in sys.argv[2:4] or (1280, 800))
    server = Server()
    fill(server)
    directing_data.fill_policy(server)
    directing_data.fill_network(server, 12)
    directing_data.fill_stacks(server)
    seen = browser.Browser(width, height)
    base = "http://127.0.0.1:%d" % server.port
    for theme in ("light", "dark"):
        seen.open(base + "/help")
        seen.run("localStorage.setItem('hearth.theme', arguments[0])", theme)
        for name, (path, params) in PAGES.items():
            seen.open(base + path + "?" + urllib.parse.urlencode(params))
            seen.find("main h1")
            time.sleep(2)  # charts and pictures are drawn after their answers
            seen.driver.save_screenshot(str(directory / ("%s-%s.png" % (name, theme))))
    print("\n".join(seen.complaints()))
    draw_client(seen, server, directory)
    seen.stop()
    server.stop()


if __name__ == "__main__":
    main()
