"""traced.py HOST:PORT SERVICE INSTANCE SECONDS: a web server with a slow page, traced by apache-skywalking, that asks itself for that
page, one request after the other, as long as it lives."""

import http.server
import sys
import threading
import time
import urllib.request

from skywalking import agent, config

address, service, instance, seconds = sys.argv[1:]
config.init(
    agent_collector_backend_services=address,
    agent_name=service,
    agent_instance_name=instance,
    agent_collector_get_profile_task_interval=2,
    agent_collector_heartbeat_period=5,
)
agent.start()


def look_for_the_order(until):
    """What a request spends its time in."""
    total = 0
    while time.monotonic() < until:
        total += sum(i * i for i in range(500))
    return total


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/checkout":
            look_for_the_order(time.monotonic() + 1.2)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"done\n")

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()
end = time.monotonic() + float(seconds)
while time.monotonic() < end:
    for page in ("/checkout", "/quick"):
        urllib.request.urlopen("http://127.0.0.1:%d%s" % (server.server_port, page)).read()
