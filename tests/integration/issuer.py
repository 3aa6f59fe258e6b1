"""An issuer of OpenID Connect on loopback that does what a test tells it to, also what no issuer should.

It makes keys by python3-cryptography, signs any claims with any of them, and logs everybody in without asking.
"""

import base64
import functools
import hashlib
import http.server
import json
import secrets
import ssl
import threading
import time
import urllib.parse

from cryptography.hazmat.primitives import hashes, hmac, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

HASHES = {"256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512}
CURVES = {"256": ec.SECP256R1, "384": ec.SECP384R1, "512": ec.SECP521R1}
CURVE_NAMES = {"256": "P-256", "384": "P-384", "512": "P-521"}


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value, size=None):
    return b64(value.to_bytes(size or (value.bit_length() + 7) // 8, "big"))


@functools.lru_cache(None)
def rsa_key(alg, bits, number):
    return rsa.generate_private_key(65537, bits)


class Key:
    """A key for one algorithm of JWTs. RSA keys take long to make: those of one number differ in their names only."""

    def __init__(self, alg="RS256", kid=None, bits=2048, number=0):
        self.alg, self.kid, self.bits = alg, kid or secrets.token_hex(4), alg[2:]
        if alg[:2] in ("RS", "PS"):
            self.private = rsa_key(alg, bits, number)
        elif alg[:2] == "ES":
            self.private = ec.generate_private_key(CURVES[self.bits]())
        else:
            self.private = ed25519.Ed25519PrivateKey.generate()

    def jwk(self, **changes):
        public = self.private.public_key()
        out = {"kid": self.kid, "use": "sig", "alg": self.alg}
        if self.alg[:2] in ("RS", "PS"):
            numbers = public.public_numbers()
            out.update(kty="RSA", n=number(numbers.n), e=number(numbers.e))
        elif self.alg[:2] == "ES":
            numbers, size = public.public_numbers(), (public.curve.key_size + 7) // 8
            out.update(kty="EC", crv=CURVE_NAMES[self.bits], x=number(numbers.x, size), y=number(numbers.y, size))
        else:
            raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
            out.update(kty="OKP", crv="Ed25519", x=b64(raw))
        out.update(changes)
        return out

    def public_pem(self):
        return self.private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def signature(self, text):
        kind = self.alg[:2]
        if kind == "RS":
            return self.private.sign(text, padding.PKCS1v15(), HASHES[self.bits]())
        if kind == "PS":
            digest = HASHES[self.bits]()
            return self.private.sign(text, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
        if kind == "ES":
            size = (self.private.curve.key_size + 7) // 8
            r, s = utils.decode_dss_signature(self.private.sign(text, ec.ECDSA(HASHES[self.bits]())))
            return r.to_bytes(size, "big") + s.to_bytes(size, "big")
        return self.private.sign(text)

    def jwt(self, claims, sign=None, **header):
        """A token with the claims; `sign` replaces the signature, header members replace those of the key."""
        head = {"alg": self.alg, "kid": self.kid, "typ": "JWT", **header}
        head = {name: value for name, value in head.items() if value is not None}
        body = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
        text = (b64(json.dumps(head).encode()) + "." + b64(body)).encode()
        signature = self.signature(text) if sign is None else sign(text)
        return text.decode() + "." + b64(signature)


def hmac_signer(secret):
    def sign(text):
        state = hmac.HMAC(secret, hashes.SHA256())
        state.update(text)
        return state.finalize()

    return sign


class Issuer:
    """`documents`: answers by path, (status, headers, bytes) or a function of the handler; they precede the built-in ones.

    `certificate`: (file, key file) for https.
    """

    CLIENT, SECRET = "hearth-client", "a-secret-of-the-client"

    def __init__(self, *keys, port=0, certificate=None):
        self.keys = list(keys) or [Key()]
        self.documents, self.requests, self.codes = {}, [], {}
        self.id_token_claims, self.discovery_changes = {}, {}
        self.user = {"sub": "alice", "groups": ["sre"]}
        self.server, self.certificate = None, certificate
        self.begin(port)
        self.url = ("https://localhost:%d" if certificate else "http://127.0.0.1:%d") % self.port + "/realms/test"

    def begin(self, port):
        issuer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                issuer.answer(self, b"")

            def do_POST(self):
                issuer.answer(self, self.rfile.read(int(self.headers["Content-Length"])))

            def log_message(self, *_):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a client that left

        self.server = Quiet(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    # ---- documents ----

    def discovery(self):
        return {
            "issuer": self.url,
            "jwks_uri": self.url + "/keys",
            "authorization_endpoint": self.url + "/authorize?tenant=x",
            "token_endpoint": self.url + "/token",
            **self.discovery_changes,
        }

    def answer(self, handler, body):
        url = urllib.parse.urlsplit(handler.path)
        self.requests.append((handler.command, handler.path, dict(handler.headers), body))
        path = url.path[len("/realms/test") :]
        found = self.documents.get(path)
        if callable(found):
            found = found(handler, body)
        if found is None:
            if path == "/.well-known/openid-configuration":
                found = (200, {}, json.dumps(self.discovery()).encode())
            elif path == "/keys":
                found = (200, {}, json.dumps({"keys": [k if isinstance(k, dict) else k.jwk() for k in self.keys]}).encode())
            elif path == "/token":
                found = self.token(handler, urllib.parse.parse_qs(body.decode()))
            else:
                found = (404, {}, b"{}")
        status, headers, text = found
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(text)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(text)

    # ---- tokens ----

    def claims(self, **changes):
        now = int(time.time())
        claims = {"iss": self.url, "aud": "hearth", "sub": "robot", "iat": now, "exp": now + 300, **changes}
        return {name: value for name, value in claims.items() if value is not None}

    def jwt(self, key=None, header=None, sign=None, **claims):
        return (key or self.keys[0]).jwt(self.claims(**claims), sign, **(header or {}))

    # ---- log-in ----

    def authorize(self, url):
        """What the browser brings back: the arguments of the request and of the answer."""
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
        code = secrets.token_hex(8)
        self.codes[code] = asked
        return asked, {"code": code, "state": asked["state"], "iss": self.url}

    def token(self, handler, form):
        one = {name: values[0] for name, values in form.items()}
        asked = self.codes.pop(one.get("code", ""), None)  # a code is used once
        basic = "Basic " + base64.b64encode((self.CLIENT + ":" + self.SECRET).encode()).decode()
        by_form = (one.get("client_id"), one.get("client_secret")) == (self.CLIENT, self.SECRET)
        challenge = b64(hashlib.sha256(one.get("code_verifier", "").encode()).digest())
        if not (handler.headers.get("Authorization") == basic or by_form):
            return 401, {}, b'{"error": "invalid_client"}'
        if (
            asked is None
            or one.get("grant_type") != "authorization_code"
            or asked["redirect_uri"] != one.get("redirect_uri")
            or asked["code_challenge_method"] != "S256"
            or asked["code_challenge"] != challenge
        ):
            return 400, {}, b'{"error": "invalid_grant"}'
        claims = {**self.user, "aud": self.CLIENT, "nonce": asked["nonce"], **self.id_token_claims}
        answer = {"access_token": "opaque", "token_type": "Bearer", "id_token": self.jwt(**claims)}
        return 200, {"Content-Type": "application/json"}, json.dumps(answer).encode()
