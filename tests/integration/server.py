"""A real hearthd with a real PostgreSQL for a test: start, ask, kill, stop.

HEARTHD names the binary (default build/bin/hearthd). Everything listens on loopback or unix sockets below a
temporary directory.
"""

import atexit
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import grpc

import wire

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEARTHD = os.environ.get("HEARTHD", str(ROOT / "build/bin/hearthd"))
HEARTH = os.environ.get("HEARTH", str(pathlib.Path(HEARTHD).with_name("hearth")))
SHARED = ROOT.parent / "shared" / "data"

QUERIER = "querier.v1.QuerierService/"
PUSH = "push.v1.PusherService/Push"


def temporary_directory():
    """Short (unix sockets hold 108 bytes) and enterable by the database's user."""
    path = tempfile.mkdtemp(prefix="hearth-test-", dir="/tmp")
    os.chmod(path, 0o755)
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


class RpcError(Exception):
    def __init__(self, code, message, http_status=None):
        super().__init__("%s: %s" % (code, message))
        self.code, self.message, self.http_status = code, message, http_status


class Server:
    """One hearthd. `directory` keeps the embedded database between starts; `database_url` uses another one."""

    def __init__(self, *options, directory=None, database_url=None, wait=True, env=None):
        self.directory = directory or temporary_directory()
        self.database_url = database_url
        self.options = list(options)
        self.env = env
        self.process = None
        self.log_path = os.path.join(self.directory, "hearthd.log")
        self.start(wait)

    def start(self, wait=True):
        arguments = [HEARTHD, "--listen", "127.0.0.1:0"]
        if self.database_url:
            arguments += ["--database-url", self.database_url]
        else:
            arguments += ["--data-dir", os.path.join(self.directory, "data")]
        self.log_from = os.path.getsize(self.log_path) if os.path.exists(self.log_path) else 0
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                arguments + self.options, stderr=log, stdout=log, env={**os.environ, **(self.env or {})}
            )
        atexit.register(self.kill)
        self.port = self._listening_port()
        self.channel = grpc.insecure_channel(
            "127.0.0.1:%d" % self.port,
            options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)],
        )
        if wait:
            self.wait_ready()

    def log(self):
        with open(self.log_path, errors="replace") as log:
            log.seek(self.log_from)
            return log.read()

    def _listening_port(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = re.search(r"msg=listening addr=127\.0\.0\.1:(\d+)", self.log())
            if found:
                return int(found.group(1))
            if self.process.poll() is not None:
                raise AssertionError("hearthd ended with %s:\n%s" % (self.process.returncode, self.log()))
            time.sleep(0.02)
        raise AssertionError("hearthd does not listen:\n" + self.log())

    def wait_ready(self, seconds=120):
        deadline = time.monotonic() + seconds
        last = None
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError("hearthd ended with %s:\n%s" % (self.process.returncode, self.log()))
            try:
                status, _, last = self.http("GET", "/ready")
                if status == 200:
                    return
            except OSError as error:
                last = error
            time.sleep(0.05)
        raise AssertionError("hearthd is not ready: %r\n%s" % (last, self.log()))

    # ---- asking ----

    def http(self, method, path, body=None, headers=None, timeout=60):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
        finally:
            connection.close()

    def grpc_bytes(self, method, request, metadata=None, timeout=60):
        """(answer bytes, initial metadata dict); RpcError otherwise."""
        call = self.channel.unary_unary("/" + method)
        try:
            answer, done = call.with_call(request, timeout=timeout, metadata=metadata or [])
        except grpc.RpcError as error:
            raise RpcError(error.code().name.lower(), error.details()) from None
        found = dict(done.initial_metadata() or ())
        found.update(dict(done.trailing_metadata() or ()))
        return answer, found

    def call(self, method, fields, metadata=None, timeout=60):
        """wire fields in, decoded wire fields out, over gRPC."""
        answer, _ = self.grpc_bytes(method, wire.encode(fields), metadata, timeout)
        return wire.decode(answer)

    def connect(self, method, message, headers=None, timeout=60):
        """JSON in, JSON out, over Connect."""
        status, found, body = self.http(
            "POST", "/" + method, json.dumps(message), {"Content-Type": "application/json", **(headers or {})}, timeout
        )
        answer = json.loads(body) if found.get("content-type", "").startswith("application/json") else body
        if status != 200:
            if isinstance(answer, dict):
                raise RpcError(answer.get("code"), answer.get("message"), status)
            raise RpcError("http", answer, status)
        return answer

    # ---- the main job in short ----

    def push(self, profile, labels, id="", metadata=None):
        """One pprof (bytes) with labels {name: value}; returns the response metadata."""
        pairs = [(1, [(1, name), (2, value)]) for name, value in labels.items()]
        sample = [(1, profile)] + ([(2, id)] if id else [])
        request = wire.encode([(1, pairs + [(2, sample)])])
        return self.grpc_bytes(PUSH, request, metadata)[1]

    def merge_pprof(self, profile_type, selector, start_ms, end_ms, metadata=None, max_nodes=None):
        fields = [(1, profile_type), (2, selector), (3, start_ms), (4, end_ms)]
        if max_nodes is not None:
            fields.append((5, max_nodes))
        return self.grpc_bytes(QUERIER + "SelectMergeProfile", wire.encode(fields), metadata)[0]

    # ---- life ----

    def terminate(self, seconds=60):
        self.channel.close()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def kill9(self):
        """kill -9, as the out-of-memory killer would."""
        self.channel.close()
        self.kill()

    def postgres_url(self):
        return "host=%s/data/run user=hearth dbname=postgres" % self.directory

    def sql(self, text):
        """Rows as lists of text."""
        done = subprocess.run(
            ["psql", "-X", "-q", "-At", "-F", "\t", self.database_url or self.postgres_url(), "-c", text],
            check=True, capture_output=True, text=True,
        )
        return [line.split("\t") for line in done.stdout.splitlines()]


def note(text):
    print(text, file=sys.stderr, flush=True)
