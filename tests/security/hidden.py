"""What must not be seen: a service with one of everything, each text of it beginning with the same word.

The same tenant has a service that anybody narrowed to team x may see, and a third service with series of both teams.
"""

import base64
import json

import agents
import otlp
import policy_agents
import task_data
from agents import Instance, Network, Process, Rover
from pprof import Profile
from server import eventually, now_ms
from test_access import bearer

WORD = "cerulean"
TENANT = WORD + "tenant"
SERVICE, POD, TEAM = WORD + "shop", WORD + "pod", WORD + "team"
TWIN = WORD + "twin"  # a second instance, which has not asked for its tasks yet
OPEN, SHARED = "openshop", "sharedshop"  # service_name
VIEW = '{team="x"}'
NUMBER = 7_000_123_456  # the value of each hidden profile: ten digits that nothing else has
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
MINUTE = 60_000
DURATION = 15 * MINUTE  # the longest of pprof tasks: none ends before the test does
# For --scrape-config: a target of the tenant, where nobody answers.
TARGET_JOB = {"job_name": WORD + "job", "tenant": TENANT, "static_configs": [
    {"targets": ["127.0.0.1:1"], "labels": {"service_name": SERVICE, "team": TEAM}}]}


def profile(word, value, labels):
    p = Profile([("cpu", "nanoseconds")], time_ns=now_ms() * 1_000_000)
    p.add([word + "main", word + "work"], [value], labels)
    return p.encode()


def based(content):
    return base64.b64encode(content).decode()


class Hidden:
    """ids: of what was made, by the name of the field that takes one."""

    def __init__(self, hearth):
        self.hearth, self.server = hearth, hearth.server
        self.owner = hearth.token((TENANT, "admin"), name=WORD + "owner")["token"]
        self.metadata = [("authorization", "Bearer " + self.owner)]
        self.now = now_ms()
        self.span, self.trace = "c0ffee%010x" % (self.now % 16**10), "c0ffee%026x" % self.now
        self.ids = {}
        self.push()
        self.make_objects()
        self.run_agents()
        self.run_network()
        self.export_spans()
        self.fail_and_erase()

    def ask(self, method, message, token=None):
        status, _, answer = self.hearth.post("/" + method, message, bearer(token or self.owner))
        if status != 200:
            raise AssertionError("%s: %d %s" % (method, status, answer))
        return answer

    def times(self, **names):
        """The range of everything, an hour, so that a step of an hour ends with it: times(start="startMs", end="endMs")."""
        values = {"start": self.now - 3_000_000, "end": self.now + 600_000}
        return {name: str(values[which]) for which, name in names.items()}

    # ---- series ----

    def push(self):
        spans = {"span_id": self.span, "trace_id": self.trace, "span_name": WORD + "spanname", "trace endpoint": WORD + "endpoint"}
        for service, team, word, value in (
            (SERVICE, TEAM, WORD, NUMBER), (SHARED, TEAM, WORD + "shared", NUMBER), (OPEN, "x", "open", 5), (SHARED, "x", "open", 7),
        ):
            is_hidden = team == TEAM
            labels = {"__name__": "process_cpu", "service_name": service, "team": team}
            more = {WORD + "label": WORD + "value"} if is_hidden else {"openlabel": "openvalue"}
            self.server.push(profile(word, value, spans if is_hidden else {}), {**labels, **more}, metadata=self.metadata)
        listed = self.ask("hearth.v1.ProfileService/ListProfiles", {"filter": self.times(start="start", end="end")})["profiles"]
        text = json.dumps(listed)
        assert len(listed) == 4 and WORD in text, text
        of = {p["id"]: json.dumps(self.ask("hearth.v1.ProfileService/GetProfile", {"id": p["id"]})) for p in listed}
        self.ids["profile"] = next(i for i, said in of.items() if SERVICE in said)
        self.ids["openProfile"] = next(i for i, said in of.items() if OPEN in said)

    # ---- objects of the tenant ----

    def make_objects(self):
        ask, ids = self.ask, self.ids
        rule = {"metricName": "profiles_recorded_" + WORD, "matchers": ['{__profile_type__="%s", team="%s"}' % (CPU, TEAM)], "groupBy": ["team"]}
        ask("settings.v1.RecordingRulesService/UpsertRecordingRule", rule)
        ids["rule"] = ask("settings.v1.RecordingRulesService/ListRecordingRules", {})["rules"][0]["id"]
        ask("settings.v1.SettingsService/Set", {"setting": {"name": WORD + "setting", "value": WORD + "value"}})
        adhoc = {"name": WORD + "file", "profile": based(profile(WORD + "adhoc", NUMBER, {}))}
        ids["adhoc"] = ask("adhocprofiles.v1.AdHocProfileService/Upload", adhoc)["id"]
        content = (WORD + "main;" + WORD + "file 5\n").encode()
        labels = [{"name": "service_name", "value": SERVICE}, {"name": "team", "value": TEAM}]
        named = {"fileName": WORD + "name", "labels": labels, "sizeBytes": str(len(content)), "fromMs": str(self.now)}
        uploads = "hearth.v1.UploadService/"
        ids["upload"] = ask(uploads + "CreateUpload", named)["uploadId"]
        ask(uploads + "PutPart", {"uploadId": ids["upload"], "part": 0, "data": based(content)})
        ask(uploads + "FinishUpload", {"uploadId": ids["upload"]})
        done = lambda: ask(uploads + "GetUpload", {"uploadId": ids["upload"]})["state"] == "UPLOAD_STATE_DONE"
        eventually(done, what="the end of the upload")
        applications = "hearth.v1.ApplicationService/"
        ask(applications + "Set", {"name": SERVICE, "owner": WORD + "people", "description": WORD + "text"})
        ask(applications + "SetRule", {"name": WORD + "rule", "labelSelector": '{team="%s"}' % TEAM, "profiling": "PROFILING_ON"})
        token = self.hearth.token((TENANT, "viewer", '{team="%s"}' % TEAM), name=WORD + "token")
        ids["token"] = token["id"]
        self.hearth.must("CreateUser", {"name": WORD + "user", "password": "a long enough password"})
        grant = {"subject": "user:" + WORD + "user", "tenant": TENANT, "role": "viewer"}
        ids["grant"] = ask("hearth.v1.AccessService/AddGrant", grant)["id"]
        ask("hearth.v1.NetworkService/SetAddresses", {"addresses": [{"address": "10.77.0.1", "name": WORD + "address"}]})

    # ---- agents and tasks ----

    def run_agents(self):
        rover, ids = Rover(self.server, metadata=self.metadata), self.ids
        self.rover, self.process = rover, Process(SERVICE, POD, WORD + "app", labels=[WORD + "processlabel"])
        rover.report(self.process)
        both = Rover(self.server, metadata=self.metadata)
        both.report(Process(SHARED, WORD + "sharedpod", WORD + "app"), Process(OPEN, "openpod", "openapp"))
        ids["agent"], ids["process"], self.shared_agent = rover.agent_id, self.process.process_id, both.agent_id
        policy = {"service": SERVICE, "modifiedBy": WORD + "author", "targets": [{"kind": "TASK_KIND_ON_CPU", "checkItems": [
            {"monitor": "MONITOR_KIND_HTTP_ERROR_RATE", "threshold": 80, "periodSeconds": 10, "count": 3, "uriPaths": ["/" + WORD + "uri"]}]}]}
        ids["policyUuid"] = self.ask("hearth.v1.PolicyService/SetPolicy", {"policy": policy})["policy"]["uuid"]
        Instance(self.server, SERVICE, TWIN, metadata=self.metadata).report()
        kinds = {
            "onCpu": {"kind": "TASK_KIND_ON_CPU", "durationMs": DURATION}, "network": {"kind": "TASK_KIND_NETWORK", "instance": POD},
            "traceTask": {"kind": "TASK_KIND_TRACE", "durationMs": DURATION, "endpoint": "/" + WORD + "pay", "dumpPeriodMs": 10, "maxSamples": 5},
            "pprof": {"kind": "TASK_KIND_PPROF", "durationMs": DURATION, "instances": [POD, TWIN], "events": ["cpu"]},
        }
        for name, fields in kinds.items():
            ids[name] = self.ask("hearth.v1.TaskService/CreateTask", {"service": SERVICE, **fields})["task"]["taskId"]
        rover.query_tasks()
        about = task_data.metadata(ids["onCpu"], ids["process"], self.now, self.now)
        rover.server.stream_unary(task_data.STACKS, [task_data.on_cpu((1, 2), 9, "read", "main-%sstack" % WORD, about)], self.metadata)
        ids["schedule"] = task_data.schedule_id(ids["onCpu"], ids["process"], self.now)
        self.program = program = Instance(self.server, SERVICE, POD, metadata=self.metadata)
        program.report({WORD + "property": WORD + "value"})
        for method in (Instance.TRACE, Instance.PPROF):
            program.query_tasks(method)
        ids["segment"] = WORD + "segment"
        span = agents.span(0, "/" + WORD + "pay", self.now, self.now + 900, tags={WORD + "tag": WORD + "tagged"})
        program.send_segments(program.segment(WORD + "trace", ids["segment"], [span]))
        frames = ["main", WORD + "snapshot"]
        program.send_snapshots(*(agents.snapshot(ids["traceTask"], ids["segment"], k, self.now + 10 * k, frames) for k in range(3)))
        content = profile(WORD + "pprof", NUMBER, {})
        program.chat(task_data.PPROF, [[task_data.about(SERVICE, POD, ids["pprof"], 0, len(content))], [(3, content)]])
        ids["taskUpload"] = self.ask("hearth.v1.TaskService/ListUploads", {"taskId": ids["pprof"]})["uploads"][0]["uploadId"]
        labels = {"uri": "/" + WORD + "uri", "process_name": WORD + "app"}
        self.monitor = policy_agents.meter("rover_con_p_http_error_rate", 5, labels, SERVICE, POD, self.now)

    def run_network(self):
        network, at = Network(self.rover, SERVICE, POD), self.now // MINUTE * MINUTE - 2 * MINUTE
        labels = network.labels(self.process, "10.77.0.1:80")
        network.flush(network.value("client_write_counts_counter", 3, labels), at_ms=at)
        found = network.sampled(WORD + "requesttrace", self.process, "10.77.0.1:80", uri="/" + WORD + "uri", latency=900, at_ms=self.now)
        network.send_logs(found)
        tags = {"data_type": "http1", "direction": "ingress", "data": WORD + "body"}
        network.send_events(network.event(WORD + "requesttrace", "HTTP Request Sampling", tags, at * 10**6, at * 10**6 + 9))
        listed = lambda: self.ask("hearth.v1.NetworkService/ListSampledRequests", {
            "service": SERVICE, "instance": POD, **self.times(start="startMs", end="endMs")}).get("requests")
        self.ids["request"] = eventually(listed, what="the sampled request")[0]["requestId"]
        self.server.stream_unary(policy_agents.COLLECT, [task_data.wire.encode(self.monitor)], self.metadata)

    # ---- spans, failures, deletions ----

    def export_spans(self):
        made = otlp.span(bytes.fromhex(self.trace), bytes.fromhex(self.span), WORD + "exported", tags={WORD + "key": WORD + "tag"})
        body = otlp.request(({"service.name": SERVICE, "service.instance.id": POD}, [made]))
        self.server.grpc_bytes(otlp.EXPORT, body, self.metadata)

    def fail_and_erase(self):
        status, _, answer = self.server.http("POST", "/ingest?name=%s.%snonsense" % (SERVICE, WORD), b"a;b 1\n", bearer(self.owner))
        assert status == 400 and WORD.encode() in answer, answer
        gone = {"__name__": "process_cpu", "service_name": SERVICE, "team": TEAM, WORD + "label": WORD + "gone"}
        self.server.push(profile(WORD, 1, {}), gone, metadata=self.metadata)
        erase = {"labelSelector": '{%slabel="%sgone"}' % (WORD, WORD), **self.times(start="start", end="end"),
                 "expectedSeries": "1", "requestedBy": WORD + "reason"}
        self.ids["erasure"] = self.ask("hearth.v1.AdminService/Erase", erase)["erasureId"]
