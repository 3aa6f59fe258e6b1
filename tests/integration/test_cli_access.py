"""hearth with tokens: how it sends them, what refusals teach, and the commands for tokens, users, grants and the audit log."""

import json
import os
import pathlib
import pty
import re
import shlex
import subprocess
import time
import unittest

from pprof import Profile
from server import HEARTH, Server, eventually, now_ms, server_environment, temporary_directory
from test_access import PASSWORD, AccessServer
from test_cli import AUTH, FAILED, NO_DATA, OK, USAGE, hearth

TOKEN = re.compile(r"^hearth_\w+\n$")
TRACE = "000000000000000000000000000000cc"
DATE = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


def profile():
    p = Profile([("cpu", "nanoseconds")], time_ns=now_ms() * 1_000_000)
    p.add(["main", "work"], [7], {"span_id": "00000000000000aa", "trace_id": TRACE})
    return p.encode()


class CliAccess(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.hearth = AccessServer()
        cls.url = "http://" + cls.hearth.address
        cls.directory = pathlib.Path(temporary_directory())
        cls.setup = cls.file("setup", cls.hearth.root)
        done = cls.cli("admin", "tokens", "create", "root", "--role", "admin", "--tenant", "*", token_file=cls.setup)
        assert done.code == OK and TOKEN.match(done.out), done.err
        cls.root = cls.file("root", done.out)

    @classmethod
    def tearDownClass(cls):
        cls.hearth.stop()

    @classmethod
    def file(cls, name, text, mode=0o600):
        path = cls.directory / name
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    @classmethod
    def cli(cls, *arguments, token_file=None, **variables):
        env = {"HEARTH_URL": cls.url, **variables}
        if token_file:
            env["HEARTH_TOKEN_FILE"] = token_file
        return hearth(*arguments, env=env)

    def ran(self, *arguments, code=OK, **more):
        """As the administrator of the server."""
        done = self.cli(*arguments, token_file=self.root, **more)
        self.assertEqual(done.code, code, done.err + done.out)
        return done

    def answer(self, *arguments):
        return json.loads(self.ran(*arguments, "-o", "json").out)

    def refused(self, code, words, *arguments, **more):
        """Exit code and, within the last line of standard error, the words."""
        done = self.cli(*arguments, **{"token_file": self.root, **more})
        self.assertEqual((done.code, done.out), (code, ""), done.err)
        self.assertIn(words, done.err.splitlines()[-1])

    def token(self, role, tenant, *more):
        """(id, token file)"""
        text = self.ran("admin", "tokens", "create", "test", "--role", role, "--tenant", tenant, *more).out
        return text.split("_")[1], self.file(text.split("_")[1], text)


class Credentials(CliAccess):
    def test_the_error_of_a_missing_token_explains_how_to_give_one(self):
        self.refused(
            AUTH, "hearth: this server wants a token: set HEARTH_TOKEN_FILE or --token-file", "query", "types", token_file=None
        )

    def test_a_token_is_read_from_an_option_a_file_or_a_variable(self):
        token = pathlib.Path(self.root).read_text().strip()
        for arguments, variables in (
            (["--token-file", self.root], {}),
            (["--token", token], {}),
            ([], {"HEARTH_TOKEN": token}),
            ([], {"HEARTH_TOKEN_FILE": self.root}),
            (["--token-file", self.root], {"HEARTH_TOKEN": "wrong", "HEARTH_TOKEN_FILE": "/nowhere"}),
            ([], {"HEARTH_TOKEN": token, "HEARTH_TOKEN_FILE": "/nowhere"}),
        ):
            done = self.cli("whoami", *arguments, **variables)
            self.assertEqual(done.code, OK, done.err)
            self.assertRegex(done.out, r'^token:\w{10} "root"\n  admin in all tenants\n$')
        self.refused(USAGE, "--token and --token-file cannot be combined", "whoami", "--token", "x", "--token-file", "y")

    def test_a_token_file_that_others_can_read_is_refused(self):
        for mode in (0o644, 0o640, 0o604, 0o620):
            path = self.file("open", "hearth_secret", mode)
            self.refused(
                USAGE, "token file %s can be read or written by others than its owner (mode %04o): chmod 600 %s"
                % (path, mode, path), "whoami", token_file=path,
            )

    def test_token_files_without_a_token_are_refused_without_their_text(self):
        for name, text, words in (
            ("empty", "", "must have one line of text"), ("lines", "secret1\nsecret2\n", "must have one line of text"),
            ("long", "s" * 20_000, "must have one line of text"), ("words", "secret secret", "is one word of visible"),
            ("blank", " \n", "is one word of visible"), ("high", "secrét", "is one word of visible"),
        ):
            path = self.file(name, text)
            self.refused(USAGE, words, "whoami", token_file=path)
            self.refused(USAGE, path, "whoami", token_file=path)
            self.assertNotIn("secr", self.cli("whoami", token_file=path).err)
        self.refused(USAGE, "/nowhere: No such file", "whoami", token_file="/nowhere")
        self.refused(USAGE, "is a directory", "whoami", token_file=str(self.directory))

    def test_a_wrong_token_is_named_by_its_place(self):
        path = self.file("wrong", pathlib.Path(self.root).read_text().strip() + "x")
        self.refused(AUTH, "token file %s: the credential is not a token" % path, "whoami", token_file=path)
        self.refused(AUTH, "HEARTH_TOKEN: the credential is not a token", "whoami", HEARTH_TOKEN="hearth_x")

    def test_a_missing_role_is_named(self):
        _, viewer = self.token("viewer", "red")
        self.refused(
            AUTH, 'in the tenant "red"; it needs the role admin there; `hearth whoami` lists your roles',
            "admin", "retention", "set", "raw", "7d", token_file=viewer,
        )
        self.refused(AUTH, "it needs the role ingest there", "upload", self.pprof(), token_file=viewer)

    def test_a_token_of_several_tenants_must_name_one(self):
        self.refused(USAGE, "X-Scope-OrgID; that is, set HEARTH_TENANT or --tenant", "query", "types")
        self.ran("query", "types", "--tenant", "red", code=NO_DATA)

    def test_a_server_without_authentication_accepts_any_token(self):
        server = Server()
        self.addCleanup(server.stop)
        done = self.cli("whoami", "--url", "http://127.0.0.1:%d" % server.port, token_file=self.root)
        self.assertEqual(done.out, "anonymous\n  everything: this server does not ask who calls\n", done.err)

    # ---- the main job ----

    def pprof(self):
        path = self.directory / "cpu.pb"
        path.write_bytes(profile())
        return str(path)

    def test_profiles_are_pushed_and_queried_with_token_files(self):
        _, writer = self.token("ingest", "shop")
        _, reader = self.token("viewer", "shop")
        done = self.cli("upload", self.pprof(), "--label", "service_name=api", token_file=writer)
        self.assertEqual(done.code, OK, done.err)
        done = self.cli("query", "top", "{}", token_file=reader)
        self.assertEqual(done.code, OK, done.err)
        self.assertIn("work", done.out)
        for arguments in (["flame"], ["timeline"], ["profiles", "list"], ["admin", "limits", "shop"]):
            done = self.cli(*arguments, token_file=reader)
            self.assertEqual(done.code, OK, done.err)
        self.refused(AUTH, "needs the role viewer", "flame", token_file=writer)

        # The command that is offered next reads the same file.
        done = self.cli("trace", TRACE, "--token-file", reader, HEARTH_TOKEN="x")
        (offered,) = [line for line in done.out.splitlines() if line.startswith("hearth trace ")]
        self.assertIn(" --token-file " + reader, offered)
        self.assertIn("work", self.cli(*shlex.split(offered)[1:]).out)

        # Files in parts: two calls for each, from one command.
        text = self.file("stacks.txt", "main;work 5\n")
        done = self.cli("uploads", "create", text, "--time", "now", "--wait", token_file=self.token("editor", "shop")[1])
        self.assertEqual(done.code, OK, done.err)

    def test_tasks_are_created_with_a_token_file(self):
        _, viewer = self.token("viewer", "shop")
        _, profiler = self.token("profiler", "shop")
        create = ["task", "create", "trace", "--service", "nobody", "--endpoint", "/pay"]
        self.refused(AUTH, "needs the role profiler", *create, token_file=viewer)
        done = self.cli(*create, token_file=profiler)
        self.assertEqual(done.code, OK, done.err)
        task_id = done.out.split()[0]
        self.assertIn(task_id, self.cli("task", "list", "nobody", token_file=viewer).out)
        self.refused(AUTH, "needs the role profiler", "task", "cancel", task_id, token_file=viewer)


class Tokens(CliAccess):
    def test_a_new_token_stands_alone_on_standard_output(self):
        done = self.ran("admin", "tokens", "create", "shop agents", "--role", "ingest", "--tenant", "shop", "--expires", "90d")
        self.assertRegex(done.out, TOKEN)
        self.assertRegex(done.err, r'^token: \w{10} "shop agents": ingest in shop; ends %s\nIt is shown this once\.\n$' % DATE)
        self.assertNotIn(done.out.strip(), done.err)
        done = self.cli("whoami", HEARTH_TOKEN=done.out.strip())
        self.assertRegex(done.out, r'^token:\w{10} "shop agents", ends %s\n  ingest in shop\n$' % DATE)

    def test_a_token_has_the_grants_that_were_given(self):
        made = self.answer(
            "admin", "tokens", "create", "ci", "--role", "viewer", "--selector", '{team="x"}', "--grant", "*:ingest",
            "--grant", 'blue:viewer:{a=~"b:c"}',
        )
        self.assertTrue(made["token"].startswith("hearth_" + made["id"]))
        (token,) = [t for t in self.answer("admin", "tokens", "list")["tokens"] if t["id"] == made["id"]]
        self.assertCountEqual(
            [(g["tenant"], g["role"], g.get("selector")) for g in token["grants"]],
            [("anonymous", "viewer", '{team="x"}'), ("*", "ingest", None), ("blue", "viewer", '{a=~"b:c"}')],
        )
        self.assertNotIn("expiresMs", token)
        table = self.ran("admin", "tokens", "list").out
        self.assertRegex(table, r"^id +name +created +ends +last used +from +may\n")
        self.assertRegex(table, r'\n%s  ci +%s  never +never +- .*blue, only {a=~"b:c"}' % (made["id"], DATE))

    def test_mistakes_are_usage_errors_with_the_correct_form(self):
        create = ["admin", "tokens", "create"]
        for words, arguments in (
            ("tokens create requires --role ROLE", ["x"]), ("NAME is missing", []),
            ('"king" is not a value for --role, which takes ingest', ["x", "--role", "king"]),
            ("is not TENANT:ROLE or", ["x", "--grant", "shop"]), ("is not TENANT:ROLE or", ["x", "--grant", ":viewer"]),
            ("is not TENANT:ROLE or", ["x", "--grant", "shop::{}"]),
            ("--selector narrows --role", ["x", "--grant", "a:viewer", "--selector", "{}"]),
            ("--expires must be a duration like 90d", ["x", "--role", "viewer", "--expires", "soon"]),
            ("is over already", ["x", "--role", "viewer", "--expires", "2020-01-01"]),
            ("the selector of the grant", ["x", "--role", "viewer", "--selector", "{a="]),
            ("admin tokens create does not take --overlap: it is for admin tokens rotate", ["x", "--role", "viewer", "--overlap", "1d"]),
            ("which takes table or json", ["x", "--role", "viewer", "-o", "collapsed"]),
        ):
            self.refused(USAGE, words, *create, *arguments)
        self.refused(USAGE, "no such admin tokens command: make", "admin", "tokens", "make")
        self.refused(USAGE, "does not take --role: it is for admin tokens create, admin grants add", "admin", "tokens", "list", "--role", "viewer")
        self.refused(USAGE, "does not take --role: it is for admin tokens create, admin grants add", "query", "types", "--role", "viewer")

    def test_a_file_that_others_can_read_is_pointed_out(self):
        for mode, expected in ((0o644, True), (0o600, False)):
            path = self.file("made", "", mode)
            with open(path, "wb") as out:
                done = hearth(
                    "admin", "tokens", "create", "x", "--role", "viewer", "--tenant", "red", stdout=out,
                    env={"HEARTH_URL": self.url, "HEARTH_TOKEN_FILE": self.root},
                )
            self.assertEqual(done.code, OK)
            self.assertEqual("chmod 600" in done.err, expected)
            self.assertRegex(pathlib.Path(path).read_text(), TOKEN)

    def test_rotation_keeps_the_old_token_for_the_overlap(self):
        token_id, old = self.token("viewer", "red")
        done = self.ran("admin", "tokens", "rotate", token_id, "--overlap", "1h", "--expires", "2d")
        new = self.file("new", done.out)
        self.assertRegex(done.err, r"^token: \w+ has the name and grants of %s; ends %s; the old one ends in 1h\n" % (token_id, DATE))
        for path in (old, new):
            self.assertIn("viewer in red", self.cli("whoami", token_file=path).out)
        self.assertIn("ends 20", self.cli("whoami", token_file=old).out)
        done = self.ran("admin", "tokens", "rotate", token_id, "--overlap", "1h", "--expires", "never")
        self.assertIn("; never ends; the old one ends in 1h", done.err)
        made = self.answer("admin", "tokens", "rotate", token_id)
        self.assertAlmostEqual(int(made["expiresMs"]) / 1000 - time.time(), 3600, delta=60)
        self.assertIn("viewer in red", self.cli("whoami", HEARTH_TOKEN=made["token"]).out)
        self.refused(AUTH, "has expired", "whoami", token_file=old)
        self.refused(NO_DATA, "there is no token", "admin", "tokens", "rotate", "nobody")

    def test_a_deleted_token_ends(self):
        token_id, path = self.token("viewer", "red")
        self.assertEqual(self.ran("admin", "tokens", "delete", token_id).out, "token %s is deleted\n" % token_id)
        self.refused(AUTH, "token file %s: the token is unknown: it was deleted" % path, "whoami", token_file=path)
        self.refused(NO_DATA, 'there is no token "%s"' % token_id, "admin", "tokens", "delete", token_id)


class People(CliAccess):
    def password(self, text=PASSWORD, mode=0o600):
        return ["--password-file", self.file("password", text + "\n", mode)]

    def login(self, user, password=PASSWORD):
        return self.hearth.post("/api/v1/login", {"user": user, "password": password}, {})[0]

    def test_a_user_is_created_changed_and_deleted(self):
        users = ["admin", "users"]
        done = self.ran(*users, "create", "alice", *self.password())
        self.assertIn("user alice is created; `hearth admin grants add alice --role viewer`", done.out)
        self.assertEqual(self.login("alice"), 200)
        listed = self.ran(*users, "list").out
        self.assertRegex(listed, r"^user +state +created +password set +last log-in +sessions\n")
        self.assertRegex(listed, r"\nalice +ok +(%s +){3}1\n" % DATE)
        self.assertIn("alice", [u["name"] for u in self.answer(*users, "list")["users"]])

        self.assertEqual(self.ran("admin", "sessions", "end", "alice").out, "1 session has ended\n")
        self.assertEqual(self.answer("admin", "sessions", "end", "user:alice"), {})
        self.ran("admin", "sessions", "end")
        self.ran(*users, "password", "alice", *self.password(PASSWORD + "2"))
        self.assertEqual([self.login("alice"), self.login("alice", PASSWORD + "2")], [401, 200])

        self.ran(*users, "disable", "alice")
        self.assertRegex(self.ran(*users, "list").out, r"\nalice +disabled ")
        self.assertEqual(self.login("alice", PASSWORD + "2"), 401)
        self.assertEqual(self.ran(*users, "enable", "alice").out, "user alice may log in again\n")
        self.assertEqual(self.login("alice", PASSWORD + "2"), 200)
        self.assertEqual(self.ran(*users, "delete", "alice").out, "user alice is deleted\n")
        self.refused(NO_DATA, 'no user "alice"', *users, "delete", "alice")

    def test_weak_passwords_and_open_files_are_refused(self):
        create = ["admin", "users", "create", "eve"]
        self.refused(USAGE, "a password has 12 to 1024 bytes", *create, *self.password("short"))
        self.refused(USAGE, "(mode 0644): chmod 600", *create, *self.password(mode=0o644))
        self.refused(USAGE, "standard input is not a terminal: give --password-file FILE", *create)
        self.refused(USAGE, "NAME is missing", "admin", "users", "create", *self.password())
        self.ran("admin", "users", "create", "twice", *self.password())
        self.refused(FAILED, 'there is a user "twice" already', "admin", "users", "create", "twice", *self.password())

    def test_a_password_is_read_from_standard_input(self):
        done = hearth(
            "admin", "users", "create", "piped", "--password-file", "-", stdin=PASSWORD.encode(),
            env={"HEARTH_URL": self.url, "HEARTH_TOKEN_FILE": self.root},
        )
        self.assertEqual(done.code, OK, done.err)
        self.assertEqual(self.login("piped"), 200)

    def typed(self, name, *lines):
        """(exit code, what the terminal showed, standard error) of `users create NAME` with typed passwords."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [HEARTH, "admin", "users", "create", name], stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=server_environment({"HEARTH_URL": self.url, "HEARTH_TOKEN_FILE": self.root}), start_new_session=True,
        )
        os.close(theirs)
        said = b""
        for line in lines:
            while not said.endswith(b": "):
                said += process.stderr.read1() or self.fail(said)
            time.sleep(0.2)  # the prompt stands before the echo ends
            os.write(ours, line.encode() + b"\n")
            said += b"\n"
        said += process.communicate(timeout=60)[1]
        os.set_blocking(ours, False)
        try:
            shown = os.read(ours, 4096)
        except OSError:
            shown = b""
        os.close(ours)
        return process.returncode, shown.decode(), said.decode()

    def test_a_password_is_typed_twice_and_not_shown(self):
        code, shown, said = self.typed("typist", PASSWORD, PASSWORD)
        self.assertEqual(code, OK, said)
        self.assertNotIn("secret", shown)
        self.assertEqual(self.login("typist"), 200)
        code, _, said = self.typed("slip", PASSWORD, PASSWORD + "x")
        self.assertEqual(code, FAILED)
        self.assertIn("nothing was changed: the two passwords differ", said)
        self.assertEqual(self.typed("nothing", "", "")[0], FAILED)

    def test_grants_are_added_listed_and_deleted(self):
        grants = ["admin", "grants"]
        done = self.ran(*grants, "add", "carol", "--role", "viewer", "--tenant", "red", "--selector", '{team="x"}')
        grant = re.fullmatch(r'grant (\d+): user:carol is viewer in red, only {team="x"}\n', done.out).group(1)
        self.assertEqual(self.answer(*grants, "add", "user:carol", "--role", "viewer", "--tenant", "red", "--selector",
                                     '{team="x"}'), {"id": int(grant)})
        self.assertRegex(self.ran(*grants, "list").out, r'(?m)^ +%s  user:carol +%s  token:\w+ +viewer in red' % (grant, DATE))
        self.assertIn("user:carol", [g["subject"] for g in self.answer(*grants, "list")["grants"]])
        self.assertEqual(self.ran(*grants, "delete", grant).out, "grant %s is deleted\n" % grant)
        self.refused(NO_DATA, "there is no grant", *grants, "delete", grant)
        self.refused(USAGE, "the id of a grant is a number", *grants, "delete", "x")
        self.refused(USAGE, "grants add requires --role", *grants, "add", "carol")

    def test_the_last_administrator_stays(self):
        (last,) = [g["id"] for g in self.answer("admin", "grants", "list")["grants"] if g["role"] == "admin"]
        self.refused(FAILED, "last", "admin", "grants", "delete", str(last))


class Audit(CliAccess):
    def test_the_log_names_the_caller_and_the_action(self):
        token_id, viewer = self.token("viewer", "red")
        self.cli("admin", "retention", "set", "raw", "7d", token_file=viewer)
        audit = ["admin", "audit"]
        table = self.ran(*audit, "--action", "/hearth.v1.AccessService/CreateToken").out
        self.assertRegex(table, r"^time +who +from +outcome +what +object\n")
        self.assertRegex(
            table, r'\n%s  token:\w{10} +127\.0\.0\.1 +ok +/hearth\.v1\.AccessService/CreateToken  .*token %s "test"\n' % (DATE, token_id),
        )
        subject = ["--subject", "token:" + token_id]
        denied = lambda: self.answer(*audit, "--outcome", "denied", "--since", "1h", *subject).get("events")
        (event,) = eventually(denied, what="the refusal in the audit log")
        self.assertEqual((event["outcome"], event["tenant"]), ("permission_denied", "red"))
        self.assertEqual(self.ran(*audit, "--outcome", "not_found", *subject).err, "hearth: no event matches\n")
        self.assertEqual(len(self.answer(*audit, "--tenant", "red", *subject)["events"]), 1)
        self.refused(USAGE, '--outcome must be ok, denied, unauthenticated', *audit, "--outcome", "bad")
        self.refused(AUTH, "may not do this in any tenant; it needs the role admin in one; `hearth whoami`", *audit, token_file=viewer)

    def test_more_events_than_a_page_are_listed(self):
        self.hearth.server.sql(
            "INSERT INTO hearth_data.audit (at, tenant, subject, address, action, object, outcome, message)"
            " SELECT at, tenant, subject, address, 'many', object, outcome, message FROM hearth_data.audit,"
            " generate_series(1, 2500) WHERE audit_id = (SELECT min(audit_id) FROM hearth_data.audit)"
        )
        for limit, n in ((1, 1), (1000, 1000), (2300, 2300), (9000, 2500)):
            events = self.answer("admin", "audit", "--action", "many", "--limit", str(limit))["events"]
            self.assertEqual(len({e["id"] for e in events}), n)
        self.assertEqual(len(self.answer("admin", "audit", "--action", "many")["events"]), 100)


if __name__ == "__main__":
    unittest.main()
