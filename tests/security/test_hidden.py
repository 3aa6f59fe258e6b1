"""Another tenant's administrator, and one narrowed to a part of the tenant, ask every RPC and route for what they may not see.

Each request is told exactly what its row says, and nothing that is told, counted or logged has a word, an id or a number of what
is hidden. The owner is told of it by the same requests, so they do ask.
"""

import base64
import json
import re
import time
import unittest

import grpc

import asks
import probes
import task_data
import wire
from agents import Network, Rover
from hidden import OPEN, SERVICE, TARGET_JOB, TENANT, VIEW, WORD, Hidden
from server import RpcError, now_ms
from test_access import JSON, AccessServer, bearer
from test_scrape import write_config

CODES = {200: "ok", 400: "invalid_argument", 401: "unauthenticated", 403: "permission_denied", 404: "not_found", 415: "invalid_argument",
         422: "invalid_argument", 501: "unimplemented"}
OUTSIDER, GUESS = "crimsontenant", "emeralds"


def other_id(i):
    """An id of the same form that nobody has."""
    if i.endswith("000004000000"):  # a profile: the number in its id
        return i.replace("000004000000", "000044000000")
    head, tail = i[:-6], i[-6:]
    if re.fullmatch("[0-9a-f]{6}", tail):
        return head + tail.translate(str.maketrans("0123456789abcdef", "123456789abcdef0"))
    return i.replace(WORD, GUESS) if WORD in i else head + tail[::-1]


def tells_requests(target):
    """Whether its answer repeats requests, as they were sent."""
    return target.path.split("/")[-1] in ("AuditLog", "RecentQueries")


class Asker:
    """Sends requests; returns (outcome, all bytes that came back)."""

    def __init__(self, server):
        self.server = server

    def ask(self, target, request, token):
        headers = {**bearer(token), **request.headers}
        if target.kind != "rpc":
            data = None if target.kind == "GET" else request.data
            return self.plain(target.kind, target.path + ("?" + request.body if request.body else ""), data, headers)
        if isinstance(request.body, dict):
            return self.plain("POST", target.path, json.dumps(request.body).encode(), {**JSON, **headers})
        return self.grpc(target, request.body, headers)

    def plain(self, method, path, data, headers):
        status, found, body = self.server.http(method, path, data, headers)
        code = CODES.get(status, str(status))
        if found.get("content-type") == "application/json" and status != 200:
            code = json.loads(body).get("code", code) if body else code
        return code, json.dumps(found).encode() + body

    def grpc(self, target, messages, headers):
        metadata = [(name.lower(), value) for name, value in headers.items()]
        collects = bool({"HEARTH_METHOD_COLLECT", "HEARTH_METHOD_CHAT"} & target.flags)
        streams = bool({"HEARTH_METHOD_STREAM", "HEARTH_METHOD_CHAT"} & target.flags)
        kind = ("stream_" if collects else "unary_") + ("stream" if streams else "unary")
        encoded = [m if isinstance(m, bytes) else wire.encode(m) for m in messages]
        call = getattr(self.server.channel, kind)(target.path)
        try:
            answer = call(iter(encoded) if collects else encoded[0], metadata=metadata, timeout=20)
            if streams:
                first = next(iter(answer), b"")
                answer.cancel()
                answer = first
            return "ok", answer
        except grpc.RpcError as error:
            said = (error.details() or "").encode() + repr(error.trailing_metadata()).encode()
            return error.code().name.lower(), said


class Hiding(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hearth = AccessServer("--scrape-config", write_config(TARGET_JOB, profiles={"memory": {"enabled": True}}), "--otlp-traces", "--max-wrong-credentials", "100000", "--log-level", "debug")
        cls.asker = Asker(cls.hearth.server)
        cls.hidden = Hidden(cls.hearth)
        cls.other = cls.hearth.token((OUTSIDER, "admin"), name="outsider")["token"]
        # Of a tenant in which nothing was sent under the hidden names.
        cls.empty = cls.hearth.token((OUTSIDER + "2", "admin"), name="empty")["token"]
        cls.narrowed = cls.hearth.token((TENANT, "admin", VIEW), name="narrowed")["token"]
        cls.requests = asks.everything(cls.hidden)
        cls.targets = probes.targets()

    @classmethod
    def tearDownClass(cls):
        cls.hearth.stop()

    def found(self, answer, request=None):
        """The words, ids and numbers of what is hidden that an answer has, also in base64, and its request did not."""
        asked = repr(request)
        text = answer.decode("latin-1")
        for part in re.findall(r"[A-Za-z0-9+/]{16,}={0,2}", text):
            text += "\n" + base64.b64decode(part + "=" * (-len(part) % 4)).decode("latin-1") if len(part.rstrip("=")) % 4 != 1 else ""
        words = set(re.findall(WORD + r"[a-z]*", text)) | set(re.findall(r"(?<!\d)70001\d{5}(?!\d)", text))
        ids = [str(i) for name, i in self.hidden.ids.items() if name != "openProfile"] + [self.hidden.span, self.hidden.trace]
        words |= {i for i in ids if len(i) > 8 and i in text}
        return {w for w in words if w not in asked}

    def asks(self, changes):
        for target in self.targets:
            for request in self.requests.get((target.kind, target.path), []):
                if changes == (request.owner is None):
                    yield target, request

    def ask_as_strangers(self, changes):
        """Two lists show callers what they asked themselves, and all of a tenant know its name."""
        wrong, known = [], {"other": "", "narrowed": TENANT}
        for target, request in sorted(self.asks(changes), key=lambda one: tells_requests(one[0])):
            for caller, token in (("other", self.other), ("narrowed", self.narrowed)):
                outcome, answer = self.asker.ask(target, request, token)
                expected = getattr(request, caller)
                said = "%s, %s %r" % (caller, target.path, request.body)
                if outcome != expected:
                    wrong.append("%s: %s instead of %s: %r" % (said, outcome, expected, answer[-200:]))
                known[caller] += repr(request.body) if re.search("AUDIT|MANY_TENANTS", repr(target.flags)) or tells_requests(target) else ""
                leaked = {w for w in self.found(answer, request) if w != TENANT or caller == "other"}
                leaked -= {self.hidden.ids["process"]} if "reportProcesses" in target.path else set()  # a hash of what was reported
                leaked -= {w for w in leaked if tells_requests(target) and w in known[caller]}
                if leaked:
                    wrong.append("%s: %s" % (said, sorted(leaked)))
        self.assertEqual(wrong, [], "\n".join(wrong))

    def told(self):
        """{(path, request): what the owner is told}, and that it is told of what is hidden where it should be."""
        out, shows, answers = {}, {}, {}
        for target, request in self.asks(False):
            outcome, answer = self.asker.ask(target, request, self.hidden.owner)
            if "IngestErrors" not in target.path and not tells_requests(target):  # they tell of the attempts
                out[target.path, repr(request.body)] = self.found(answer)
            shows.setdefault((target.path, request.owner), set()).update(self.found(answer, request))
            answers.setdefault((target.path, request.owner), []).append((outcome, answer[-200:]))
        wrong = ["%s %s: %s of %s" % (path, owner, found, answers[path, owner]) for (path, owner), found in shows.items()
                 if bool(found) != (owner == "shows")]
        self.assertEqual(wrong, [], "\n".join(wrong))
        return out

    def test_every_row_of_the_tables_has_requests(self):
        rows = {(t.kind, t.path) for t in self.targets}
        self.assertEqual(sorted(rows ^ set(self.requests)), [])

    def test_strangers_learn_and_change_nothing_and_the_owner_gets_answers(self):
        self.ask_as_strangers(False)
        before = self.told()
        self.ask_as_strangers(True)
        after = self.told()
        changed = {k: (before[k], v) for k, v in after.items() if before[k] != v}
        self.assertEqual(changed, {}, changed)


    def test_only_the_route_of_the_page_answers_in_html(self):
        """A browser never runs a name as a script. The page is the same for everybody."""
        for target, request in [*self.asks(False), *self.asks(True)]:
            if target.kind == "GET":
                path = target.path + ("?" + request.body if request.body else "")
                _, head, body = self.hearth.server.http("GET", path, headers={**bearer(self.hidden.owner), "Accept": "text/html"})
                kind = head.get("content-type", "").partition(";")[0]
                if target.path == "/" and kind == "text/html":
                    self.assertEqual(body, self.hearth.server.http("GET", path, headers={"Accept": "text/html"})[2])
                    continue
                self.assertIn(kind, ("application/json", "text/plain", "text/vnd.graphviz", "application/octet-stream", ""), target.path)

    # ---- agents narrowed to a service ----

    def test_refused_data_of_a_narrowed_agent_leave_nothing_behind(self):
        token = self.hearth.token((TENANT, "editor", '{service_name="%s"}' % OPEN), name="agents")["token"]
        metadata = [("authorization", "Bearer " + token)]
        agent = Rover(self.hearth.server, metadata=metadata)

        # Its own task, with a process that it does not see.
        asked = {"kind": "TASK_KIND_OFF_CPU", "service": OPEN, "durationMs": 60_000}
        task = self.hidden.ask("hearth.v1.TaskService/CreateTask", asked, token)["task"]["taskId"]
        now = now_ms()
        about = task_data.metadata(task, self.hidden.ids["process"], now, now)
        with self.assertRaises(RpcError) as caught:
            self.hearth.server.stream_unary(task_data.STACKS, [task_data.on_cpu((1, 2), 9, "", "main", about)], metadata)
        self.assertEqual(caught.exception.code, "permission_denied")
        self.assertNotIn(SERVICE, caught.exception.message)
        self.assertEqual(self.hidden.ask("hearth.v1.TaskService/ListSchedules", {"taskId": task}), {})

        # A sampled request of a service that nobody has reported.
        network = Network(agent, "ghostshop", "ghostpod")
        with self.assertRaises(RpcError) as caught:
            network.send_logs(network.sampled("t", "10.77.0.9:80", "local", at_ms=now))
        self.assertEqual(caught.exception.code, "permission_denied")
        services = self.hidden.ask("hearth.v1.ProcessService/ListServices", {})["services"]
        self.assertNotIn("ghostshop", [s["service"] for s in services])

    def test_a_sampled_request_shows_no_events_that_name_no_service(self):
        """They may be of any service; a narrowed agent may invent a request of their trace."""
        token = self.hearth.token((TENANT, "editor", '{service_name="%s"}' % OPEN), name="inventor")["token"]
        trace, at = WORD + "unnamed", now_ms()
        owner = Network(Rover(self.hearth.server, metadata=self.hidden.metadata), OPEN, "openpod")
        owner.send_events(owner.event(trace, "HTTP Request Sampling", {"data": WORD + "body"}, at * 10**6, at * 10**6 + 9, named=False))
        inventor = Network(Rover(self.hearth.server, metadata=[("authorization", "Bearer " + token)]), OPEN, "openpod")
        inventor.send_logs(inventor.sampled(trace, "10.77.0.9:80", "local", at_ms=at))
        asked = {"service": OPEN, "traceId": trace, "startMs": str(at - 60_000), "endMs": str(at + 60_000)}
        (request,) = self.hidden.ask("hearth.v1.NetworkService/ListSampledRequests", asked, token)["requests"]
        events = lambda token: self.hidden.ask("hearth.v1.NetworkService/GetSampledRequest", {"requestId": request["requestId"]}, token).get("events", [])
        self.assertEqual((len(events(self.hidden.owner)), events(token)), (1, []))

    # ---- guesses ----

    def guessed(self, value):
        """The request with names and ids that nobody has instead of those that are hidden."""
        if isinstance(value, dict):
            return {k.replace(WORD, GUESS): self.guessed(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self.guessed(v) for v in value)
        for i in self.secrets():
            value = value.replace(i, other_id(i)) if isinstance(value, str) else value
        return value.replace(WORD, GUESS) if isinstance(value, str) else value

    def secrets(self):
        ids = [i for name, i in self.hidden.ids.items() if name != "openProfile" and isinstance(i, str) and len(i) > 8]
        return [*ids, self.hidden.span, self.hidden.trace]

    def plain(self, answer):
        """Without what differs anyway: the names themselves, dates."""
        text = answer.decode("latin-1")
        for i in self.secrets():
            text = text.replace(i, "ID").replace(other_id(i), "ID")
        return re.sub(r'"date": "[^"]*"|[0-9a-f]{16,}', "", text.replace(GUESS, WORD))

    def guesses(self):
        for changes in (False, True):
            for target, request in self.asks(changes):
                guess = self.guessed(request.body)
                if guess != request.body and TENANT not in repr(request.body):
                    yield target, request, request._replace(body=guess)

    def test_hidden_objects_are_refused_like_missing_ones(self):
        wrong, n = [], 0
        for target, request, guess in self.guesses():
            for caller, token in (("other", self.empty), ("narrowed", self.narrowed)):
                if request.owner is None and getattr(request, caller) == "ok" or tells_requests(target):
                    continue  # it would change something of the caller's own
                answers = [self.asker.ask(target, r, token) for r in (request, guess)]
                n += 1
                if answers[0][0] != answers[1][0] or self.plain(answers[0][1]) != self.plain(answers[1][1]):
                    wrong.append("%s, %s %r: %r, but %r" % (caller, target.path, request.body, *answers))
        self.assertEqual(wrong, [], "\n".join(wrong))
        self.assertGreater(n, 150)

    def test_a_refusal_takes_as_long_as_for_a_missing_object(self):
        """The quickest of many calls each: a class of time, not a measurement. On a busy machine, of more calls."""
        wrong = []
        for target, request, guess in self.guesses():
            if request.narrowed != "not_found" or not isinstance(request.body, dict):
                continue
            for token in (self.empty, self.narrowed):
                took = [60.0, 60.0]
                differs = lambda took: max(took) > 3 * min(took) + 0.002  # noqa: E731
                for n in range(600):
                    if n >= 12 and not differs(took):
                        break
                    for k, asked in enumerate((request, guess)):
                        began = time.perf_counter()
                        self.asker.ask(target, asked, token)
                        took[k] = min(took[k], time.perf_counter() - began)
                if differs(took):
                    wrong.append("%s %r: %.1f ms, %.1f ms if it does not exist" % (target.path, request.body, 1000 * took[0], 1000 * took[1]))
        self.assertEqual(wrong, [], "\n".join(wrong))

    # ---- elsewhere ----

    def test_metrics_and_logs_contain_no_hidden_name(self):
        status, _, text = self.hearth.server.http("GET", "/metrics", headers=bearer(self.hearth.root))
        self.assertEqual(status, 200)
        self.assertEqual(self.found(text), set())
        self.assertNotIn(OUTSIDER.encode(), text)
        asked = [request.body for _, request in [*self.asks(False), *self.asks(True)]]
        lines = [line for line in self.hearth.server.log().splitlines() if "tenant=" + TENANT not in line]
        self.assertIn("tenant=" + OUTSIDER, "\n".join(lines))
        self.assertEqual([line for line in lines if self.found(line.encode(), asked)], [])


if __name__ == "__main__":
    unittest.main()
