#!/usr/bin/python3
"""Clients of Pyroscope, agents of SkyWalking and SDKs of OpenTelemetry, unchanged, from their registries, against a real hearthd.

run.py [NAME...]   all, or those whose name contains one of these; --strict: a client that could not be run fails the run

A line per client: ok, FAILED and why, or NOT RUN and why; exactly one line at the end says how many of each. The generic
clients (connect-go, connect-es, grpcio by reflection) ask every question of ../integration/contract.py over every protocol that
they speak; the SDKs profile a program and must be found again with its functions. Everything is installed below
build/conformance, by the tools of the machine as it has them configured.
"""

import collections
import functools
import gzip
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import time
import urllib.parse
import zipfile
from xml.etree import ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/conformance"
sys.path.insert(0, str(ROOT / "tests/integration"))

import contract  # noqa: E402
import datadog  # noqa: E402
import grafana  # noqa: E402
import openid  # noqa: E402
import otlp  # noqa: E402
import schema  # noqa: E402
import secured  # noqa: E402
import spans  # noqa: E402
import test_contract  # noqa: E402
import wire  # noqa: E402
from pprof import Decoded, Profile  # noqa: E402
from server import HEARTH, SHARED, Server, eventually, now_ms  # noqa: E402

WORK = ROOT / "build/conformance"
GO = "1.25.4"  # what Debian's go fetches through its module proxy when it is too old itself


class NotRun(Exception):
    """The client cannot be had here; nothing is known about the server."""


def run(*command, cwd=None, seconds=900, env=None):
    """Standard output. AssertionError: it failed."""
    done = subprocess.run(
        [str(c) for c in command], cwd=cwd, capture_output=True, text=True, timeout=seconds,
        env={**os.environ, **(env or {})},
    )
    assert done.returncode == 0, "%s ended with %d: %s" % (command[0], done.returncode, (done.stderr or done.stdout)[-1500:])
    return done.stdout


def install(*command, **more):
    try:
        return run(*command, **more)
    except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
        raise NotRun(str(error)) from None


def tool(name, *places):
    found = shutil.which(name) or next((p for p in places if os.access(p, os.X_OK)), None)
    if found is None:
        raise NotRun("there is no %s on this machine" % name)
    return found


def copied(name):
    """The client's directory, copied to where it may be built."""
    target = WORK / name
    shutil.copytree(HERE / name, target, dirs_exist_ok=True)
    return target


# ---- tools ----


def go():
    """A go that is new enough: the machine's, or one that an older go fetches as a module."""
    found = tool("go", "/usr/lib/go-1.19/bin/go")
    version = install(found, "env", "GOVERSION").strip()
    if tuple(int(n) for n in version.removeprefix("go").split(".")[:2]) >= (1, 25):
        return found
    module = install(found, "mod", "download", "-json", "golang.org/toolchain@v0.0.1-go%s.linux-amd64" % GO, env={"GOFLAGS": "-mod=mod"})
    directory = WORK / "go-toolchain"
    shutil.copytree(json.loads(module)["Dir"], directory, dirs_exist_ok=True)
    for program in [*directory.glob("bin/*"), *directory.glob("pkg/tool/*/*")]:
        program.chmod(0o755)
    return str(directory / "bin/go")


def go_program(name, module="go"):
    directory, program = copied(module), go()
    package = "./" + name if (directory / name).is_dir() else "."
    install(program, "build", "-o", WORK / "bin" / name, package, cwd=directory, env={"GOTOOLCHAIN": "local"})
    return WORK / "bin" / name


def node_directory(name="node"):
    tool("node")
    directory = copied(name)
    if not (directory / "node_modules").is_dir():
        install(tool("npm"), "install", "--no-audit", "--no-fund", "--no-package-lock", cwd=directory)
    return directory


def python_packages(python, name, *packages):
    """The directory with packages of PyPI, for PYTHONPATH."""
    target = WORK / name
    if not target.is_dir():
        install(python, "-m", "pip", "install", "--quiet", "--target", target, "--only-binary", ":all:", *packages)
    return target


def python_with_pip():
    for name in ("/usr/bin/python3", "python3"):
        done = subprocess.run([name, "-m", "pip", "--version"], capture_output=True)
        if done.returncode == 0:
            return name
    raise NotRun("there is no python3 with pip on this machine")


# ---- the questions of the contract ----


def questions(t):
    """[(method, request, case)] of what the server offers and a unary call can ask."""
    out = []
    for name, method in contract.METHODS.items():
        if name in test_contract.OFFERED and not method.streaming and "/Push" not in name:
            for case in method.cases:
                out.append((name, test_contract.at(case.request, t), case))
    return out


class Asked:
    """The table's questions as files, and the server's own JSON answers to them."""

    def __init__(self, server):
        self.server = server
        self.address = "127.0.0.1:%d" % server.port
        self.url = "http://" + self.address
        self.env, self.refused = {}, None  # see secured.py
        self.t = now_ms() // 1000 * 1000 - 120_000
        for labels, after_ms, profile in contract.PUSHED:
            server.push(profile((self.t + after_ms) * 1_000_000).encode(), {"__name__": "process_cpu", **labels})
        self.questions = [q for q in questions(self.t) if q[0].split("/")[1] not in ("Set", "Delete")]
        WORK.mkdir(parents=True, exist_ok=True)
        self.file, self.descriptors = WORK / "questions.json", WORK / "descriptors.bin"
        body = [{"method": m, "request": schema.to_json(contract.METHODS[m].request, r)} for m, r, _ in self.questions]
        self.file.write_text(json.dumps(body))
        protos = sorted(str(p.relative_to(ROOT / "proto")) for p in (ROOT / "proto").rglob("*.proto"))
        run("protoc", "--include_imports", "-I", ROOT / "proto", "--descriptor_set_out", self.descriptors, *protos)

    def check(self, protocol, answers):
        """What the client understood is what the server says to plain JSON."""
        assert len(answers) == len(self.questions), "%s: %d answers" % (protocol, len(answers))
        for (name, request, case), answer in zip(self.questions, answers):
            where = "%s, %s, %s" % (protocol, name, case.name)
            body = json.dumps(schema.to_json(contract.METHODS[name].request, request))
            status, _, text = self.server.http("POST", "/" + name, body, {"Content-Type": "application/json"})
            expected = json.loads(text)
            if status != 200:
                assert answer["code"].lower() == expected["code"], "%s: %r, expected %r" % (where, answer, expected)
                assert expected["message"] in answer["message"], "%s: %r, expected %r" % (where, answer, expected)
            else:
                assert answer["code"] == "", "%s: %r" % (where, answer)
                assert answer["answer"] == expected, "%s: %.600r, expected %.600r" % (where, answer["answer"], expected)
        return len(answers)

    def check_all(self, text):
        answers = json.loads(text)
        count = sum(self.check(protocol, found) for protocol, found in answers.items())
        return "%d answers over %s" % (count, ", ".join(answers))


# ---- the clients ----


def connect_go(asked):
    program = go_program("caller")
    return asked.check_all(run(program, asked.url, asked.descriptors, asked.file))


def connect_es(asked):
    directory = node_directory()
    return asked.check_all(run(tool("node"), "caller.mjs", asked.url, asked.descriptors, asked.file, cwd=directory))


def grpcio_reflection(asked):
    python = "/usr/bin/python3"
    version = install(python, "-c", "import grpc; print(grpc.__version__)").strip()
    packages = WORK / "python-reflection"
    if not packages.is_dir():
        install(python_with_pip(), "-m", "pip", "install", "--quiet", "--no-deps", "--target", packages, "grpcio-reflection==" + version)
    text = run(
        python, HERE / "python/caller.py", asked.address, asked.file, env={"PYTHONPATH": str(packages)}
    )
    answers = json.loads(text)
    offered = {name.split("/")[0] for name in test_contract.OFFERED}
    assert offered <= set(answers["services"]), "reflection does not name %s" % (offered - set(answers["services"]))
    return "%d answers, %d services" % (asked.check("grpc", answers["grpc"]), len(answers["services"]))


def sdk(asked, application, function, types, command, base="", seconds=120, labels=None, least=0.5, **more):
    """Run the program; then the server must know its types, and the function must carry most of the time."""
    server = asked.server
    started = now_ms() - 1000
    env = {**asked.env, **more.pop("env", {})}
    output = run(*command, asked.url + base, application, seconds=seconds, env=env, **more)
    if asked.refused:
        return None
    selector = '{service_name="%s"}' % application

    def arrived():
        return server.label_values("__profile_type__", started, now_ms() + 1000, [selector])

    try:
        found = eventually(arrived, 20, what="a profile of " + application)
    except AssertionError as error:
        names = server.label_values("service_name", started, now_ms() + 1000)
        raise AssertionError("%s; services are %s; the SDK said %s" % (error, names, output[-500:])) from None
    missing = [t for t in types if t not in found]
    assert not missing, "no %s; there are %s" % (missing, found)
    merged = Decoded(server.merge_pprof(types[0], selector, started, now_ms() + 1000))
    rows = merged.by_function(0)
    total = sum(merged.totals())
    share = max([t for name, (_, t) in rows.items() if function in name], default=0) / max(total, 1)
    assert share > least, "%s has %.0f %% of %s; functions are %s" % (function, 100 * share, types[0], sorted(rows)[:20])
    for name, value in (labels or {"region": "eu"}).items():
        assert server.label_values(name, started, now_ms() + 1000, [selector]) == [value], "no label %s" % name
    return "%d types, %s has %.0f %% of %s" % (len(found), function, 100 * share, types[0])


CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


def application_of(language, base):
    """Each address has an application of its own, so that nothing is found that came by the other."""
    return "conformance.%s%s" % (language, ".deepflow" if base else "")


def sdk_go(asked, base=""):
    types = [
        CPU, "memory:alloc_space:bytes:space:bytes", "memory:inuse_space:bytes:space:bytes", "goroutines:goroutine:count:goroutine:count",
    ]
    labels = {"region": "eu", "version": "1.2.3"}
    return sdk(asked, application_of("go", base), "burnProcessor", types, [go_program("sdk")], base, labels=labels)


def sdk_python(asked, base=""):
    python = python_with_pip()
    packages = python_packages(python, "python-sdk", "pyroscope-io==1.4.0")
    command, env = [python, HERE / "python/sdk.py"], {"PYTHONPATH": str(packages)}
    return sdk(asked, application_of("python", base), "burn_processor", [CPU], command, base, env=env)


def sdk_node(asked, base=""):
    directory = node_directory()
    # Wall time has what the profiler itself waits for, too: a quarter, but three quarters on a busy machine.
    types = ["wall:wall:nanoseconds:wall:nanoseconds"]
    command = [tool("node"), "sdk.mjs"]
    return sdk(asked, application_of("node", base), "burnProcessor", types, command, base, cwd=directory, least=0.15)


def sdk_rust(asked, base=""):
    directory = copied("rust")
    install(tool("cargo"), "build", "--quiet", "--release", cwd=directory)
    command = [directory / "target/release/hearth-conformance"]
    return sdk(asked, application_of("rust", base), "burn_processor", [CPU], command, base)


def java_program(artifact):
    """java, the directory with the compiled program, and a file of Maven Central."""
    java, javac = tool("java"), tool("javac")
    directory = copied("java")
    jar = directory / ("%s-%s.jar" % tuple(artifact.split(":")[1:]))
    if not jar.is_file():
        install(tool("mvn"), "-q", "-B", "dependency:copy", "-Dartifact=" + artifact, "-DoutputDirectory=%s" % directory)
    install(javac, "-d", directory / "classes", directory / "Sdk.java")
    return java, directory, jar


def sdk_java(asked, base=""):
    """The agent sends recordings of async-profiler, whose kinds of events are profiles of their own."""
    java, directory, jar = java_program("io.pyroscope:agent:2.9.2")
    types = [CPU, "memory:alloc_in_new_tlab_bytes:bytes:space:bytes", "mutex:contentions:count:mutex:count"]
    settings = {
        "PYROSCOPE_APPLICATION_NAME": application_of("java", base), "PYROSCOPE_LABELS": "region=eu",
        "PYROSCOPE_SERVER_ADDRESS": asked.url + base, "PYROSCOPE_UPLOAD_INTERVAL": "5s",
        "PYROSCOPE_PROFILER_ALLOC": "64k", "PYROSCOPE_PROFILER_LOCK": "1ms",
    }
    command = [java, "-javaagent:%s" % jar, "-cp", directory / "classes", "Sdk"]
    return sdk(asked, application_of("java", base), "Sdk.burnProcessor", types, command, base, env=settings)


UNKNOWN = "unknown_service"  # neither async-profiler nor the agent names one in exports by OTLP


def profiles_java(asked):
    """The same agent exports by OTLP instead."""
    java, directory, jar = java_program("io.pyroscope:agent:2.9.2")
    settings = {"PYROSCOPE_FORMAT": "otlp", "PYROSCOPE_UPLOAD_INTERVAL": "5s",
                "PYROSCOPE_SERVER_ADDRESS": asked.url}
    command = [java, "-javaagent:%s" % jar, "-cp", directory / "classes", "Sdk"]
    return sdk(asked, UNKNOWN, "Sdk.burnProcessor", [CPU], command, env=settings, labels={"service_name": UNKNOWN})


def async_profiler(options, file):
    """A program with the profiler of Maven Central as its agent, which writes the file when the program ends."""
    java, directory, jar = java_program("tools.profiler:async-profiler:4.6")
    library = "linux-%s/libasyncProfiler.so" % {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine())
    with zipfile.ZipFile(jar) as archive:
        library = archive.extract(library, directory)
    path = directory / file
    run(java, "-agentpath:%s=start,%s,file=%s" % (library, options, path), "-cp", directory / "classes", "Sdk")
    return path


def profiles_async_profiler(asked):
    """Its file is an export as it is."""
    started, selector = now_ms() - 1000, '{service_name="%s"}' % UNKNOWN

    def total():
        return asked.server.flamegraph(CPU, selector, started, now_ms() + 1000).total

    before = total()
    file = async_profiler("event=itimer,otlp,threads", "sdk.otlp")
    status, _, answer = asked.server.http(
        "POST", "/v1development/profiles", file.read_bytes(), {"Content-Type": "application/x-protobuf"})
    assert (status, answer) == (200, b""), answer
    graph = asked.server.flamegraph(CPU, selector, started, now_ms() + 1000)
    assert "Sdk.burnProcessor" in graph.names and total() > before + 10**9, graph.names
    return "%d bytes, %.1f s of CPU" % (file.stat().st_size, (total() - before) / 1e9)


def files_async_profiler(asked):
    """The files that it writes by default, a JFR with several kinds of events and collapsed stacks, by hearth upload."""
    url, said = asked.url, []
    for file, options, profile_type in (
        ("sdk.jfr", "event=itimer,alloc=64k,lock=1ms,jfr", CPU), ("sdk.collapsed", "event=itimer,collapsed", "process_cpu:samples:count::"),
    ):
        service, started = "conformance.async-profiler." + file.split(".")[1], now_ms() - 1000
        path = async_profiler(options, file)
        run(ROOT / "build/bin/hearth", "upload", path, "--label", "service_name=" + service, "--url", url)
        merged = Decoded(asked.server.merge_pprof(profile_type, '{service_name="%s"}' % service, started, now_ms() + 1000))
        took, total = merged.by_function(0)["Sdk.burnProcessor"][1], sum(merged.totals())
        assert took > total / 2, "Sdk.burnProcessor has %d of %d in %s" % (took, total, file)
        said.append("%s: %d %% of %d" % (file, 100 * took / total, total))
    return ", ".join(said)


def profiles_collector(asked):
    """What its exporters send: two samples of 50 ms, one of them in a span."""
    started = now_ms() - 1000
    services = run(go_program("collector", "go-collector"), asked.address).split()
    assert len(services) == 8, services
    for service in services:
        found = [asked.server.flamegraph(CPU, '{service_name="%s"}' % service, started, now_ms() + 1000, spans=of)
                 for of in ((), ("a102030405060708",))]
        assert [g.total for g in found] == [100_000_000, 50_000_000], (service, [g.total for g in found])
        assert found[0].names == ["total", "main.work"], found[0].names
    return "%d encodings" % len(services)


def pgo(asked):
    """go build -pgo takes what the server gives of a Go program's profile, and says in the binary that it did."""
    program = go()
    server, started = asked.server, now_ms() - 1000
    run(go_program("sdk"), asked.url, "conformance.pgo", seconds=120)
    selector = '{service_name="conformance.pgo"}'
    eventually(lambda: server.label_values("pod", started, now_ms(), []) is not None, 1)
    fields = {"profileTypeID": CPU, "labelSelector": selector, "start": started, "end": now_ms() + 1000, "format": 4,
              "stackTraceSelector": {"goPgo": {"keepLocations": 5, "aggregateCallees": True}}}
    name = "querier.v1.QuerierService/SelectMergeStacktraces"
    answer, _ = server.connect_proto(name, schema.encode(contract.METHODS[name].request, fields))
    profile = schema.decode(contract.METHODS[name].response, answer)["pprof"]["profile"]
    assert profile.get("sample"), "no samples"
    path = WORK / "go/default.pgo"
    path.write_bytes(schema.encode("google.v1.Profile", profile))
    output = WORK / "bin/with-pgo"
    run(program, "build", "-pgo", path, "-o", output, "./sdk", cwd=WORK / "go", env={"GOTOOLCHAIN": "local"})
    said = run(program, "version", "-m", output)
    assert "-pgo=" in said, said
    return "%d stacks" % len(profile["sample"])


def pgo_decisions(asked):
    """From the server's answer the compiler draws the same conclusions about a program as from the profile pushed."""
    program, hot = go(), go_program("hot")
    pushed, answered, started = WORK / "go/pushed.pgo", WORK / "go/answered.pgo", now_ms() - 1000
    run(hot, pushed, seconds=120)
    asked.server.push(pushed.read_bytes(), {"__name__": "process_cpu", "service_name": "conformance.hot"})
    selector = {"goPgo": {"keepLocations": 5, "aggregateCallees": True}}
    fields = {"profileTypeID": CPU, "labelSelector": '{service_name="conformance.hot"}', "start": started,
              "end": now_ms() + 1000, "stackTraceSelector": selector}
    name = "querier.v1.QuerierService/SelectMergeProfile"
    answer, _ = asked.server.connect_proto(name, schema.encode(contract.METHODS[name].request, fields))
    answered.write_bytes(answer)
    said = []
    for profile in (pushed, answered):
        done = subprocess.run(
            [program, "build", "-pgo", profile, "-gcflags=-m -d=pgodebug=1", "-o", WORK / "bin/hot-with-pgo", "./hot"],
            cwd=WORK / "go", capture_output=True, text=True, timeout=900, env={**os.environ, "GOTOOLCHAIN": "local"},
        )
        assert done.returncode == 0, done.stderr[-1500:]
        said.append([line for line in done.stderr.splitlines() if "hot-node" in line or "hot-budget" in line or "PGO" in line])
    assert any("PGO devirtualizing interface call" in line for line in said[0]), "the profile pushed says nothing: %s" % said[0]
    assert said[0] == said[1], "pushed: %s, answered: %s" % tuple(said)
    return "%d conclusions" % len(said[1])


# ---- profilers and tracers that name the same spans ----


def said_by(command, **more):
    """(when it was started, what it said last, as JSON)"""
    started = now_ms() - 1000
    return started, json.loads(run(*command, seconds=120, **more).splitlines()[-1])


def hexadecimal(said):
    return {kind: {function: "%016x" % of[kind] for function, of in said.items()} for kind in ("span", "root")}


def spans_go(asked):
    service = "conformance.spans.go"
    started, said = said_by([go_program("spans"), asked.url, service])
    program = spans.Program(asked.server, service, CPU, started, said["spans"], "outsideOfSpans", said["trace"])
    return program.check({function: function for function in said["spans"]})


def spans_python(asked):
    python, service, trace = python_with_pip(), "conformance.spans.python", os.urandom(16).hex()
    packages = python_packages(
        python, "python-spans", "pyroscope-io==1.4.0", "pyroscope-otel==1.1.0", "opentelemetry-sdk==1.45.2",
        "opentelemetry-exporter-otlp-proto-http==1.45.2",
    )
    command = [python, HERE / "python/spans.py", asked.url, service, "00-%s-00f067aa0ba902b7-01" % trace]
    started, said = said_by(command, env={"PYTHONPATH": str(packages)})
    program = spans.Program(asked.server, service, CPU, started, said, "outside_of_spans", trace)
    return program.check({function: "GET /" + function for function in said})


def spans_dd_go(asked):
    """Datadog's tracer labels what Pyroscope's SDK samples, decimal."""
    service, quiet = "conformance.spans.ddgo", {"DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false"}
    command = [go_program("datadog", "go-datadog"), asked.url, service]
    started, said = said_by(command, env=quiet)
    ids = hexadecimal(said)
    return spans.Program(asked.server, service, CPU, started, ids["span"], "outsideOfSpans", roots=ids["root"]).check()


def spans_ddtrace(asked):
    """The profiler of ddtrace sends to the server as to its agent."""
    python, service = python_with_pip(), "conformance.spans.ddtrace"
    packages = python_packages(python, "python-ddtrace", "ddtrace==4.16.0")
    command = [python, HERE / "python/ddspans.py", asked.url, service]
    started, said = said_by(command, env={"PYTHONPATH": str(packages)})
    ids = hexadecimal(said)
    return spans.Program(asked.server, service, CPU, started, ids["span"], "outside_of_spans", roots=ids["root"]).check()


# ---- profilers of Datadog, to whom the server is their agent ----

WALL = "wall:wall:nanoseconds:wall:nanoseconds"


def profiled(asked, language, types, command, **more):
    """Runs a program, and waits for its profiles: (what is known of it, a word about it)."""
    url, service, started = asked.url, "conformance.datadog." + language, now_ms() - 1000
    env = datadog.environment(service, url, **more.pop("env", {}))
    done = subprocess.run([str(part) for part in command(url)], capture_output=True, text=True, timeout=180, env=env, **more)
    assert done.returncode == 0, "%s ended with %d: %s" % (language, done.returncode, (done.stderr or done.stdout)[-1500:])
    sent = datadog.Sent(asked.server, service, language, started)
    sent.check_types(types)
    sent.check_quiet()
    return sent


def datadog_go(asked):
    program = go_program("profiled", "go-datadog")
    types = [CPU, "memory:alloc_space:bytes:space:bytes", "memory:inuse_space:bytes:space:bytes",
             "mutex:delay:nanoseconds:contentions:count", "goroutine:goroutine:count:goroutine:count"]
    sent = profiled(asked, "go", types, lambda url: [program, url, datadog.SECONDS])
    return "%s, %s" % (sent.check_function(CPU, "burnProcessor", (1, 15)), sent.check_spans(CPU, "GET /orders"))


def datadog_python(asked):
    """Three uploads of ddtrace-run: the tracer is in the process, and sends traces and telemetry to the same address."""
    python = python_with_pip()
    packages = python_packages(python, "python-ddtrace", "ddtrace==4.16.0")
    command = [python, packages / "bin/ddtrace-run", python, HERE / "python/ddprofiled.py", datadog.SECONDS]
    types = [CPU, WALL, "memory:alloc_space:bytes:space:bytes", "memory:inuse_space:bytes:space:bytes", "lock:acquires:count::"]
    sent = profiled(asked, "python", types, lambda url: command, env={"PYTHONPATH": str(packages), "DD_PROFILING_UPLOAD_INTERVAL": "4"})
    sent.check_thread(CPU, "worker-")
    return "%s, %s" % (sent.check_function(CPU, "burn_processor", (1, 15)), sent.check_spans(CPU, "GET /orders"))


def datadog_node(asked):
    directory = node_directory("node-datadog")
    command = [tool("node"), "-r", "dd-trace/init", "profiled.js", datadog.SECONDS]
    types = [WALL, CPU, "memory:inuse_space:bytes:space:bytes", "timeline:timeline:nanoseconds::"]
    sent = profiled(asked, "node", types, lambda url: command, cwd=directory, env={"DD_PROFILING_UPLOAD_PERIOD": "4"})
    sent.check_thread(WALL, "Main Event Loop")
    return "%s, %s" % (sent.check_function(WALL, "burnProcessor", (3, 30)), sent.check_spans(WALL, "GET"))


def datadog_java(asked):
    """Its recordings are of the JDK and of Datadog's own profiler, one after the other in a file."""
    java, javac, directory = tool("java"), tool("javac"), WORK / "java-datadog"
    if not (directory / "dd-java-agent-1.65.1.jar").is_file():
        install(tool("mvn"), "-q", "-B", "dependency:copy", "-Dartifact=com.datadoghq:dd-java-agent:1.65.1", "-DoutputDirectory=%s" % directory)
    install(javac, "-d", directory / "classes", ROOT / "tests/golden/datadog/Shop.java")
    command = [java, "-javaagent:%s" % (directory / "dd-java-agent-1.65.1.jar"), "-Ddd.trace.methods=Shop[answerOrder]",
               "-Ddd.profiling.start-delay=1", "-Ddd.profiling.start-force-first=true", "-Ddd.profiling.upload.period=6",
               "-cp", directory / "classes", "Shop", 2 * datadog.SECONDS]
    types = [CPU, WALL, "memory:alloc_sample_bytes:bytes:space:bytes", "memory:live_bytes:bytes:objects:count",
             "mutex:contentions:count:mutex:count", "exceptions:exceptions:count::"]
    sent = profiled(asked, "java", types, lambda url: command)
    sent.check_thread(CPU, "main")
    # CPU time has what the agent and the compiler of the JVM take, too: more than half of it on a busy machine.
    said = sent.check_function(CPU, "Shop.burnProcessor", (2, 40), 0.25)
    return "%s, %s" % (said, sent.check_spans(CPU, "Shop.answerOrder", 0.25))


# ---- agents of SkyWalking ----


def introduced(asked, service, language, *command, **more):
    """The agent says who it is, as soon as its own timers let it; then it is stopped."""
    address, process = asked.address, None
    try:
        output = WORK / (service + ".log")
        with open(output, "w") as log:
            process = subprocess.Popen(
                [*command, address, service, "instance-1", "120"], stdout=log, stderr=log,
                env={**os.environ, **asked.env, **more.pop("env", {})}, **more,
            )

        def arrived():
            assert process.poll() is None, "the agent ended with %s: %s" % (process.returncode, output.read_text()[-1500:])
            if asked.refused:
                return asked.refused()
            instances = asked.server.connect("hearth.v1.ProcessService/ListInstances", {"service": service}).get("instances", [])
            return [i for i in instances if "properties" in i]  # a heartbeat may come first

        try:
            found = eventually(arrived, 40, what="the instance of " + service)
        except AssertionError as error:
            raise AssertionError("%s; the agent said %s" % (error, output.read_text()[-1500:])) from None
    finally:
        if process is not None:
            process.kill()
            process.wait()
    if asked.refused:
        return None
    assert [(i["instance"], i["layer"]) for i in found] == [("instance-1", "GENERAL")], found
    properties = {p["name"]: p["value"] for p in found[0]["properties"]}
    assert properties.get("language", "").lower() == language and properties.get("Process No."), properties
    return "%d properties" % len(properties)


def skywalking_node(asked):
    directory = node_directory("skywalking-node")  # its first word comes after 20 s
    return introduced(asked, "conformance.skywalking.node", "nodejs", tool("node"), "agent.js", cwd=directory)


def skywalking_python(asked):
    python = python_with_pip()
    packages = python_packages(python, "python-skywalking", "apache-skywalking==1.2.0")
    return introduced(
        asked, "conformance.skywalking.python", "python", python, HERE / "skywalking-python/agent.py",
        env={"PYTHONPATH": str(packages)},
    )


TASKS = "hearth.v1.TaskService/"


def wait_for(program, condition, what, seconds):
    """condition() becomes true while the program lives; AssertionError with what it said when it ends."""

    def look():
        assert program.poll() is None, "the program ended with %s: %s" % (program.returncode, program.communicate()[1][-1500:])
        return condition()

    return eventually(look, seconds, 0.5, what)


def traced(asked, service, function, command, endpoint="/checkout", seconds=90, **more):
    """A program with a slow page and a language agent goes through a trace task: it is told, its threads are looked at, its
    requests are found again, and the slow function has most of their time."""
    server = asked.server
    arguments = [asked.address, service, service + "-1", str(seconds)]
    environment = {**os.environ, **more.pop("env", {})}
    program = subprocess.Popen(
        [str(c) for c in command] + arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **more
    )
    try:
        instances = lambda: server.connect("hearth.v1.ProcessService/ListInstances", {"service": service}).get("instances")
        wait_for(program, instances, "an instance of " + service, 60)
        request = {"kind": "TASK_KIND_TRACE", "service": service, "endpoint": endpoint, "durationMs": 60_000,
                   "minDurationMs": 100, "dumpPeriodMs": 20, "maxSamples": 3}
        task = server.connect(TASKS + "CreateTask", request)["task"]["taskId"]

        def segments():
            found = server.connect(TASKS + "ListSegments", {"taskId": task}).get("segments", [])
            return len(found) >= 2 and found

        found = wait_for(program, segments, "two requests with snapshots", 60)
        spans = [s for s in found[-1]["spans"] if s.get("isProfiled")]
        assert endpoint in found[-1]["endpoints"], found[-1]
        assert spans[0]["type"] == "ENTRY" and spans[0]["component"], spans[0]
        answer = server.connect(TASKS + "AnalyzeSegments", {"queries": [{"segmentId": spans[0]["segmentId"]}]})
        elements = [e for tree in answer["trees"] for e in tree["elements"]]
        mine = max([e for e in elements if function in e["codeSignature"]], key=lambda e: int(e.get("durationMs", 0)), default=None)
        assert mine is not None, "no %s in %s" % (function, [e["codeSignature"] for e in elements][:40])
        took, length = int(mine["durationMs"]), int(found[-1]["durationMs"])
        assert took > length / 2, "%s has %d ms of a request of %d ms" % (function, took, length)
        state = lambda: server.connect(TASKS + "GetTask", {"taskId": task})
        wait_for(program, lambda: state()["task"]["state"] == "TASK_STATE_FINISHED", "the end of the task", 90)
        events = [e["event"] for e in state().get("log", [])]
        assert "TASK_EVENT_NOTIFIED" in events and "TASK_EVENT_FINISHED" in events, events
        return "%d requests, %s has %d of %d ms, %d snapshots" % (len(found), function, took, length, int(mine["count"]))
    finally:
        program.kill()
        program.communicate()


def skywalking_python_traces(asked):
    python = python_with_pip()
    packages = python_packages(python, "python-skywalking", "apache-skywalking==1.2.0")
    return traced(
        asked, "conformance.skywalking.traced", "look_for_the_order", [python, HERE / "skywalking-python/traced.py"],
        seconds=150, env={"PYTHONPATH": str(packages)},
    )


def skywalking_java(asked, service):
    """The command of a program with the agent of Maven Central. Its plugins are not there, so one of our own says what a request
    is."""
    java, javac, jar = tool("java"), tool("javac"), tool("jar")
    directory = copied("skywalking-java")
    agent = directory / "agent"
    if not (agent / "skywalking-agent.jar").is_file():
        install(tool("mvn"), "-q", "-B", "dependency:copy", "-Dartifact=org.apache.skywalking:apm-agent:9.4.0",
                "-DoutputDirectory=%s" % directory)
        for name in ("config", "plugins", "activations"):
            (agent / name).mkdir(parents=True, exist_ok=True)
        (agent / "config/agent.config").write_text("logging.level=WARN\nlogging.output=CONSOLE\n")
        shutil.copy(directory / "apm-agent-9.4.0.jar", agent / "skywalking-agent.jar")
    classes = directory / "classes"
    install(javac, "-nowarn", "-d", classes / "plugin", "-cp", agent / "skywalking-agent.jar", *directory.glob("plugin/*.java"))
    shutil.copy(directory / "plugin/skywalking-plugin.def", classes / "plugin")
    install(jar, "cf", agent / "plugins/traced.jar", "-C", classes / "plugin", ".")
    install(javac, "-d", classes / "program", directory / "Traced.java")
    settings = {
        "agent.service_name": service, "agent.instance_name": service + "-1", "collector.heartbeat_period": "5",
        "collector.backend_service": asked.address, "collector.get_profile_task_interval": "2",
    }
    return [java, *("-Dskywalking.%s=%s" % pair for pair in settings.items()),
            "-javaagent:%s" % (agent / "skywalking-agent.jar"), "-cp", classes / "program", "Traced"]


def skywalking_java_traces(asked):
    service = "conformance.skywalking.java"
    return traced(asked, service, "Traced.lookForTheOrder", skywalking_java(asked, service), seconds=150)


def share(function, tree, unit):
    """(what the function has itself in a tree of AnalyzeUploads, the whole); it must have most."""
    took = sum(int(e.get("self", 0)) for e in tree["elements"] if e["codeSignature"].startswith(function + ":"))
    total = int(tree["elements"][0]["total"])
    assert tree["unit"] == unit and took > total / 2, "%s has %d of %d %s" % (function, took, total, tree["unit"])
    return took, total


def skywalking_java_async(asked):
    """A task of async-profiler: the agent records CPU time and allocations for 8 s, and its file is a tree in which the slow
    function has most of the time, and an ordinary profile."""
    server, service = asked.server, "conformance.skywalking.async"
    command = [*skywalking_java(asked, service), "-", service, service + "-1", 120]
    program = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def hearth(*arguments):
        return json.loads(run(ROOT / "build/bin/hearth", *arguments, "--url", asked.url, "-o", "json"))

    try:
        instances = lambda: server.connect("hearth.v1.ProcessService/ListInstances", {"service": service}).get("instances")
        wait_for(program, instances, "an instance of " + service, 60)
        task = hearth("task", "create", "async", "--service", service, "--instances", service + "-1", "--duration", "8s",
                      "--events", "itimer,alloc")["task"]["taskId"]
        files = lambda: server.connect(TASKS + "ListUploads", {"taskId": task}).get("uploads")
        file, = wait_for(program, files, "the file of the task", 60)
        assert [file] == hearth("task", "uploads", task)["uploads"], file
        assert file["format"] == "jfr" and file["instance"] == service + "-1", file
        took, total = share("Traced.lookForTheOrder", hearth("task", "analyze", task), "nanoseconds")
        assert 1e9 < total < 12e9, "%d ns of CPU in 8 s of a program with one thread" % total
        share("Traced.packTheParcels", hearth("task", "analyze", task, "--sample-type", "alloc_in_new_tlab_bytes"), "bytes")
        selector = '{service_name="%s",instance="%s-1"}' % (service, service)
        kept = server.flamegraph(CPU, selector, now_ms() - 120_000, now_ms() + 60_000)
        assert kept.total == total and "Traced.lookForTheOrder" in kept.names, (kept.total, total)
        events = [e["event"] for e in server.connect(TASKS + "GetTask", {"taskId": task}).get("log", [])]
        assert "TASK_EVENT_NOTIFIED" in events and "TASK_EVENT_FINISHED" in events, events
        return "%s bytes, the slow function has %.0f %% of %.1f s of CPU" % (file["sizeBytes"], 100 * took / total, total / 1e9)
    finally:
        program.kill()
        program.communicate()


# ---- OpenTelemetry's traces ----


def spans_kept(asked, *command, **more):
    """Each span that the SDK says it exported is stored once, as it was."""
    try:
        text = run(*command, asked.url, **more)
    except AssertionError:  # some SDKs tell a program that its spans were refused
        if not asked.refused:
            raise
    if asked.refused:
        return ""
    said = json.loads(text)
    stored = collections.defaultdict(list)
    for trace in {s["trace"] for s in said["spans"]}:
        for group in otlp.groups(asked.server, bytes.fromhex(trace)):
            assert (group["service"], group["instance"]) == (said["service"], "one"), group
            for s in group["spans"]():
                stored[trace, "%016x" % s["id"]].append(s)
    assert len(stored) == len(said["spans"]) == 100, "%d spans of %d" % (len(stored), len(said["spans"]))
    tags = {"pod": "pod-1", "service.name": said["service"]}
    for s in said["spans"]:
        kept, = stored[s["trace"], s["id"]]
        parent = kept["parent"] and "%016x" % kept["parent"]
        assert (kept["name"], parent) == (s["name"], s["parent"]), (kept, s)
        is_root = s["parent"] is None
        assert (kept["kind"], kept["status"]) == ((1, 0) if is_root else (2, 2)), kept
        assert kept["tags"] == ({**tags, "http.route": "/order"} if is_root else tags), kept
        assert abs(kept["start"] / 1e6 - now_ms()) < 120_000 and kept["end"] >= kept["start"], kept
    return "%d spans" % len(said["spans"])


def opentelemetry_python(asked):
    python = python_with_pip()
    exporters = ("opentelemetry-exporter-otlp-proto-%s==1.45.2" % p for p in ("grpc", "http"))
    packages = python_packages(python, "python-opentelemetry", "opentelemetry-sdk==1.45.2", *exporters)
    command, env = [python, HERE / "opentelemetry/spans.py"], {**asked.env, "PYTHONPATH": str(packages)}
    return ", ".join(p + " " + spans_kept(asked, *command, p, env=env) for p in ("grpc", "http"))


def opentelemetry_node(asked):
    directory = node_directory("opentelemetry")
    command, more = [tool("node"), "spans.mjs"], {"cwd": directory, "env": asked.env}
    return ", ".join(p + " " + spans_kept(asked, *command, p, **more) for p in ("grpc", "json", "proto"))


# ---- what Grafana reads ----


def grafana_packages(_):
    return grafana.check(tool("node"), node_directory("grafana"))


# ---- an issuer of OpenID Connect ----


def openid_provider(asked):
    return openid.check(tool("node"), node_directory("openid"))


# ---- pictures ----

SVG = "{http://www.w3.org/2000/svg}"
XLINK = "{http://www.w3.org/1999/xlink}"
PICTURES = ("go-cpu-prometheus-server-12k-samples.pb.gz", "go-cpu-dolt-server-18min-55k-samples.pb.gz", "go-cpu-fib-3s.pb.gz")
FUNCTIONS = 40


def drawn(dot, text):
    """({function: lines of its box}, {(caller, callee): lines at the arrow}) of the picture that Graphviz draws."""
    done = subprocess.run([dot, "-Tsvg"], input=text, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "syntax error" not in done.stderr, done.stderr[-1500:]
    names, nodes, edges = {}, {}, {}
    for group in ElementTree.fromstring(done.stdout).iter(SVG + "g"):
        if group.get("class") in ("node", "edge"):
            title, link = group.find(SVG + "title").text, next(group.iter(SVG + "a"), None)
            lines = ["".join(t.itertext()).replace("\xa0", " ") for t in group.iter(SVG + "text")]
            shape = next(group.iter(SVG + ("polygon" if group.get("class") == "node" else "path")), None)
            assert link is not None and shape is not None, "no shape or no name: %s" % lines
            name = link.get(XLINK + "title")
            if group.get("class") == "node":
                names[title], nodes[name] = name, lines
            else:
                edges[title] = (name, lines)
    calls = {}
    for title, (name, lines) in edges.items():
        call = tuple(names[end] for end in title.split("->"))
        assert name == " -> ".join(call), "an arrow from %s to %s is said to be %s" % (*call, name)
        calls[call] = lines
    return nodes, calls


def duration(text):
    """Nanoseconds of "1.50 min", and how far they may be from the exact value."""
    number, unit = text.split()
    factor = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9, "d": 86400e9}[unit]
    return float(number) * factor, factor * 0.51 / 10 ** len(number.partition(".")[2])


def assert_value(text, exact, where):
    shown, within = duration(text)
    assert abs(shown - exact) <= within, "%s: %s is shown, it has %d ns" % (where, text, exact)


def calls_between(profile, k, shown):
    """{(caller, callee): value} with what is not shown left out; each call counts once in a stack."""
    out = collections.Counter()
    for stack, values, _ in profile.kept():
        frames = [line[0] for lines in stack for line in lines if line[0] in shown]
        for call in {(caller, callee) for callee, caller in zip(frames, frames[1:])}:
            out[call] += values[k]
    return {call: value for call, value in out.items() if value}


def assert_picture(nodes, edges, profile, k):
    """Boxes and arrows are those functions and calls of the profile that have the largest values."""
    functions = profile.by_function(k)
    largest = sorted(functions, key=lambda name: -functions[name][1])
    least = functions[largest[FUNCTIONS - 1]][1] if len(largest) > FUNCTIONS else 0
    assert len(nodes) == min(FUNCTIONS, len(functions)), "%d boxes" % len(nodes)
    missing = [n for n in largest if functions[n][1] > least and n not in nodes]
    assert not missing, "no box of %s" % missing
    for name, lines in nodes.items():
        own, total = functions[name]
        assert "".join(lines).startswith(name), "%r is not the name of %s" % (lines, name)
        values = re.findall(r"([\d.]+ (?:ns|us|µs|ms|s|min|h|d)) \(", " ".join(lines))
        assert len(values) == 1 + (own not in (0, total)), lines
        assert_value(values[-1], total, name)
        assert_value(values[0], own or total, name)
    calls = calls_between(profile, k, set(nodes))
    for call, lines in edges.items():
        assert call in calls, "nobody calls %s -> %s" % call
        assert_value(lines[0].strip(), calls[call], "%s -> %s" % call)
    missing = [c for c in calls if calls[c] * 20 > max(calls.values()) and c not in edges]
    assert calls and not missing, "no arrow for %s" % missing


def graphviz(asked):
    dot, server, counts = tool("dot"), asked.server, []
    for name in PICTURES:
        path = SHARED / "pprof" / name
        if not path.exists():
            raise NotRun("there is no %s" % path)
        profile = path.read_bytes()
        profile = gzip.decompress(profile) if profile[:2] == b"\x1f\x8b" else profile
        service, now = name.split(".")[0], now_ms()
        profile += wire.encode([(9, now * 1_000_000)])
        server.push(profile, {"__name__": "process_cpu", "service_name": service})
        decoded, selector = Decoded(profile), '{service_name="%s"}' % service
        k = [kind for kind, _ in decoded.sample_types].index("cpu")
        fields = {"profileTypeID": CPU, "labelSelector": selector, "start": now - 60_000, "end": now + 60_000,
                  "format": "PROFILE_FORMAT_DOT", "maxNodes": FUNCTIONS}
        texts = [server.connect("querier.v1.QuerierService/SelectMergeStacktraces", fields)["dot"]]
        arguments = {"query": CPU + selector, "from": now - 60_000, "until": now + 60_000, "format": "dot", "max-nodes": FUNCTIONS}
        status, _, body = server.http("GET", "/pyroscope/render?" + urllib.parse.urlencode(arguments))
        assert status == 200, body
        texts.append(body.decode())
        assert texts[0] == texts[1], "render says something else"
        nodes, edges = drawn(dot, texts[0])
        assert_picture(nodes, edges, decoded, k)
        counts.append("%d boxes and %d arrows" % (len(nodes), len(edges)))
    return ", ".join(counts)


SDKS = {"sdk go": sdk_go, "sdk python": sdk_python, "sdk node": sdk_node, "sdk rust": sdk_rust, "sdk java": sdk_java}
def mcp_python(asked):
    """The SDK of the Model Context Protocol finds the hottest function through `hearth mcp`, however it begins."""
    python, service = python_with_pip(), "conformance.mcp"
    packages = python_packages(python, "python-mcp", "mcp==2.3.0")
    profile = Profile([("cpu", "nanoseconds")], duration_ns=10_000_000_000)
    profile.add(["main", "hot"], [90])
    profile.add(["main", "cold"], [10])
    asked.server.push(profile.encode(), {"__name__": "process_cpu", "service_name": service})
    versions = []
    for mode in ("legacy", "auto"):
        said = run(python, HERE / "python/mcp_client.py", HEARTH, asked.url, mode, service, env={"PYTHONPATH": str(packages)})
        found = json.loads(said)
        versions.append(found.pop("version"))
        assert found == {
            "server": "hearth", "is_listed": True, "required": ["function"], "top": "hot", "path": ["main"], "is_refused": True,
            "tools": ["diff", "flame_slice", "history", "labels", "sandwich", "services", "spans", "top", "types"],
        }, found
    return "spoke " + " and ".join(versions)


DEEPFLOW = "/api/v1/profile"  # the base address of its agents, to which an SDK appends "/ingest" or the path of Push


def grpc_go(asked):
    return secured.grpc_go(asked, go_program("grpccaller"), WORK)


SECURED = {
    **SDKS, "skywalking node": skywalking_node, "skywalking python": skywalking_python,
    "opentelemetry python": opentelemetry_python, "opentelemetry node": opentelemetry_node, "grpc-go": grpc_go,
}


@functools.cache
def secured_server():
    return secured.Secured()


def through_tls(_, client):
    return secured_server().check(client)


CLIENTS = {
    "connect-go": connect_go,
    "connect-es": connect_es,
    "grpcio by reflection": grpcio_reflection,
    **SDKS,
    **{name + " for DeepFlow": functools.partial(client, base=DEEPFLOW) for name, client in SDKS.items()},
    "go build -pgo": pgo,
    "go build -pgo, what it concludes": pgo_decisions,
    "spans go": spans_go,
    "spans python": spans_python,
    "spans dd-trace-go": spans_dd_go,
    "spans ddtrace": spans_ddtrace,
    "datadog go": datadog_go,
    "datadog python": datadog_python,
    "datadog node": datadog_node,
    "datadog java": datadog_java,
    "skywalking node": skywalking_node,
    "skywalking python": skywalking_python,
    "skywalking python, a trace task": skywalking_python_traces,
    "skywalking java, a trace task": skywalking_java_traces,
    "skywalking java, a task of async-profiler": skywalking_java_async,
    "opentelemetry python": opentelemetry_python,
    "opentelemetry node": opentelemetry_node,
    "otlp profiles, java": profiles_java,
    "otlp profiles, async-profiler": profiles_async_profiler,
    "otlp profiles, collector": profiles_collector,
    "files, async-profiler": files_async_profiler,
    "graphviz": graphviz,
    "grafana's packages": grafana_packages,
    "oidc-provider": openid_provider,
    "mcp python": mcp_python,
    **{name + ", TLS and a token": functools.partial(through_tls, client=client) for name, client in SECURED.items()},
}


def main():
    wanted = [a for a in sys.argv[1:] if a != "--strict"]
    strict = "--strict" in sys.argv
    asked = Asked(Server("--otlp-traces"))
    ok, failed, absent = 0, [], []
    for name, client in CLIENTS.items():
        if wanted and not any(w in name for w in wanted):
            continue
        began = time.monotonic()
        try:
            what, ok = "ok       %s" % client(asked), ok + 1
        except NotRun as reason:
            what = "NOT RUN: %s" % reason
            absent.append(name)
        except Exception as error:
            what = "FAILED: %s: %s" % (type(error).__name__, error)
            failed.append(name)
        print("%-22s %6.1f s  %s" % (name, time.monotonic() - began, what), flush=True)
    asked.server.stop()
    if secured_server.cache_info().currsize:
        secured_server().server.stop()
    for name in absent:
        print("WARNING: nothing is known about %s: it could not be run, see above" % name)
    print("%d clients ok, %d failed, %d not run" % (ok, len(failed), len(absent)))
    sys.exit(1 if failed or strict and absent or not ok else 0)


if __name__ == "__main__":
    main()
