"""The clients of run.py once more, through TLS and with a token: each is refused with a wrong one, then found with its own."""

import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import types

import certificates
import prometheus
import wire
from pprof import Decoded, Profile
from server import PROFILES, PUSH, Server, now_ms, temporary_directory

ACCESS = "hearth.v1.AccessService/"
STORED = ("hearth_data.service", "hearth_data.series", "hearth_data.label_pair", "hearth_data.instance", "hearth_data.span_group")


class Secured:
    """A server whose https listener takes tokens alone; by its plain one, the suite looks at what was stored."""

    def __init__(self):
        self.directory = temporary_directory()
        self.authority = certificates.Authority(self.directory, "ca")
        cert, key = self.authority.sign("server", "/CN=localhost")
        self.server = Server(
            "--otlp-traces", "--listen", "https://127.0.0.1:0?auth=token", "--tls-cert-file", cert, "--tls-key-file", key,
            "--max-wrong-credentials", "1000",
        )
        self.address = "localhost:" + re.search(r"addr=127\.0\.0\.1:(\d+) scheme=https", self.server.log()).group(1)
        self.token = self.make_token()["token"]
        deleted = self.make_token()
        self.server.connect(ACCESS + "DeleteToken", {"id": deleted["id"]})
        self.wrong = deleted["token"]

    def make_token(self):
        grants = [{"tenant": "anonymous", "role": role} for role in ("ingest", "viewer")]
        return self.server.connect(ACCESS + "CreateToken", {"name": "conformance", "grants": grants})

    def trust(self):
        """How each runtime is told of an authority that the system does not know."""
        out = {
            "SSL_CERT_FILE": self.authority.file,  # Go, Rust, OpenSSL
            "NODE_EXTRA_CA_CERTS": self.authority.file,
            "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": self.authority.file,  # grpcio, grpc-js
            "OTEL_EXPORTER_OTLP_CERTIFICATE": self.authority.file, "REQUESTS_CA_BUNDLE": self.authority.file,
        }
        if shutil.which("keytool"):
            store = pathlib.Path(self.directory, "trusted.p12")
            if not store.exists():
                command = ["keytool", "-importcert", "-noprompt", "-alias", "test", "-file", self.authority.file,
                           "-keystore", str(store), "-storetype", "PKCS12", "-storepass", "changeit"]
                subprocess.run(command, check=True, capture_output=True)
            out["JAVA_TOOL_OPTIONS"] = "-Djavax.net.ssl.trustStore=%s -Djavax.net.ssl.trustStorePassword=changeit" % store
        return out

    def asked(self, token, refused=None):
        """What a client of run.py takes for the server. refused(), where the token is wrong: how often clients were refused;
        a client stops there, and looks for nothing."""
        credentials = {
            "PYROSCOPE_AUTH_TOKEN": token,  # also what the programs of this suite give to their SDKs
            "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20" + token,
            "SW_AGENT_AUTHENTICATION": token, "SW_AGENT_AUTHORIZATION": token,
            "SW_AGENT_FORCE_TLS": "true", "SW_AGENT_SECURE": "true",
        }
        return types.SimpleNamespace(
            server=self.server, address=self.address, url="https://" + self.address, refused=refused,
            env={**self.trust(), **credentials},
        )

    def stored(self):
        """Rows of what any client brings."""
        counts = ", ".join("(SELECT count(*) FROM %s)" % table for table in STORED)
        return self.server.sql("SELECT %s, (SELECT count(*) FROM %s)" % (counts, PROFILES))

    def refusals(self):
        return prometheus.value(self.server.metrics(), "hearth_request_errors_total", code="unauthenticated")

    def check(self, client):
        stored, before = self.stored(), self.refusals()
        refused = lambda: self.refusals() - before
        client(self.asked(self.wrong, refused))
        times = refused()
        assert times > 0, "the client did not come as far as to be refused"
        assert self.stored() == stored, "with a wrong token: %s, before it %s" % (self.stored(), stored)
        return "%s; with a wrong token refused %d times" % (client(self.asked(self.token)), times)


def grpc_go(asked, program, directory):
    """A push and a query for it. grpc-go insists on h2 by ALPN."""
    now, service = now_ms(), "conformance.grpc-go"
    profile = Profile([("cpu", "nanoseconds")], time_ns=now * 1_000_000)
    profile.add(["main", "work"], [7])
    labels = [(1, [(1, name), (2, value)]) for name, value in (("__name__", "process_cpu"), ("service_name", service))]
    cpu, selector = "process_cpu:cpu:nanoseconds:cpu:nanoseconds", '{service_name="%s"}' % service
    requests = {
        PUSH: [(1, labels + [(2, [(1, profile.encode())])])],
        "querier.v1.QuerierService/SelectMergeProfile": [(1, cpu), (2, selector), (3, now - 1000), (4, now + 1000)],
    }
    command = [str(program), asked.address]
    for method, fields in requests.items():
        file = directory / (method.split("/")[1] + ".request")
        file.write_bytes(wire.encode(fields))
        command += [method, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, env={**os.environ, **asked.env})
    assert done.returncode == 0, done.stderr
    said, code = json.loads(done.stdout), "Unauthenticated" if asked.refused else "OK"
    assert [(s["code"], s["alpn"]) for s in said] == 2 * [(code, "h2")], said
    if asked.refused:
        return None
    merged = Decoded(base64.b64decode(said[1]["answer"]))
    assert (merged.totals(), sorted(merged.by_function(0))) == ([7], ["main", "work"]), merged.by_function(0)
    return "Push and SelectMergeProfile, h2 by ALPN"
