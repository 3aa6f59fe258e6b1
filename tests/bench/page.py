"""What the flame graph costs in a browser, with a profile of 100,000 nodes.

    HEARTHD=build-release/bin/hearthd /usr/bin/python3 tests/bench/page.py

The page asks for 16,384 nodes. A proxy before hearthd raises this to all of them, so that page, server and answer are real. The browser
runs at its own speed and then with a processor that is four times slower, as its developer tools slow it.
"""

import http.client
import http.server
import pathlib
import random
import statistics
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import browser
import wire
from pprof import Profile
from server import Server, now_ms

NODES, FUNCTIONS, DEPTH, ROUNDS = 100_000, 5_000, 60, 7
MERGE = "/hearth.v1.QueryService/Merge"

# When the canvas was painted, and how long each animation frame took. A microtask runs when the painting function is done.
WATCH = """(() => {
  const { fillRect } = CanvasRenderingContext2D.prototype;
  let boxes = 0;
  window.paints = [];
  window.frameTimes = [];
  CanvasRenderingContext2D.prototype.fillRect = function (...place) {
    if (this.canvas.className === "flame-canvas" && boxes++ === 0)
      queueMicrotask(() => { paints.push({ end: performance.now(), boxes }); boxes = 0; });
    return fillRect.apply(this, place);
  };
  const request = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (run) => request((now) => {
    const begin = performance.now();
    run(now);
    frameTimes.push(performance.now() - begin);
  });
})();"""
FIRST = """
  const answer = performance.getEntriesByType("resource").find((entry) => entry.name.endsWith("/Merge"));
  const paint = paints.find((paint) => paint.boxes > 500);
  return answer && paint ? { ms: paint.end - answer.responseEnd, boxes: paint.boxes, bytes: answer.decodedBodySize } : null;"""


def profile():
    made = Profile([("cpu", "nanoseconds")], time_ns=(now_ms() - 60_000) * 1_000_000)
    chance, nodes, stacks = random.Random(1), set(), [()]
    while len(nodes) < NODES:
        function = chance.randrange(FUNCTIONS)
        stack = chance.choice(stacks)[:DEPTH - 1] + ("pkg%d.function%d" % (function % 40, function),)
        stacks.append(stack)
        nodes.add(stack)
        made.add(["main", *stack], [int(1e6 / (chance.random() + 1e-3))])
    return made.encode()


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    port = 0

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == MERGE:
            body += wire.encode([(3, 2 * NODES)])  # of a field that is there twice, the last one counts
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "content-length"}
        connection.request(self.command, self.path, body or None, headers)
        answer = connection.getresponse()
        content = answer.read()
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


def median(numbers):
    return "%.0f (%.0f to %.0f)" % (statistics.median(numbers), min(numbers), max(numbers))


def measure(seen, base, slower):
    seen.driver.execute_cdp_cmd("Emulation.setCPUThrottlingRate", {"rate": slower})
    firsts, frames = [], []
    for _ in range(ROUNDS):
        seen.open(base + "/profile?view=flame&q=%7B%7D")
        first = seen.until(lambda: seen.run(FIRST), "a painted flame graph")
        firsts.append(first["ms"])
        seen.settle()
        seen.run("frameTimes.length = 0")
        stage = seen.find(".flame-scroll")
        for row in (1, 2, 3):
            browser.webdriver.ActionChains(seen.driver).move_to_element_with_offset(stage, -200, 20 * row + 10 - stage.size["height"] // 2) \
                .click().perform()
            seen.settle()
        frames += seen.run("return frameTimes")
    print("| %d times slower | %s | %.1f | %.1f | %d | %d |" % (
        slower, median(firsts), statistics.median(frames), max(frames), first["boxes"], first["bytes"]), flush=True)


def main():
    server = Server("--builder=false")
    server.push(profile(), {"__name__": "process_cpu", "service_name": "large"})
    Proxy.port = server.port
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    seen = browser.Browser(1600, 1000)
    seen.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    print("| processor | first paint after the bytes, ms: median (least to most) | frame, ms: median | most | boxes | bytes |")
    print("|---|---|---|---|---|---|")
    for slower in (1, 4):
        measure(seen, "http://127.0.0.1:%d" % proxy.server_port, slower)
    seen.stop()
    server.stop()


if __name__ == "__main__":
    main()
