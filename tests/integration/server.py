"""A real hearthd with a real PostgreSQL for a test: start, ask, kill, stop.

HEARTHD names the binary (default build/bin/hearthd). Everything listens on loopback or unix sockets below a
temporary directory: in HEARTH_TEST_ROOT of ./dev test, where bin/initdb copies a template, or in /tmp.
"""

import atexit
import contextlib
import ctypes
import functools
import getpass
import http.client
import json
import os
import pathlib
import pwd
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import grpc

import prometheus
import wire
from questions import QUERIER, Questions

# gRPC reads this when the first channel is made. Its handlers around a fork wait until its threads are idle, which may
# never happen. Python forks only where preexec_fn, user= and the like are given, so no test gives them: see as_user().
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
# What nohup ignores, children ignore too, and hearthd and hearth then heed no hangup.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEARTHD = os.environ.get("HEARTHD", str(ROOT / "build/bin/hearthd"))
HEARTH = os.environ.get("HEARTH", str(pathlib.Path(HEARTHD).with_name("hearth")))
SHARED = pathlib.Path(os.environ.get("HEARTH_SHARED_DATA", ROOT.parent / "shared" / "data"))
TEST_ROOT = os.environ.get("HEARTH_TEST_ROOT")
# The library that records the statements of each hearthd (tests/lib/record_statements.c), if CTest has one.
RECORDER = os.environ.get("HEARTH_TEST_RECORDER")

PUSH = "push.v1.PusherService/Push"

# Every profile that is stored, for FROM: one whose ten minutes were closed before it came is in the second table, for the
# seconds until it is folded into the first. It moves in one transaction, so a statement sees it once. Which of them
# depends on the minute in which a test runs.
PROFILES = "(TABLE hearth_data.profile UNION ALL TABLE hearth_data.profile_late) AS stored"


# What sql() needs of libpq: name, result, arguments.
LIBPQ = ctypes.CDLL("libpq.so.5")
for name, *types in (
    ("PQconnectdb", ctypes.c_void_p, ctypes.c_char_p), ("PQstatus", ctypes.c_int, ctypes.c_void_p),
    ("PQerrorMessage", ctypes.c_char_p, ctypes.c_void_p), ("PQfinish", None, ctypes.c_void_p),
    ("PQsendQuery", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p), ("PQgetResult", ctypes.c_void_p, ctypes.c_void_p),
    ("PQresultErrorMessage", ctypes.c_char_p, ctypes.c_void_p), ("PQclear", None, ctypes.c_void_p),
    ("PQresultStatus", ctypes.c_int, ctypes.c_void_p), ("PQsocket", ctypes.c_int, ctypes.c_void_p),
    ("PQtransactionStatus", ctypes.c_int, ctypes.c_void_p), ("PQexec", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p),
    ("PQntuples", ctypes.c_int, ctypes.c_void_p), ("PQnfields", ctypes.c_int, ctypes.c_void_p),
    ("PQgetvalue", ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int),
):
    function = getattr(LIBPQ, name)
    function.restype, function.argtypes = types[0], types[1:]


def temporary_directory():
    """Short (unix sockets hold 108 bytes) and enterable by the database's user."""
    path = tempfile.mkdtemp(prefix="hearth-test-", dir=TEST_ROOT or "/tmp")
    os.chmod(path, 0o755)
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def own_directory():
    """One that hearthd's user owns, and nobody else may enter."""
    path = os.path.join(temporary_directory(), "own")
    os.mkdir(path, 0o700)
    if os.geteuid() == 0:  # which hearthd gives up
        os.chown(path, pwd.getpwnam("postgres").pw_uid, -1)
    return path


class RpcError(Exception):
    """code: lower case, as Connect writes it ("cancelled" has two l over gRPC); metadata: headers or metadata."""

    def __init__(self, code, message, http_status=None, metadata=None):
        super().__init__("%s: %s" % (code, message))
        self.code, self.message, self.http_status, self.metadata = code, message, http_status, metadata or {}


@functools.cache
def sanitizer():
    """The runtime of the sanitizer that hearthd is built with; empty without one."""
    libraries = subprocess.run(["ldd", HEARTHD], capture_output=True, text=True, check=False).stdout
    found = re.search(r"=> (\S+/lib(?:clang_rt\.)?[at]san\S*)", libraries)
    return found[1] if found else ""


def server_environment(extra=None):
    """hearthd refuses HEARTH_ variables that it does not know, and the tests have some of their own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_")}
    # The client has contexts and answers for completion there. Not even root can make folders below it.
    kept["XDG_CONFIG_HOME"] = kept["XDG_CACHE_HOME"] = "/dev/null"
    if sanitizer():
        kept.setdefault("LSAN_OPTIONS", "print_suppressions=0:suppressions=%s" % (ROOT / "tests/lib/leaks.supp"))
    return {**kept, **(extra or {})}


def recording():
    """The variables of a hearthd that records its statements, one file for each test module; test_placement.py reads them."""
    if not RECORDER:
        return {}
    path = pathlib.Path(RECORDER).parent / "statements" / pathlib.Path(sys.argv[-1]).stem
    with recorded_lock:  # servers may start side by side
        if path not in recorded:
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)
            path.touch()
            os.chmod(path, 0o666)  # for a hearthd of another user
            recorded.add(path)
    return {"LD_PRELOAD": RECORDER, "STATEMENTS_FILE": str(path)}


recorded = set()
recorded_lock = threading.Lock()


def unless_sanitized(reason):
    return unittest.skipIf(sanitizer(), "with a sanitizer " + reason)


# A sanitizer keeps freed memory for a while and shadows the rest.
MEMORY_FACTOR = 4 if sanitizer() else 1


def now_ms():
    return time.time_ns() // 1_000_000


# How much longer than here something may take on a slow machine.
PATIENCE = 5


def eventually(condition, seconds=30, pause=0.05, what="what was waited for"):
    """The first true value of condition(); AssertionError after `seconds` of this machine."""
    seconds *= PATIENCE
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError("%s did not happen within %s s" % (what, seconds))
        time.sleep(pause)


class Server(Questions):
    """One hearthd. `directory` keeps the embedded database between starts; `database_url` uses another one.

    `template=False`: the embedded database is made by the installed initdb, which hearthd finds by itself.
    """

    def __init__(
        self, *options, directory=None, database_url=None, wait=True, env=None, template=True,
        listening=r"msg=listening addr=127\.0\.0\.1:(\d+)", hearthd=HEARTHD,
    ):
        self.hearthd = hearthd
        self.directory = directory or temporary_directory()
        self.database_url = database_url
        self.options = list(options)
        self.env = env or {}
        if TEST_ROOT and template and not database_url:
            self.env = {"HEARTH_POSTGRES_BIN": os.path.join(TEST_ROOT, "bin"), **self.env}
        self.listening = re.compile(listening)
        self.process = None
        self.may_be_refused = False  # system calls, by the sandbox
        self.log_path = os.path.join(self.directory, "hearthd.log")
        self.start(wait)

    def start(self, wait=True):
        arguments = [self.hearthd, "--listen", "127.0.0.1:0"]
        if self.database_url:
            arguments += ["--database-url", self.database_url]
        else:
            arguments += ["--data-dir", os.path.join(self.directory, "data")]
        self.log_from = os.path.getsize(self.log_path) if os.path.exists(self.log_path) else 0
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                arguments + self.options, stderr=log, stdout=log, env=server_environment({**recording(), **self.env})
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
            found = self.listening.search(self.log())
            if found:
                return int(found.group(1))
            if self.process.poll() is not None:
                raise AssertionError("hearthd ended with %s:\n%s" % (self.process.returncode, self.log()))
            time.sleep(0.02)
        raise AssertionError("hearthd does not listen:\n" + self.log())

    def wait_ready(self, seconds=240):
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

    def connect_proto(self, method, request, headers=None, timeout=60):
        """Bytes in, (bytes, headers) out, over Connect with application/proto."""
        headers = {"Content-Type": "application/proto", **(headers or {})}
        status, found, body = self.http("POST", "/" + method, request, headers, timeout)
        if status != 200:
            error = json.loads(body) if found.get("content-type") == "application/json" else {}
            raise RpcError(error.get("code", "http"), error.get("message", body), status, found)
        return body, found

    def metrics(self):
        """/metrics through the strict reader."""
        return prometheus.parse(self.http("GET", "/metrics")[2].decode())

    def grpc_bytes(self, method, request, metadata=None, timeout=60):
        """(answer bytes, initial metadata dict); RpcError otherwise."""
        call = self.channel.unary_unary("/" + method)
        try:
            answer, done = call.with_call(request, timeout=timeout, metadata=metadata or [])
        except grpc.RpcError as error:
            found = dict(error.initial_metadata() or ())
            found.update(dict(error.trailing_metadata() or ()))
            raise RpcError(error.code().name.lower(), error.details(), metadata=found) from None
        found = dict(done.initial_metadata() or ())
        found.update(dict(done.trailing_metadata() or ()))
        return answer, found

    def call(self, method, fields, metadata=None, timeout=60):
        """wire fields in, decoded wire fields out, over gRPC."""
        answer, _ = self.grpc_bytes(method, wire.encode(fields), metadata, timeout)
        return wire.decode(answer)

    def stream_unary(self, method, messages, metadata=None, timeout=60):
        """A stream of encoded messages (any iterable, read as it is sent) there, one answer in bytes back."""
        try:
            return self.channel.stream_unary("/" + method)(iter(messages), timeout=timeout, metadata=metadata or [])
        except grpc.RpcError as error:
            raise RpcError(error.code().name.lower(), error.details()) from None

    def stream_stream(self, method, messages, metadata=None, timeout=60):
        """The same with a stream back: a generator of answers in bytes."""
        call = self.channel.stream_stream("/" + method)(iter(messages), timeout=timeout, metadata=metadata or [])
        try:
            yield from call
        except grpc.RpcError as error:
            raise RpcError(error.code().name.lower(), error.details()) from None

    def connect(self, method, message, headers=None, timeout=60):
        """JSON in, JSON out, over Connect."""
        status, found, body = self.http(
            "POST", "/" + method, json.dumps(message), {"Content-Type": "application/json", **(headers or {})}, timeout
        )
        answer = json.loads(body) if found.get("content-type", "").startswith("application/json") else body
        if status != 200:
            if isinstance(answer, dict):
                raise RpcError(answer.get("code"), answer.get("message"), status, found)
            raise RpcError("http", answer, status, found)
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

    def stop(self):
        """The clean end of a test: also what a sanitizer found at the end fails it."""
        code = self.terminate() if self.process.poll() is None else self.process.returncode
        assert code == 0, "hearthd ended with %s:\n%s" % (code, self.log()[-20000:])
        refused = [line for line in self.log().splitlines() if "the sandbox refused a system call" in line]
        assert self.may_be_refused or not refused, "\n".join(refused)

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
        return sql(self.database_url or self.postgres_url(), text)

    @contextlib.contextmanager
    def paused_database(self):
        """The sessions of hearthd in its database stand still until the end of the block; those of sql() do not."""
        pids = [int(row[0]) for row in self.sql(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name = 'hearthd'")]
        try:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def postmaster_pid(self):
        """Of the embedded PostgreSQL, from its own lock file."""
        with open(os.path.join(self.directory, "data/postgres/postmaster.pid")) as lock:
            return int(lock.readline())


# The connection of the last sql() and its database: a new one costs PostgreSQL a process and milliseconds. At most one, so
# that no session stays in a database that a test copies or drops.
kept = []


def take_connection(url):
    """The kept connection if it is to this database and still open, otherwise a new one."""
    try:
        of, connection = kept.pop()
    except IndexError:  # none, or another thread has it
        return LIBPQ.PQconnectdb(url.encode())

    # PostgreSQL sends nothing to an idle session before it ends it.
    said = select.poll()
    said.register(LIBPQ.PQsocket(connection), select.POLLIN)
    if of == url and not said.poll(0):
        return connection
    LIBPQ.PQfinish(connection)
    return LIBPQ.PQconnectdb(url.encode())


def give_back_connection(url, connection):
    """Resets the session and keeps it; ends it if another is kept, or if it is broken or in a transaction."""
    is_idle = LIBPQ.PQstatus(connection) == 0 and LIBPQ.PQtransactionStatus(connection) == 0
    reset = LIBPQ.PQexec(connection, b"DISCARD ALL") if is_idle and not kept else None
    if reset and LIBPQ.PQresultStatus(reset) == 1:
        kept.append((url, connection))
    else:
        LIBPQ.PQfinish(connection)
    LIBPQ.PQclear(reset)


def sql(url, text):
    """Rows as lists of text, as psql -At prints them; no COPY. A process of psql would take longer than most statements."""
    connection = take_connection(url)
    out, error = b"", b""
    try:
        if LIBPQ.PQstatus(connection) != 0 or not LIBPQ.PQsendQuery(connection, text.encode()):
            error = LIBPQ.PQerrorMessage(connection)
        while not error and (result := LIBPQ.PQgetResult(connection)):
            error = LIBPQ.PQresultErrorMessage(result) or (LIBPQ.PQresultStatus(result) > 2 and b"sql() reads no COPY")
            columns = range(LIBPQ.PQnfields(result))
            rows = ([LIBPQ.PQgetvalue(result, row, k) for k in columns] for row in range(LIBPQ.PQntuples(result)))
            out += b"".join(b"\t".join(row) + b"\n" for row in rows)
            LIBPQ.PQclear(result)
    finally:
        give_back_connection(url, connection)
    if error:
        raise AssertionError("PostgreSQL: " + error.decode(errors="replace"))
    return [line.split("\t") for line in out.decode().splitlines()]


class Session:
    """An open psql, for transactions that span what a test does meanwhile."""

    def __init__(self, url):
        self.process = subprocess.Popen(
            ["psql", "-X", "-q", "-At", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )

    def run(self, text):
        """Lines of output, once all of it was executed."""
        self.process.stdin.write(text + ";\n\\echo done\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line == "done\n":
                return lines
            lines.append(line.rstrip("\n"))
        raise AssertionError("psql ended: %r" % lines)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def as_user(user):
    """What a command begins with that a test of root runs as another user."""
    return ["setpriv", "--reuid", user, "--regid", str(pwd.getpwnam(user).pw_gid), "--clear-groups"]


class Cluster:
    """A private PostgreSQL without hearthd around it.

    `template=False`: without the schema of Hearth, and with a system identifier of its own. In a test run, clusters have the
    former and share the latter otherwise.
    """

    def __init__(self, start=True, template=True, env=None):
        self.directory = temporary_directory()
        self.env = env or {}
        self.data = os.path.join(self.directory, "pg")
        self.process = None
        self.as_user = as_user("postgres") if os.geteuid() == 0 else []
        self.user = "postgres" if self.as_user else getpass.getuser()
        for path in (self.directory, self.data):
            os.makedirs(path, exist_ok=True)
            if self.as_user:
                shutil.chown(path, "postgres", "postgres")
        os.chmod(self.data, 0o700)
        self.make(os.path.join(TEST_ROOT, "bin/initdb") if TEST_ROOT and template else self.program("initdb"))
        atexit.register(self.stop)
        if start:
            self.start()

    def make(self, initdb):
        """The files of the cluster, in the empty directory `data`."""
        self._run(initdb, "-D", self.data, "-U", "hearth", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")

    @staticmethod
    def program(name):
        found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/" + name), key=lambda p: int(p.parts[-3]))
        assert found, "no PostgreSQL below /usr/lib/postgresql"
        return str(found[-1])

    def _run(self, program, *arguments):
        done = subprocess.run([*self.as_user, program, *arguments], capture_output=True, text=True, cwd="/")
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self):
        with open(os.path.join(self.directory, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [
                    *self.as_user, self.program("postgres"), "-D", self.data, "-c", "listen_addresses=",
                    "-c", "unix_socket_directories=" + self.directory, "-c", "shared_buffers=64MB",
                ],
                stdout=log, stderr=log, cwd="/", start_new_session=True, env={**os.environ, **self.env},
            )
        eventually(self._answers, 60, what="PostgreSQL")

    def _answers(self):
        assert self.process.poll() is None, "PostgreSQL ended with %s" % self.process.returncode
        # A new connection: the kept one of sql() may be to a process of a postmaster that was killed, and answers.
        return LIBPQ.PQping(self.url().encode()) == 0

    def url(self, database="postgres"):
        return "host=%s user=hearth dbname=%s" % (self.directory, database)

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait()


def in_threads(functions):
    """Run all at once; the first exception is raised here. Returns their results."""
    results, errors = [None] * len(functions), []

    def run(i):
        try:
            results[i] = functions[i]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def note(text):
    print("note: " + text, file=sys.stderr, flush=True)


# A runner that gives up on a test says SIGTERM: leave through atexit, so that no server stays behind.
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
