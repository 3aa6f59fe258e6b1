"""Services and their owners: profiling switched off by name and by rule, approval, over several servers."""

import json
import os
import subprocess
import unittest

from pprof import Profile
from server import HEARTH, Cluster, RpcError, Server, eventually, now_ms
from test_access import AccessServer, bearer

SERVICE = "hearth.v1.ApplicationService/"


class Applications(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.servers = [Server("--multitenancy", database_url=cls.cluster.url()) for _ in range(2)]

    @classmethod
    def tearDownClass(cls):
        for server in cls.servers:
            server.stop()
        cls.cluster.stop()

    def setUp(self):
        self.tenant = self.id().rsplit(".", 1)[1][:60]

    def push(self, service, server=None, **labels):
        profile = Profile([("cpu", "nanoseconds")], time_ns=now_ms() * 1_000_000).add(["main"], [7]).encode()
        (server or self.servers[0]).push(profile, {"__name__": "process_cpu", "service_name": service, **labels},
                                         metadata=[("x-scope-orgid", self.tenant)])

    def refused(self, service, part, server=None, **labels):
        with self.assertRaises(RpcError) as caught:
            self.push(service, server, **labels)
        self.assertEqual(caught.exception.code, "permission_denied")
        self.assertIn(part, caught.exception.message)

    def is_refused(self, *arguments, **labels):
        try:
            self.push(*arguments, **labels)
        except RpcError as error:
            return error.code == "permission_denied"
        return False

    def ask(self, method, server=None, **fields):
        return (server or self.servers[0]).connect(SERVICE + method, fields, {"X-Scope-OrgID": self.tenant})

    def names(self, server=None):
        return [a["name"] for a in self.ask("List", server).get("applications", [])]

    def discarded(self, reason):
        return sum(s.metrics()[("hearth_discarded_total", (("reason", reason),))] for s in self.servers)

    def test_a_service_that_is_described_before_its_first_profile_is_approved(self):
        self.ask("Set", name="early", owner="team shop")
        self.assertTrue(self.ask("Get", name="early")["approved"])
        self.ask("Set", name="refused", approved=False)
        self.assertFalse(self.ask("Get", name="refused").get("approved", False))

    def test_a_service_is_listed_with_its_owners_annotations(self):
        self.push("api")
        self.push("web", self.servers[1])
        eventually(lambda: self.names() == ["api", "web"])
        self.ask("Set", name="api", owner="team shop", description="checkout", updatedBy="me")
        found = self.ask("Get", self.servers[1], name="api")
        self.assertEqual((found["owner"], found["description"], found["updatedBy"], found["approved"]),
                         ("team shop", "checkout", "me", True))
        self.assertGreaterEqual(int(found["lastSeenMs"]), int(found["firstSeenMs"]))

        # Unset fields keep their values; a service may be set before it is seen.
        self.ask("Set", name="api", owner="team pay")
        self.assertEqual(self.ask("Get", name="api")["description"], "checkout")
        self.ask("Set", name="later", owner="x")
        self.assertEqual(self.names(), ["api", "later", "web"])
        self.ask("Delete", name="later")
        self.assertEqual(self.names(), ["api", "web"])
        for method, fields in (("Get", {"name": "later"}), ("Delete", {"name": "later"})):
            with self.assertRaises(RpcError) as caught:
                self.ask(method, **fields)
            self.assertEqual(caught.exception.code, "not_found")

    def test_a_service_that_is_off_is_refused_by_all_servers_and_counted(self):
        before = self.discarded("application_off")
        self.ask("Set", name="api", profiling="PROFILING_OFF")
        self.refused("api", 'profiling of "api" is switched off')
        eventually(lambda: self.is_refused("api", self.servers[1]))
        self.push("web")
        self.assertGreaterEqual(self.discarded("application_off") - before, 2)
        errors = eventually(lambda: self.servers[0].connect("hearth.v1.AdminService/IngestErrors", {}, {"X-Scope-OrgID": self.tenant}).get("errors"))
        self.assertEqual(errors[0]["code"], "permission_denied")

        self.ask("Set", name="api", profiling="PROFILING_ON")
        self.push("api")
        eventually(lambda: not self.is_refused("api", self.servers[1]))

    def test_the_last_rule_that_matches_decides_unless_the_service_has_its_own_switch(self):
        self.ask("SetRule", name="1", labelSelector='{env=~"dev|test"}', profiling="PROFILING_OFF", updatedBy="me")
        self.refused("api", "switched off", env="dev")
        self.push("api", env="prod")
        self.ask("SetRule", name="2", labelSelector='{service_name="api"}', profiling="PROFILING_ON")
        self.push("api", env="dev")
        self.refused("web", "switched off", env="dev")
        self.ask("Set", name="web", profiling="PROFILING_ON")
        self.push("web", env="dev")
        self.assertEqual([r["name"] for r in self.ask("ListRules", self.servers[1])["rules"]], ["1", "2"])
        self.ask("DeleteRule", name="2")
        self.refused("api", "switched off", env="dev")
        for fields in ({"name": "x", "labelSelector": "{", "profiling": "PROFILING_OFF"},
                       {"name": "x", "labelSelector": '{__name__="a"}', "profiling": "PROFILING_OFF"},
                       {"name": "x", "labelSelector": "{}"}, {"name": "", "labelSelector": "{}", "profiling": "PROFILING_ON"}):
            with self.assertRaises(RpcError) as caught:
                self.ask("SetRule", **fields)
            self.assertEqual(caught.exception.code, "invalid_argument")

    def test_a_new_service_waits_for_approval(self):
        self.push("old")
        eventually(lambda: self.names() == ["old"])
        before = self.discarded("not_approved")
        self.servers[0].connect("hearth.v1.AdminService/SetLimits", {"changes": [{"name": "require-approval", "value": "true"}]},
                                {"X-Scope-OrgID": self.tenant})
        self.push("old")
        self.refused("new", '"new" waits for approval')
        eventually(lambda: self.names() == ["new", "old"])
        self.assertFalse(self.ask("Get", name="new").get("approved", False))
        self.refused("new", "waits for approval")
        self.assertGreaterEqual(self.discarded("not_approved") - before, 2)
        self.ask("Set", self.servers[1], name="new", approved=True)
        eventually(lambda: not self.is_refused("new"))
        eventually(lambda: not self.is_refused("new", self.servers[1]))
        self.ask("Set", name="new", approved=False)
        self.refused("new", "waits for approval")

    def test_applications_are_changed_from_the_command_line(self):
        def hearth(*words, code=0):
            done = subprocess.run([HEARTH, "--url", "http://127.0.0.1:%d" % self.servers[0].port, "--tenant", self.tenant, "admin",
                                   "applications", *words], capture_output=True, text=True, env={**os.environ, "USER": "me"})
            self.assertEqual(done.returncode, code, done.stderr)
            return done.stdout

        hearth("set", "api", "--owner", "team shop", "--profiling", "off", "--approve")
        self.assertRegex(hearth(), r"api +off +yes +never +team shop")
        self.assertEqual(json.loads(hearth("show", "api", "-o", "json"))["updatedBy"], "me")
        hearth("rule", "add", "dev", '{env="dev"}', "--profiling", "off")
        self.assertRegex(hearth("rule", "list"), r'\ndev +off +\{env="dev"\}')
        hearth("rule", "delete", "dev")
        self.assertEqual(hearth("rule", "list"), "")
        hearth("delete", "api")
        hearth("set", "api", "--profiling", "maybe", code=2)
        hearth("rule", "add", "x", code=2)


class NarrowedCallers(unittest.TestCase):
    """A caller whose grant has a selector."""

    @classmethod
    def setUpClass(cls):
        cls.hearth = AccessServer()
        cls.root = bearer(cls.hearth.token(("red", "admin"))["token"])
        cls.narrowed = bearer(cls.hearth.token(("red", "admin", '{team="shop"}'))["token"])
        for service, team in (("cart", "shop"), ("ledger", "bank")):
            profile = Profile([("cpu", "nanoseconds")], time_ns=now_ms() * 1_000_000).add(["main"], [7]).encode()
            labels = {"__name__": "process_cpu", "service_name": service, "team": team}
            cls.hearth.server.push(profile, labels, metadata=[("authorization", cls.root["Authorization"])])
        eventually(lambda: len(cls.ask("List", cls.root)[1].get("applications", [])) == 2)

    @classmethod
    def tearDownClass(cls):
        cls.hearth.stop()

    @classmethod
    def ask(cls, method, headers, service=SERVICE, **fields):
        return cls.hearth.post("/" + service + method, fields, headers)[::2]

    def test_narrowed_users_see_the_applications_of_their_services(self):
        names = [a["name"] for a in self.ask("List", self.narrowed)[1]["applications"]]
        self.assertEqual(names, ["cart"])
        self.assertEqual(self.ask("Get", self.narrowed, name="cart")[0], 200)
        hidden, unknown = (self.ask("Get", self.narrowed, name=name) for name in ("ledger", "nobody"))
        self.assertEqual((hidden[0], hidden[1]["message"].replace("ledger", "nobody")), (404, unknown[1]["message"]))

    def test_narrowed_users_change_no_applications_of_other_services(self):
        self.assertEqual(self.ask("Set", self.narrowed, name="cart", owner="shop")[0], 200)
        self.assertEqual(self.ask("Set", self.narrowed, name="ledger", profiling="PROFILING_OFF")[0], 403)
        self.assertEqual(self.ask("Delete", self.narrowed, name="ledger")[0], 404)
        self.assertEqual(self.ask("Get", self.root, name="ledger")[1].get("owner", ""), "")

    def test_narrowed_users_neither_see_nor_change_rules_and_the_tenants_usage(self):
        rule = {"name": "all", "labelSelector": '{team="bank"}', "profiling": "PROFILING_ON"}
        self.assertEqual(self.ask("SetRule", self.root, **rule)[0], 200)
        self.assertEqual(self.ask("ListRules", self.narrowed), (200, {}))
        self.assertEqual(self.ask("SetRule", self.narrowed, **rule)[0], 403)
        self.assertEqual(self.ask("DeleteRule", self.narrowed, name="all")[0], 403)
        self.assertEqual(self.ask("Usage", self.narrowed, service="hearth.v1.AdminService/")[0], 403)
        self.assertEqual(self.ask("Usage", self.root, service="hearth.v1.AdminService/")[0], 200)


if __name__ == "__main__":
    unittest.main()
