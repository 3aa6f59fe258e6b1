"""What the flame graph costs in a browser, with a profile of 100,000 nodes.

    HEARTHD=build-release/bin/hearthd /usr/bin/python3 tests/bench/page.py

The page asks for 16,384 nodes. A proxy before hearthd raises this to all of them, so that page, server and answer are real. It holds the
answer until the page has nothing else to do. The first paint is measured in time of the processor that the page's thread uses from
then on; a worker has decoded before (`npm run bench` measures it). Of a zoom, Chromium's trace says the time of the
processor that each frame's callback used, and the whole task of the click: rendering, layout and the begin of the picture.
A browser without a graphics card also rasters the canvas in that thread; beside it stands all that the thread used for a
zoom. The browser runs at its own speed and then four times slower, as its developer tools slow it.
"""

import http.client
import http.server
import pathlib
import random
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import browser
import wire
from pprof import Profile
from server import Server, now_ms

NODES, FUNCTIONS, DEPTH, ROUNDS = 100_000, 5_000, 60, 7
MERGE = "/hearth.v1.QueryService/Merge"

# How many boxes each picture of the canvas had: a microtask runs when the painting function is done. What the page leaves for
# idle time waits until the first picture is measured; from then on boxes are not counted.
WATCH = """(() => {
  const { fillRect } = CanvasRenderingContext2D.prototype;
  const idle = window.requestIdleCallback.bind(window);
  const idleLater = [];
  let boxes = 0;
  window.paints = [];
  CanvasRenderingContext2D.prototype.fillRect = function (...place) {
    if (this.canvas.className === "flame-canvas" && boxes++ === 0)
      queueMicrotask(() => { paints.push(boxes); boxes = 0; });
    return fillRect.apply(this, place);
  };
  window.requestIdleCallback = (run) => idleLater.push(run);
  window.endFirstPaint = () => {
    CanvasRenderingContext2D.prototype.fillRect = fillRect;
    window.requestIdleCallback = idle;
    idleLater.forEach((run) => idle(run));
  };
})();"""
PAINTED = """
  const done = arguments[0];
  const look = () => paints.some((boxes) => boxes > 500) ? done(paints.find((boxes) => boxes > 500)) : setTimeout(look, 20);
  look();"""


def profile():
    made = Profile([("cpu", "nanoseconds")], time_ns=(now_ms() - 60_000) * 1_000_000)
    chance, nodes, stacks = random.Random(1), set(), [()]
    while len(nodes) < NODES:
        function = chance.randrange(FUNCTIONS)
        stack = chance.choice(stacks)[: DEPTH - 1] + ("pkg%d.function%d" % (function % 40, function),)
        stacks.append(stack)
        nodes.add(stack)
        made.add(["main", *stack], [int(1e6 / (chance.random() + 1e-3))])
    return made.encode()


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    port = 0
    gate = threading.Event()

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == MERGE:
            body += wire.encode([(3, 2 * NODES)])  # of a field that is there twice, the last one counts
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "content-length"}
        connection.request(self.command, self.path, body or None, headers)
        answer = connection.getresponse()
        content = answer.read()
        if self.path == MERGE:
            self.gate.wait(30)
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        connection.close()

    do_GET = do_POST = do_HEAD = answer

    def log_message(self, *_):
        pass


def used(seen):
    """Milliseconds of the processor that the page's thread has used."""
    metrics = seen.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration") * 1000


def zoom_times(seen, zooms):
    """Milliseconds of the processor of each frame's callback, and of each click, between the marks of `zooms` zooms."""
    events = []

    def marks():  # events come late: those of the first paint still do
        events.extend(seen.traced())
        return sorted(event["ts"] for event in events if event["name"] == "zoom")

    seen.until(lambda: len(marks()) == 2 * zooms, "the trace of all zooms")
    ends = marks()
    pairs = list(zip(ends[::2], ends[1::2]))
    within = [event for event in events if "tdur" in event and any(begin <= event["ts"] <= end for begin, end in pairs)]
    frames = [event["tdur"] / 1000 for event in within if event["name"] == "FireAnimationFrame"]
    clicks = [event["tdur"] / 1000 for event in within
              if event["name"] == "EventDispatch" and event["args"]["data"]["type"] == "click"]
    return frames, clicks


def calm(seen):
    """Waits until the page does nothing but wait for the flame graph."""
    seen.until(
        lambda: seen.run("return window.openRequests === 1 && document.querySelector('.timeline') !== null"),
        "the chart",
    )
    time.sleep(0.5)


def spread(times):
    """Median, the 95th of 100, and most."""
    ordered = sorted(times)
    return statistics.median(ordered), ordered[len(ordered) * 95 // 100], ordered[-1]


def measure(seen, base, slower):
    seen.driver.execute_cdp_cmd("Emulation.setCPUThrottlingRate", {"rate": slower})
    firsts, frames, clicks, zooms = [], [], [], []
    for _ in range(ROUNDS):
        Proxy.gate.clear()
        seen.open(base + "/profile?view=flame&q=%7B%7D")
        calm(seen)
        before = used(seen)
        Proxy.gate.set()
        boxes = seen.driver.execute_async_script(PAINTED)
        firsts.append(used(seen) - before)
        seen.run("endFirstPaint()")
        seen.settle()
        stage = seen.find(".flame-scroll")
        for row in (1, 2, 3):
            browser.webdriver.ActionChains(seen.driver).move_to_element_with_offset(
                stage, -200, 20 * row + 10 - stage.size["height"] // 2
            ).perform()
            time.sleep(0.5)  # the tooltip is there, and the file of the function
            before = used(seen)
            seen.run("performance.mark('zoom')")
            browser.webdriver.ActionChains(seen.driver).click().perform()
            time.sleep(0.3)  # a zoom takes 120 ms
            seen.run("performance.mark('zoom')")
            zooms.append(used(seen) - before)
        drawn, clicked = zoom_times(seen, 3)
        frames += drawn
        clicks += clicked
    print(
        "| %d times slower | %.0f (%.0f to %.0f) | %.1f | %.1f | %.1f | %.1f (%.1f) | %.0f (%.0f) | %d |"
        % (slower, statistics.median(firsts), min(firsts), max(firsts), *spread(frames), *spread(clicks)[::2],
           *spread(zooms)[::2], boxes),
        flush=True,
    )


def main():
    server = Server("--builder=false")
    server.push(profile(), {"__name__": "process_cpu", "service_name": "large"})
    Proxy.port = server.port
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    seen = browser.Browser(1600, 1000, trace="devtools.timeline,blink.user_timing")
    seen.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    seen.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    print(
        "| processor | first paint, ms: median (least to most) | frame of a zoom, ms: median | 95 % | most "
        "| its click: median (most) | all of it: median (most) | boxes |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for slower in (1, 4):
        measure(seen, "http://127.0.0.1:%d" % proxy.server_port, slower)
    seen.stop()
    server.stop()


if __name__ == "__main__":
    main()
