#!/usr/bin/python3
"""Pictures of the web page and of the client, for README and docs: pictures.py DIRECTORY [WIDTH HEIGHT]

A hearthd with the recordings of the demo, spread over an hour: PostgreSQL that first reads, then writes. Each page is drawn in
both themes and both languages: NAME-THEME.png is English, NAME-THEME-zh.png Chinese. Whoever changes the page looks at all of them,
also with a width of 360 and of 3840.
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
from pprof import Profile
from server import HEARTH, ROOT, Server, now_ms, server_environment, temporary_directory
from terminal import Terminal

RECORDINGS = ROOT / "clients/demo/recording"
TRACE, SPAN, QUERY = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "b7ad6b7169203331"
SELECTED = {"q": '{service_name="postgres"}'}
ADMIN_PARTS = ("applications", "limits", "retention", "deletion", "errors", "scrape", "queries", "access", "audit")
PAGES = {
    "explore": ("/", {"service": "postgres"}),
    "profile": ("/profile", {**SELECTED, "by": "load"}),
    "sandwich": ("/profile", {**SELECTED, "view": "sandwich", "function": "secure_read"}),
    "diff": ("/diff", {**SELECTED, "from": "now-26m", "to": "now"}),
    "compare": ("/compare", {**SELECTED, "from": "now-26m", "to": "now"}),
    "function": ("/function", {**SELECTED, "function": "secure_read", "by": "load", "history": "range"}),
    "heatmap": ("/heatmap", {}),
    "heatmap-spans": ("/heatmap", {"q": '{service_name="shop"}', "of": "spans"}),
    "profiles": ("/profiles", {}),
    "traces": ("/traces", {}),
    "trace": ("/traces", {"id": TRACE}),
    "tasks": ("/tasks", {}),
    "policies": ("/policies", {}),
    "policy": ("/policies", {"service": "shop", "from": "now-1h"}),
    "network": ("/network", {"service": "shop", "instance": "pod-1"}),
    "files": ("/adhoc", {}),
    "store": ("/adhoc", {"part": "store"}),
    "empty": ("/", {"from": "1000", "to": "2000"}),
    "admin": ("/admin", {}),
    **{"admin-" + part: ("/admin", {"part": part}) for part in ADMIN_PARTS},
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

    # A request of a service whose profiler knows the spans.
    made = Profile([("cpu", "nanoseconds")], time_ns=(now_ms() - 120_000) * 1_000_000, duration_ns=10_000_000_000)
    for stack, ms, span in (("main;handle;json.Marshal", 310, SPAN), ("main;handle;db.Query;net.Read", 140, QUERY)):
        made.add(stack.split(";"), [ms * 1_000_000], {"trace_id": TRACE, "span_id": span, "trace endpoint": "POST /pay"})
    server.push(made.encode(), {"__name__": "process_cpu", "service_name": "shop", "pod": "pod-1"})
    server.http("POST", "/ingest?name=shop", b"this is no profile")


def addresses_of_one(server):
    """Pages of one profile, one task and two files, whose ids the server made."""
    filter_ = {"start": str(now_ms() - 3_600_000), "end": str(now_ms()), "labelSelector": SELECTED["q"]}
    profile = server.connect("hearth.v1.ProfileService/ListProfiles", {"filter": filter_})["profiles"][0]["id"]
    upload = lambda name, text: server.connect("adhocprofiles.v1.AdHocProfileService/Upload", {"name": name, "profile": text})["id"]
    files = " ".join((upload("before.txt", "bWFpbjtwYXJzZSA4MAo="), upload("after.txt", "bWFpbjtwYXJzZSA2MAptYWluO25ldyAxMAo=")))
    return {
        "one-profile": ("/profiles", {"id": profile}),
        "one-task": ("/tasks", {"id": directing_data.fill_stacks(server)}),
        "compared-files": ("/adhoc", {"ids": files}),
    }


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
    directory.mkdir(exist_ok=True)
    width, height = (int(n) for n in sys.argv[2:4] or (1280, 800))
    server = Server()
    fill(server)
    directing_data.fill_policy(server)
    directing_data.fill_network(server, 12)
    pages = {**PAGES, **addresses_of_one(server)}
    seen = browser.Browser(width, height)
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    seen.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    base = "http://127.0.0.1:%d" % server.port
    for theme in ("light", "dark"):
        for language in ("en", "zh"):
            seen.open(base + "/help")
            seen.run("localStorage['hearth.theme'] = arguments[0]; localStorage['hearth.language'] = arguments[1]", theme, language)
            for name, (path, params) in pages.items():
                seen.open(base + path + "?" + urllib.parse.urlencode(params))
                seen.settle()
                name += "-" + theme + ("" if language == "en" else "-" + language)
                seen.driver.save_screenshot(str(directory / (name + ".png")))
    print("\n".join(seen.complaints()))
    draw_client(seen, server, directory)
    seen.stop()
    server.stop()


if __name__ == "__main__":
    main()
