"""What the probe suite knows of the server: its methods and routes, read from the tables that make them, and its roles."""

import collections
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FRONT = ROOT / "server/front"

# One RPC or route. kind: "rpc" or the HTTP method; right and flags as in the tables.
Target = collections.namedtuple("Target", "kind path right flags")

# Open to everybody for themselves; a probe names nobody, so an administrator is needed.
OWN = {"/hearth.v1.AccessService/SetPassword"}

# What each role may do: written down here again, so that a change of the server's table is noticed.
ROLES = {
    "ingest": {"INGEST"},
    "viewer": {"READ"},
    "profiler": {"READ", "TASK"},
    "editor": {"READ", "TASK", "EDIT", "INGEST"},
    "admin": {"READ", "TASK", "EDIT", "INGEST", "ADMIN"},
}


def targets():
    """Every RPC and route of the server."""
    out = []
    row = r'^(?:X|UNARY)\(\w+, "([^"]+)", "([^"]+)", \w+, \w+, \w+, \w+, (\w+), ([\w |]+)\)$'
    for service, method, right, flags in re.findall(row, (FRONT / "methods.def").read_text(), re.M):
        out.append(Target("rpc", "/%s/%s" % (service, method), right, set(flags.split(" | "))))
    row = r'^X\(\w+, "([^"]+)", (\w+), \w+, \w+, (\w+), ([\w |]+)\)$'
    for path, method, right, flags in re.findall(row, (FRONT / "http_routes.def").read_text(), re.M):
        out.append(Target(method, path, right, set(flags.split(" | "))))
    for path, right in re.findall(r'^ROUTE\("([^"]+)", \w+, (\w+)\)$', (FRONT / "http/instant_routes.def").read_text(), re.M):
        out.append(Target("GET", path, right, set()))
    return out


def lines():
    """The number of rows in the tables: a row that targets() cannot read is missed otherwise."""
    text = "".join((FRONT / name).read_text() for name in ("methods.def", "http_routes.def", "http/instant_routes.def"))
    return len(re.findall(r"^(?:X|UNARY|ROUTE)\(", text, re.M))


def scope(target):
    """Where the role is needed: "tenant", "some" tenant, or the "server" as a whole."""
    if "HEARTH_METHOD_TENANT" in target.flags:
        return "tenant"
    return "some" if "HEARTH_METHOD_SOME_TENANT" in target.flags else "server"


def may(target, roles, everywhere):
    """Whether a caller with these roles in the tenant (everywhere: in all tenants) is let in."""
    if target.path in OWN:
        return everywhere and "admin" in roles
    if target.right in ("PUBLIC", "ANY"):
        return True
    return any(target.right in ROLES[role] for role in roles) and (everywhere or scope(target) != "server")
