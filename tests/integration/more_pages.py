"""Pages that need what agents report, for tests that look at every page: (path, parameters) of the service "shop"."""

import directing_data

SHOP = {"q": '{service_name="shop"}'}
MORE_PAGES = [
    ("/compare", {**SHOP, "from": "now-27m"}),
    ("/function", {**SHOP, "function": "encode", "history": "range"}),
    ("/heatmap", SHOP),
    ("/policies", {}),
    ("/policies", {"service": "shop"}),
    ("/network", {"service": "shop", "instance": "pod-1"}),
    ("/adhoc", {"part": "store"}),
    *(("/admin", {"part": part}) for part in ("applications", "limits", "retention", "deletion", "access", "queries")),
]


def fill_more(server):
    directing_data.fill_policy(server, hours=0.1)
    directing_data.fill_network(server)
