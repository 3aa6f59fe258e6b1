"""How many services a tenant may have: neither profiles nor agents can make more, on any server."""

import unittest

import wire
from agents import Instance, Process, Rover
from pprof import Profile
from server import PUSH, RpcError, Cluster, Server, now_ms

USAGE = "hearth.v1.AdminService/Usage"


class MaxServices(unittest.TestCase):
    def test_profiles_and_agents_share_one_limit_over_all_servers(self):
        cluster = Cluster()
        self.addCleanup(cluster.stop)
        servers = [Server("--multitenancy", "--agent-tenant", "few", "--max-services", "3", database_url=cluster.url())
                   for _ in range(2)]
        for server in servers:
            self.addCleanup(server.stop)
        first, second = servers
        profile = Profile([("cpu", "nanoseconds")], time_ns=now_ms() * 1_000_000).add(["main"], [7]).encode()

        def push(server, service, tenant="few"):
            server.push(profile, {"__name__": "process_cpu", "service_name": service}, metadata=[("x-scope-orgid", tenant)])

        push(first, "a")
        Instance(second, "b", "pod").keep_alive()
        push(second, "c")

        # The fourth is refused, whoever brings it; the three are not.
        for refused in (lambda: push(first, "d"), lambda: push(second, "d"), lambda: Instance(first, "e", "pod").keep_alive(),
                        lambda: Rover(second).report(Process("f", "pod", "p"))):
            with self.assertRaises(RpcError) as caught:
                refused()
            self.assertEqual(caught.exception.code, "resource_exhausted")
            self.assertIn("the tenant has 3 services and 1 new ones would exceed the limit of 3", caught.exception.message)
        for server in servers:
            push(server, "a")
            push(server, "b")
            push(server, "d", tenant="other")
        names = "SELECT s.name FROM hearth_data.service s JOIN hearth_data.tenant t USING (tenant_id) WHERE t.name = 'few' ORDER BY 1"
        self.assertEqual(first.sql(names), [["a"], ["b"], ["c"]])

        # New services of one request are refused one by one, too.
        with self.assertRaises(RpcError) as caught:
            first.grpc_bytes(PUSH, wire.encode([
                (1, [(1, [(1, "__name__"), (2, "process_cpu")]), (1, [(1, "service_name"), (2, service)]), (2, [(1, profile)])])
                for service in ("g", "h", "i", "j", "k")]), [("x-scope-orgid", "several")])
        self.assertEqual(caught.exception.code, "resource_exhausted")
        self.assertIn("and 1 more of 5 profiles failed", caught.exception.message)
        self.assertEqual(first.sql(names.replace("few", "several")), [["g"], ["h"], ["i"]])

        # Usage shows it, and the tenant's own limit replaces the server's.
        limit = next(u for u in first.connect(USAGE, {}, {"X-Scope-OrgID": "few"})["limits"] if u["limit"] == "max-services")
        self.assertEqual((int(limit["used"]), int(limit["max"]), int(limit["refused"])), (3, 3, 1))
        first.connect("hearth.v1.AdminService/SetLimits", {"changes": [{"name": "max-services", "value": "4"}]},
                      {"X-Scope-OrgID": "few"})
        push(first, "d")


if __name__ == "__main__":
    unittest.main()
