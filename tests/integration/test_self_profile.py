"""hearthd's CPU profile of itself: taken under load, read by go tool pprof, pushed back into Hearth."""

import concurrent.futures
import json
import os
import subprocess
import threading
import time
import unittest

import pprof
import server
import wire

PROFILE = "/debug/pprof/profile"
NAMES = "/" + server.QUERIER + "LabelNames"


class SelfProfile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server.Server()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.terminate() == 0

    def load(self, stop):
        """Pushes of some size, so that ingest threads inflate and decode."""
        profile = pprof.Profile([("cpu", "nanoseconds")], time_ns=time.time_ns())
        for i in range(3000):
            profile.add(["main", "a%d" % (i % 50), "b%d" % i], [i + 1])
        body = profile.encode()

        def push(k):
            n = 0
            while not stop.is_set():
                self.server.push(body, {"__name__": "process_cpu", "service_name": "load-%d" % k})
                n += 1
            return n

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            return sum(pool.map(push, range(4)))

    def threads(self):
        return len(os.listdir("/proc/%d/task" % self.server.process.pid))

    def timers(self):  # the acceptor has one that stays
        with open("/proc/%d/timers" % self.server.process.pid) as timers:
            return timers.read()

    def test_a_profile_under_load_names_our_functions_and_is_read_back_from_hearth(self):
        stop = threading.Event()
        loader = threading.Thread(target=self.load, args=(stop,))
        loader.start()
        try:
            time.sleep(1)
            for seconds in (3, 10, 30):  # longer where the server gets little of the processors
                began = time.monotonic()
                status, headers, body = self.server.http("GET", PROFILE + "?seconds=%d" % seconds)
                took = time.monotonic() - began
                self.assertEqual((status, headers["content-type"]), (200, "application/octet-stream"))
                self.assertGreaterEqual(took, seconds)
                decoded = wire.decode(pprof.inflate(body))
                if sum(wire.ints(wire.decode(s)[2])[0] for s in decoded.get(2, [])) >= 100:
                    break
        finally:
            stop.set()
            loader.join()
        strings = wire.texts(decoded[6])
        types = [[strings[v[0]] for v in wire.decode(t).values()] for t in decoded[1]]
        self.assertEqual(types, [["samples", "count"], ["cpu", "nanoseconds"]])
        self.assertEqual(decoded[12], [10_000_000])
        self.assertGreaterEqual(decoded[10][0], 3_000_000_000)
        values = [wire.ints(wire.decode(s)[2]) for s in decoded[2]]
        samples, cpu = (sum(column) for column in zip(*values))
        self.assertGreater(samples, 10)
        self.assertEqual(cpu, samples * 10_000_000)
        mappings = [wire.decode(m) for m in decoded[3]]
        self.assertTrue(any(strings[m[5][0]].endswith("/hearthd") for m in mappings), strings)
        self.assertTrue(all(len(strings[m[6][0]]) == 40 for m in mappings if "hearthd" not in strings[m[5][0]] and 6 in m))
        # Stacks are whole: they reach from our own code down to where threads begin.
        functions = {f[1][0]: strings[f[2][0]] for f in map(wire.decode, decoded[5])}
        lines = {l[1][0]: functions[wire.decode(l[4][0])[1][0]] for l in map(wire.decode, decoded[4]) if 4 in l}
        stacks = [[lines.get(i, "?") for i in wire.ints(wire.decode(s)[1])] for s in decoded[2]]
        ours = [s for s in stacks if any(name.startswith("hearth_") for name in s)]
        self.assertTrue(ours, stacks[:5])
        deep = [s for s in ours if len(s) > 4]
        self.assertTrue(deep, ours[:5])
        whole = [s for s in deep if s[-1].startswith(("clone", "__clone", "start_thread", "_start", "__libc_start", "?"))]
        self.assertGreaterEqual(len(whole) * 10, len(deep) * 8, [s[-1] for s in deep])
        for stack in stacks:
            self.assertNotIn("on_sigprof", stack)
            self.assertNotIn("_Unwind_Backtrace", stack)
        self.read_by_go(body)
        self.server.push(body, {"__name__": "process_cpu", "service_name": "hearthd"})
        now = int(time.time() * 1000)
        answer = self.server.connect(
            server.QUERIER + "SelectMergeStacktraces",
            {"profileTypeID": "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "labelSelector": '{service_name="hearthd"}',
             "start": now - 600_000, "end": now + 600_000},
        )
        self.assertEqual(int(answer["flamegraph"]["total"]), cpu)

    def read_by_go(self, body):
        go = pprof.go_command()
        if go is None:
            server.note("go is not installed: its reading of the profile was not tried")
            return
        path = os.path.join(self.server.directory, "self.pb.gz")
        with open(path, "wb") as file:
            file.write(body)
        text = subprocess.run(
            [go, "tool", "pprof", "-top", "-symbolize=none", path], capture_output=True, text=True,
            env={**os.environ, "PPROF_TMPDIR": self.server.directory},
        )
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertIn("Type: cpu", text.stdout)
        self.assertIn("File: hearthd", text.stdout)
        self.assertIn("hearth_", text.stdout)

    def test_one_self_profile_runs_at_a_time_and_leaves_no_thread_or_timer(self):
        before, timers = self.threads(), self.timers()
        answers = []
        first = threading.Thread(target=lambda: answers.append(self.server.http("GET", PROFILE + "?seconds=5")))
        first.start()
        server.eventually(lambda: self.timers() != timers, what="the timers of the first")  # other work starts threads, too
        status, headers, body = self.server.http("GET", PROFILE + "?seconds=1")
        self.assertEqual((status, json.loads(body)["code"]), (429, "resource_exhausted"))
        self.assertNotIn("content-disposition", headers)
        first.join()
        self.assertEqual(answers[0][0], 200)
        server.eventually(lambda: self.threads() <= before, what="the thread's end")
        self.assertEqual(self.timers(), timers)

    def test_a_client_that_disconnects_ends_the_self_profile(self):
        import socket

        sock = socket.create_connection(("127.0.0.1", self.server.port))
        sock.sendall(b"GET /debug/pprof/profile?seconds=60 HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.5)
        sock.close()
        server.eventually(lambda: self.server.http("GET", PROFILE + "?seconds=1")[0] == 200, what="room for the next")

    def test_an_invalid_number_of_seconds_is_refused(self):
        for bad in ("0", "61", "-1", "x", "1.5", ""):
            status, _, body = self.server.http("GET", PROFILE + "?seconds=" + bad)
            self.assertEqual((status, json.loads(body)["code"]), (400, "invalid_argument"), bad)
        self.assertEqual(self.server.http("POST", PROFILE)[0], 405)
        status, headers, body = self.server.http("GET", "/debug/pprof/")
        self.assertEqual(status, 200)
        self.assertIn(b"/debug/pprof/profile", body)


if __name__ == "__main__":
    unittest.main()
