"""A browser and a machine against oidc-provider, a certified issuer, and hearthd between them."""

import base64
import html.parser
import http.cookiejar
import json
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from server import eventually
from test_access import AccessServer, bearer

REGISTERED = "http://127.0.0.1:1"
TYPES = "/querier.v1.QuerierService/ProfileTypes"


class Form(html.parser.HTMLParser):
    """The first form of a page: where it goes, and its fields."""

    def __init__(self, page):
        super().__init__()
        self.action, self.fields = None, {}
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "form" and self.action is None:
            self.action = attributes["action"]
        elif tag == "input" and "name" in attributes:
            self.fields[attributes["name"]] = attributes.get("value", "")


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Browser:
    """`moved`: the registered address of the server, and its real one, whose port nobody knew before."""

    def __init__(self, moved):
        self.moved = moved
        self.jar = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar), NoRedirect())

    def get(self, url, form=None):
        """(status, headers, text)"""
        body = urllib.parse.urlencode(form).encode() if form is not None else None
        try:
            with self.opener.open(urllib.request.Request(url.replace(*self.moved), body), timeout=30) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read().decode()

    def log_in(self, url, user, until):
        """Follows redirects and fills in forms, as a person would, until it is sent to `until`."""
        form = None
        for _ in range(20):
            status, headers, page = self.get(url, form)
            form = None
            if status in (302, 303):
                url = urllib.parse.urljoin(url, headers["Location"])
                if url == until:
                    return
            elif status == 200:
                found = Form(page)
                assert found.action, page[:500]
                url, form = urllib.parse.urljoin(url, found.action), found.fields
                if "login" in form:
                    form.update(login=user, password="any")
            else:
                raise AssertionError("%s: %d %s" % (url, status, page[:500]))
        raise AssertionError("the log-in has no end: " + url)


def machine_token(issuer):
    basic = base64.b64encode(b"robot:" + urllib.parse.quote_plus("a secret of the robot").encode()).decode()
    form = urllib.parse.urlencode({"grant_type": "client_credentials", "resource": "urn:hearth"}).encode()
    request = urllib.request.Request(issuer + "/token", form, {"Authorization": "Basic " + basic})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["access_token"]


def check(node, directory):
    """What was seen, in a line."""
    port = free_port()
    issuer = "http://127.0.0.1:%d" % port
    callback = REGISTERED + "/api/v1/oidc/callback"
    hearth = AccessServer(
        "--auth", "token,oidc", "--oidc-issuer", issuer, "--oidc-audience", "hearth", "--oidc-client-id", "hearth-web",
        "--oidc-client-secret", "a secret of the web client", "--oidc-redirect-url", callback,
    )
    own = "http://" + hearth.address
    provider = subprocess.Popen([node, "provider.mjs", str(port), callback], cwd=directory, stderr=subprocess.DEVNULL)
    try:
        for subject in ("group:sre", "oidc:robot"):
            hearth.must("AddGrant", {"subject": subject, "tenant": "red", "role": "viewer"})
        browser = Browser((REGISTERED, own))
        begin = own + "/api/v1/oidc/login?return=/here"
        location = eventually(lambda: browser.get(begin)[1]["Location"], what="the documents of the issuer")
        browser.log_in(location, "alice", REGISTERED + "/here")
        session = next(c.value for c in browser.jar if c.name == "hearth_session")
        cookie = {"Cookie": "hearth_session=" + session, "Origin": own}
        who = hearth.post("/hearth.v1.AccessService/WhoAmI", {}, cookie)[2]
        assert who["subject"] == "oidc:alice", who
        assert hearth.post(TYPES, {}, cookie)[0] == 200

        jwt = machine_token(issuer)
        status, _, answer = hearth.post(TYPES, {}, bearer(jwt))
        assert status == 200, answer
        hearth.server.call(TYPES[1:], [], [("authorization", "Bearer " + jwt)])
        return "a person logged in as oidc:alice, a machine called as oidc:robot"
    finally:
        provider.kill()
        provider.wait()
        hearth.stop()
