"""/api/v1/uploads and hearth.v1.UploadService: files that are received in parts and parsed in the background."""

import base64
import gzip
import hashlib
import json
import random
import unittest
import urllib.parse

from server import RpcError, Server, eventually, now_ms
from test_ingest import form
from test_jfr import OURS, RECORDING

SERVICE = "hearth.v1.UploadService/"
T = now_ms() - 300_000
PART = 65536


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def collapsed(n, seed=5):
    """Collapsed stacks of about 35 bytes each, and the sum of their values."""
    rng = random.Random(seed)
    values = [rng.randrange(1, 1000) for _ in range(n)]
    lines = ["main;handle%05d;work%08x %d" % (i % 700, i * 2654435761 % 2**32, v) for i, v in enumerate(values)]
    return "\n".join(lines).encode() + b"\n", sum(values)


class Client:
    """Calls of one server, in JSON."""

    def __init__(self, server):
        self.server = server

    def ask(self, method, **fields):
        return self.server.connect(SERVICE + method, fields)

    def get(self, upload_id):
        return self.ask("GetUpload", uploadId=upload_id)

    def put(self, upload, data, part, **more):
        size = upload["partBytes"]
        piece = data[part * size : (part + 1) * size]
        return self.ask("PutPart", uploadId=upload["uploadId"], part=part, data=base64.b64encode(piece).decode(), **more)

    def create(self, data, service="shop", **more):
        return self.ask("CreateUpload", **{
            "fileName": "a file", "sizeBytes": len(data), "partBytes": PART, "fromMs": T,
            "labels": [{"name": "service_name", "value": service}], **more,
        })

    def upload(self, data, service="shop", **more):
        """In parts. The id."""
        upload = self.create(data, service, **more)
        for part in range(upload["parts"]):
            self.put(upload, data, part)
        self.ask("FinishUpload", uploadId=upload["uploadId"], sha256=sha256(data))
        return upload["uploadId"]

    def ended(self, upload_id, seconds=30):
        def look():
            upload = self.get(upload_id)
            return upload if upload["state"] in ("UPLOAD_STATE_DONE", "UPLOAD_STATE_FAILED") else None

        return eventually(look, seconds, what="the end of the upload")

    def post(self, path, body=b"", headers=None, **arguments):
        """POST with plain HTTP: (status, decoded JSON)."""
        status, _, answer = self.server.http("POST", path + "?" + urllib.parse.urlencode(arguments), body, headers)
        return status, json.loads(answer)


def total(server, profile_type, service):
    return server.flamegraph(profile_type, '{service_name="%s"}' % service, T - 3_600_000, T + 3_600_000).total


class Uploads(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.client = Client(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.service = self.id().rsplit(".", 1)[1]

    def refused(self, code, method, **fields):
        with self.assertRaises(RpcError) as raised:
            self.client.ask(method, **fields)
        self.assertEqual(raised.exception.code, code, raised.exception.message)
        return raised.exception.message

    def test_a_file_in_parts_becomes_its_profiles(self):
        upload_id = self.client.upload(RECORDING, self.service)
        upload = self.client.ended(upload_id)
        self.assertEqual(upload["state"], "UPLOAD_STATE_DONE", upload)
        self.assertEqual(int(upload["storedProfiles"]), int(upload["profiles"]))
        results = {result["profileType"]: int(result.get("total", 0)) for result in upload["results"]}
        for profile_type, expected in OURS.items():
            self.assertEqual(results[profile_type], expected, profile_type)
            self.assertEqual(total(self.server, profile_type, self.service), expected, profile_type)
        self.assertTrue(all(result["profileId"] for result in upload["results"]))
        self.assertIn(upload_id, [one["uploadId"] for one in self.client.ask("ListUploads")["uploads"]])

    def test_one_request_is_enough_for_a_small_file(self):
        text, expected = collapsed(50)
        headers, body = form([("service", None, self.service.encode()), ("label", None, b"env=test"),
                              ("from", None, str(T // 1000).encode()), ("file", "stacks.txt", text)])
        status, upload = self.client.post("/api/v1/uploads", body, headers)
        self.assertEqual((status, upload["fileName"]), (200, "stacks.txt"), upload)
        self.assertEqual(upload["sha256"], sha256(text))
        done = self.client.ended(upload["uploadId"])
        self.assertEqual(done["state"], "UPLOAD_STATE_DONE", done)
        profile_type = done["results"][0]["profileType"]
        self.assertEqual(total(self.server, profile_type, self.service), expected)
        self.assertIn("test", self.server.connect("querier.v1.QuerierService/LabelValues", {
            "name": "env", "matchers": ['{service_name="%s"}' % self.service], "start": T - 1000, "end": T + 60000,
        })["names"])

        # The same as a body, compressed, with arguments in the URL.
        status, upload = self.client.post("/api/v1/uploads", gzip.compress(text), service=self.service + "-2",
                                          name="s.gz", label="__name__=mine", **{"from": T // 1000})
        self.assertEqual(status, 200, upload)
        done = self.client.ended(upload["uploadId"])
        self.assertTrue(done["results"][0]["profileType"].startswith("mine:"), done)
        self.assertEqual(total(self.server, done["results"][0]["profileType"], self.service + "-2"), expected)

    def test_the_original_is_read_back_byte_for_byte(self):
        text = collapsed(9000)[0]
        upload_id = self.client.upload(text, self.service)
        path = "/api/v1/uploads/original?id=" + upload_id
        status, headers, body = self.server.http("GET", path)
        self.assertEqual((status, body), (200, text))
        self.assertEqual(headers["content-disposition"], 'attachment; filename="a file"')
        parts = -(-len(text) // PART)
        read = [base64.b64decode(self.client.ask("ReadPart", uploadId=upload_id, part=i)["data"]) for i in range(parts)]
        self.assertEqual(b"".join(read), text)
        self.assertEqual(self.server.http("GET", path + "&part=1")[2], text[PART : 2 * PART])
        self.assertEqual(self.server.http("GET", path + "&part=%d" % parts)[0], 400)

    def test_an_upload_is_resumed_with_the_parts_that_are_missing(self):
        text, expected = collapsed(12000)
        upload = self.client.create(text, self.service)
        self.assertGreater(upload["parts"], 4)
        for part in (3, 0):
            self.client.put(upload, text, part)
        found = self.client.get(upload["uploadId"])
        self.assertEqual(found["state"], "UPLOAD_STATE_RECEIVING")
        self.assertEqual(int(found["receivedBytes"]), 2 * PART)
        self.assertEqual(found["missingParts"], [part for part in range(upload["parts"]) if part not in (0, 3)])
        message = self.refused("failed_precondition", "FinishUpload", uploadId=upload["uploadId"])
        self.assertIn("parts 1, 2, 4 and more of %d are missing" % upload["parts"], message)
        for part in found["missingParts"]:
            self.client.put(upload, text, part, sha256=sha256(text[part * PART : (part + 1) * PART]))
        for _ in range(2):  # a repeated call changes nothing
            self.client.ask("FinishUpload", uploadId=upload["uploadId"], sha256=sha256(text))
        done = self.client.ended(upload["uploadId"])
        self.assertEqual(int(done["results"][0]["total"]), expected)

    def test_parts_are_sent_by_plain_http(self):
        text, expected = collapsed(5000)
        status, upload = self.client.post("/api/v1/uploads", size=len(text), part_bytes=PART, service=self.service,
                                          sha256=sha256(text), **{"from": T // 1000})
        self.assertEqual((status, upload["state"]), (200, "UPLOAD_STATE_RECEIVING"), upload)
        for part in range(upload["parts"]):
            status, answer = self.client.post("/api/v1/uploads/part", text[part * PART : (part + 1) * PART],
                                              id=upload["uploadId"], part=part)
            self.assertEqual((status, answer), (200, {}))
        self.assertEqual(self.client.post("/api/v1/uploads/finish", id=upload["uploadId"])[0], 200)
        self.assertEqual(int(self.client.ended(upload["uploadId"])["results"][0]["total"]), expected)
        listed = json.loads(self.server.http("GET", "/api/v1/uploads")[2])["uploads"]
        self.assertIn(upload["uploadId"], [one["uploadId"] for one in listed])
        self.assertEqual(self.client.post("/api/v1/uploads/delete", id=upload["uploadId"])[0], 200)
        self.assertEqual(self.server.http("GET", "/api/v1/uploads?id=" + upload["uploadId"])[0], 404)

    def test_another_checksum_is_refused_and_the_part_can_be_sent_again(self):
        text = collapsed(3000)[0]
        upload = self.client.create(text, self.service, sha256=sha256(text))
        damaged = text[:70000] + b"X" + text[70001:]
        self.client.put(upload, text, 0)
        with self.assertRaisesRegex(RpcError, "checksum of the part is not the announced one"):
            self.client.put(upload, damaged, 1, sha256=sha256(text[PART:]))
        self.client.put(upload, damaged, 1)
        message = self.refused("invalid_argument", "FinishUpload", uploadId=upload["uploadId"])
        self.assertIn("sha256 of the received bytes is " + sha256(damaged), message)
        self.client.put(upload, text, 1)
        self.client.ask("FinishUpload", uploadId=upload["uploadId"])
        self.assertEqual(self.client.ended(upload["uploadId"])["state"], "UPLOAD_STATE_DONE")
        with self.assertRaisesRegex(RpcError, "receives no more parts"):
            self.client.put(upload, text, 0)

    def test_a_damaged_file_fails_with_the_reason_and_stores_nothing(self):
        for data, reason in ((RECORDING[: len(RECORDING) // 2], "JFR|recording|chunk"),
                             (gzip.compress(collapsed(99)[0])[:200], "gzip"), (b"\x00\x01\x02" * 99, "not a pprof profile")):
            upload = self.client.ended(self.client.upload(data, self.service))
            self.assertEqual(upload["state"], "UPLOAD_STATE_FAILED", upload)
            self.assertRegex(upload["reason"], reason)
            self.assertNotIn("storedProfiles", upload)
        self.assertEqual(self.server.connect("querier.v1.QuerierService/Series", {
            "matchers": ['{service_name="%s"}' % self.service], "start": T - 1000, "end": now_ms()}).get("labelsSet", []), [])

    def test_refused_profiles_are_named_with_the_reason(self):
        upload = self.client.ended(self.client.upload(RECORDING, self.service, fromMs=T - 30 * 86_400_000))
        self.assertEqual(upload["state"], "UPLOAD_STATE_FAILED", upload)
        self.assertIn("%s of %s profiles were refused" % (upload["profiles"], upload["profiles"]), upload["reason"])
        self.assertEqual(upload["refusedProfiles"], upload["profiles"])

    def test_invalid_uploads_are_refused_at_once(self):
        good = {"fileName": "f", "sizeBytes": 10}
        for change, reason in (
            ({"sizeBytes": 0}, "size_bytes is 0"), ({"partBytes": 9}, "part_bytes is 9; it must be"),
            ({"sha256": "abc"}, "64 hexadecimal digits"), ({"format": "gif"}, 'unknown format "gif"; known are '),
            ({"labels": [{"name": "", "value": "x"}]}, "label"), ({"fileName": "f" * 256}, "255 bytes"),
            ({"sizeBytes": 1 << 40}, "max-upload-bytes allows 268435456"),
            ({"fromMs": 2, "untilMs": 1}, "until is before from: 1000000 and 2000000 ns"),
        ):
            self.assertIn(reason, self.refused("invalid_argument", "CreateUpload", **{**good, **change}))
        upload = self.client.create(b"x" * (PART + 5))
        for part, n, reason in ((2, 5, "there is no part 2; the upload has 2"), (1, 6, "part 1 has 6 bytes instead of 5")):
            message = self.refused("invalid_argument", "PutPart", uploadId=upload["uploadId"], part=part,
                                   data=base64.b64encode(b"x" * n).decode())
            self.assertIn(reason, message)
        self.refused("not_found", "GetUpload", uploadId="0" * 32)
        for field, value in (("label", b"a=b\0c"), ("label", b"a=\xff"), ("service", b"\0"), ("name", b"\0"), ("format", b"\0")):
            headers, body = form([(field, None, value), ("file", "x.txt", b"a;b 1\n")])
            self.assertEqual(self.client.post("/api/v1/uploads", body, headers)[0], 400, (field, value))
        for unknown in ("", "x", "%ff", "'", "%00"):
            status = self.server.http("GET", "/api/v1/uploads/original?id=" + unknown)[0]
            self.assertEqual(status, 400 if unknown == "%00" else 404, unknown)
        self.assertEqual(self.client.post("/api/v1/uploads")[0], 400)
        self.assertEqual(self.client.post("/api/v1/uploads", b"x", label="no")[0], 400)

    def test_tenants_do_not_see_each_others_uploads(self):
        server = Server("--multitenancy")
        try:
            first, second = ({"X-Scope-OrgID": name} for name in ("first", "second"))
            text = collapsed(20)[0]
            status, _, body = server.http("POST", "/api/v1/uploads?from=%d" % (T // 1000), text, first)
            self.assertEqual(status, 200, body)
            upload_id = json.loads(body)["uploadId"]
            for path in ("?id=" + upload_id, "/original?id=" + upload_id):
                self.assertEqual(server.http("GET", "/api/v1/uploads" + path, None, second)[0], 404)
                self.assertEqual(server.http("GET", "/api/v1/uploads" + path, None, first)[0], 200)
            self.assertEqual(json.loads(server.http("GET", "/api/v1/uploads", None, second)[2]), {})
        finally:
            server.stop()


class Limits(unittest.TestCase):
    def test_limits_are_reported_by_their_options(self):
        server = Server("--max-upload-bytes", "1m", "--max-uploads", "4", "--max-uploads-bytes", "1500k",
                        "--upload-memory-bytes", "300k")
        try:
            client = Client(server)
            with self.assertRaisesRegex(RpcError, r"max-upload-bytes allows 1048576"):
                client.create(b"x" * 1048577)
            # Memory of the parser.
            failed = client.ended(client.upload(collapsed(7000)[0]))
            self.assertIn("upload-memory-bytes, 307200", failed["reason"])
            # A bomb.
            bomb = client.ended(client.upload(gzip.compress(b"a;b 1\n" * 2_000_000)))
            self.assertRegex(bomb["reason"], "upload-memory-bytes|max-upload-bytes")
            # The quota, and room by deletion.
            with self.assertRaisesRegex(RpcError, r"max-uploads-bytes \(1536000\)"):
                for _ in range(2):
                    client.create(b"x" * 1_000_000)
            client.create(b"x")
            with self.assertRaisesRegex(RpcError, "4 uploads, as many as max-uploads allows"):
                client.create(b"x")
            client.ask("DeleteUpload", uploadId=bomb["uploadId"])
            client.create(b"x")
        finally:
            server.stop()

    def test_retention_deletes_originals_and_unfinished_uploads(self):
        server = Server("--retain-uploads", "4s", "--upload-idle-timeout", "4s")
        try:
            client = Client(server)
            text, expected = collapsed(100)
            done = client.ended(client.upload(text))
            client.create(b"x" * 100)
            eventually(lambda: server.sql("SELECT count(*) FROM hearth_data.profile_upload") == [["0"]], 60)
            self.assertEqual(server.sql("SELECT count(*) FROM hearth_data.profile_upload_part"), [["0"]])
            self.assertEqual(server.sql("SELECT count(*) FROM hearth_data.profile_upload_result"), [["0"]])
            self.assertEqual(total(server, done["results"][0]["profileType"], "shop"), expected)  # profiles stay
        finally:
            server.stop()


if __name__ == "__main__":
    unittest.main()
