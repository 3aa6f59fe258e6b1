#!/usr/bin/env python3
"""gen_docs.py ROOT [--check] -- the reference pages that derive from the .def tables.

Without --check the pages are written. With --check nothing is written; these faults are reported, and the exit
code is 1 if there are any:

- a generated page that differs from its table
- a hand-written page that leaves out an option, a command or a method
- a relative link to a file or heading, or a source file in backticks, that does not exist
- a page below docs/ that docs/README.md does not link to
- a line of prose that is wider than 120 columns
"""
import pathlib
import re
import sys
import textwrap

WIDTH = 118
WIDEST = 120
STRING = r'"((?:[^"\\]|\\.)*)"'
KINDS = {
    "TEXT": "text", "SECRET": "secret text", "TOKEN": "secret text", "LIST": "list", "INT": "whole number", "BYTES": "bytes",
    "DURATION": "duration", "BOOL": "true or false",
}


def mark(source):
    return f"<!-- Made by tests/lint/gen_docs.py from {source}. Do not edit; run it again. -->\n\n"


def unquote(text):
    return text.replace('\\"', '"').replace("\\\\", "\\")


def rows(text, pattern):
    """Fields of every line that begins with X(, R(, G( or UNARY(; a line that the pattern does not fit is an error."""
    for line in text.splitlines():
        if line.startswith(("X(", "R(", "G(", "UNARY(")):
            match = re.fullmatch(pattern, re.sub(r"\)\s*/\*.*\*/$", ")", line))
            if match is None:
                sys.exit(f"gen_docs: cannot read this line of a table: {line}")
            yield [unquote(field) if field is not None else None for field in match.groups()]


def bullet(head, body):
    return textwrap.fill(f"- {head}: {body}", WIDTH, subsequent_indent="  ", break_long_words=False,
                         break_on_hyphens=False) + "\n"


def options(root):
    table = (root / "include/hearth/app/options.def").read_text()
    out = "# Options of hearthd\n\n" + mark("include/hearth/app/options.def") + """\
Each option can be given in three places. Later ones win: the file (`--config FILE`, or `HEARTH_CONFIG`), the
environment, the flag. `--max-samples 5` is `HEARTH_MAX_SAMPLES=5` in the environment. The file is YAML with a section
for each group of options below:

```yaml
listening:
  listen: [127.0.0.1:4040]
ingest:
  max-samples: 5
  max-profile-bytes: 16m
limits:
  profile: pyroscope   # the flag --limits.profile
```

An unknown key, a key that is set twice, and a wrong value are errors that name source and line; hearthd prints all of
them, with the option that was probably meant. The form of earlier versions, lines of `max-samples = 5` without
sections, is still read: it is assumed if the first line has a `=` and no `:` before it. A secret is masked by
`--print-config`. [hearthd.yaml](hearthd.yaml) is a file with all options and their defaults, to begin with.

Bytes take `k`, `m`, `g` (powers of 1024). Durations look like `500ms`, `90s`, `7d`. Lists repeat the flag or use
commas. A limit of 0 means none, unless its text says otherwise. What each limit does: [limits.md](limits.md).

Without a value: `--help`, `--help-all` (with all options), `--version`, `--print-config` (the
effective configuration, as a file).

Three commands take the same options, do one thing and exit. `hearthd check-config` checks them and the files that they
name: 0 if they are valid, otherwise 2, with all mistakes; `check-config --origin` also prints the options that are set,
and where. `hearthd migrate --database-url URL` brings the schema up to date, as hearthd does when it starts; with
`--dry-run` after `migrate`, it prints the missing migrations, and exits with 1 if there are any. `hearthd scale-out
--database-url URL` [distributes the tables that grow](../how-to/scale-out.md) over the nodes of Citus, while no server
runs; with `--dry-run` after `scale-out`, it prints what would move, and exits with 1 if something would.

## Signals

| signal | hearthd |
|---|---|
| SIGTERM, SIGINT | stops in order: finishes requests and commits within `--shutdown-timeout`, then stops its PostgreSQL. A second one ends it at once |
| SIGHUP, because its terminal was closed | the same. `nohup`, `setsid` and service managers keep it running |
| SIGHUP otherwise (`kill -HUP`, `systemctl reload hearthd`) | reads the configuration again: [below](#reload) |

## Reload

On SIGHUP, hearthd reads file, environment and flags again. Options marked with *reload* take their new values, all at
once; requests that are being answered may end with the old ones. New contents of the files of [TLS](../how-to/tls.md)
are loaded, and [scraping](../how-to/scrape.md) begins again if its file has changed. The other options keep their
values: the log names those that have changed (`needs_restart`), `/ready` says so while it answers 200, and
`hearth_config_options_awaiting_restart` counts them.

Secrets are read again from the configuration file and from their own files: `--agent-token-file`,
`--admin-token-file`, `--oidc-client-secret-file`. If hearthd's user cannot read such a file any more, that is a
warning, and its secret stays. Secrets in flags and in the environment need a restart: hearthd has overwritten them
there. So do database URLs; one that has changed is named like other options that wait.

The issuers of OpenID Connect are those of the new options, and their keys are fetched again; the known ones hold until
then.

`hearth admin doctor` reads file, environment and flags at once and shows, as `options that are not in effect`, which
values SIGHUP would apply, which a restart, and what is in effect instead.

If there is a mistake anywhere, nothing changes: the log names each mistake, `/ready` says so while it answers 200, and
`hearth_config_last_reload_successful` is 0.
"""
    pattern = rf'(?:G\({STRING}, {STRING}\)|([XR])\((\w+), ([\w.]+), {STRING}, {STRING}, {STRING}\))'
    for group, section, row, kind, _, flag, default, text in rows(table, pattern):
        if group is not None:
            out += f"\n## {group}\n\nIn the file: section `{section}`.\n\n"
        else:
            shown = f", `{default}`" if default else ""
            live = ", reload" if row == "R" else ""
            variable = "HEARTH_" + re.sub("[-.]", "_", flag).upper()
            out += bullet(f"**`--{flag}`** `{variable}` ({KINDS[kind]}{shown}{live})", text)
    return out


def yaml_text(text):
    """As hearthd prints it: quoted unless YAML reads it as itself."""
    return text if re.fullmatch(r"[\w./+][\w./:+-]*", text, re.A) and text != "null" else '"%s"' % text


def yaml_example(root):
    table = (root / "include/hearth/app/options.def").read_text()
    out = """\
# hearthd.yaml: all options of hearthd with their defaults. Remove the # before an option, change its value, and check
# the file with: hearthd check-config --config FILE
# Options marked with (reload) take a new value on SIGHUP; others need a restart.
#
# Made by tests/lint/gen_docs.py from include/hearth/app/options.def. Do not edit; run it again.
"""
    pattern = rf'(?:G\({STRING}, {STRING}\)|([XR])\((\w+), ([\w.]+), {STRING}, {STRING}, {STRING}\))'
    for group, section, row, kind, _, flag, default, text in rows(table, pattern):
        if group is not None:
            out, prefix = out + f"\n# {group}\n{section}:\n", section + "."
            continue
        if kind == "LIST":
            value = "[%s]" % ", ".join(yaml_text(item) for item in default.split(",") if item)
        else:
            value = yaml_text(default)
        help_text = text + (" (reload)" if row == "R" else "")
        out += textwrap.fill(help_text, WIDTH, initial_indent="  # ", subsequent_indent="  # ",
                             break_long_words=False, break_on_hyphens=False)
        out += f"\n  #{flag.removeprefix(prefix)}: {value}\n"
    return out


def cli_options(root):
    """Usage and options of each command of the client; options that nearly all share stand above."""
    table = (root / "clients/cli/options.def").read_text()
    plain = lambda text: text.replace('\\"', '"').replace("|", "\\|")
    field = rf"(?:{STRING}|NULL)"
    rows_of = re.findall(rf'^OPTION\({STRING}, (\w+), [\w.\[\]]+, {STRING}, {field}, {field}, {field}, {STRING}\)$', table, re.M)
    sets = dict(re.findall(rf"^SET\({STRING}, {STRING}\)$", table, re.M))

    versions = dict(re.findall(rf"^SINCE\({STRING}, {STRING}\)$", (root / "clients/cli/since.def").read_text(), re.M))
    since = lambda name: versions.get(name, versions[""])
    commands = (root / "clients/cli/commands.def").read_text()
    known = {"", *(row[2] for row in rows_of), *re.findall(rf"^COMMAND\({STRING}", commands, re.M)}
    if not versions.keys() <= known:
        sys.exit(f"gen_docs: since.def names no command and no option: {sorted(versions.keys() - known)}")

    def spelled(brief, flag, value):
        return (f"`{brief}`, " if brief else "") + f"`{flag}{' ' + value if value else ''}`"

    def listed(keys):
        out = "| option | values | | since |\n|---|---|---|---|\n"
        for key, _, flag, brief, value, values, text in rows_of:
            if key in keys:
                shown = "" if values.startswith("@") else ", ".join(f"`{one}`" for one in values.split("|") if one)
                out += f"| {spelled(brief, flag, value).replace('|', chr(92) + '|')} | {shown} | {plain(text)} | {since(flag)} |\n"
        return out

    out = "# Commands and options of hearth\n\n" + mark("clients/cli/commands.def, clients/cli/options.def, clients/cli/since.def") + """\
What `hearth COMMAND --help` prints. What the commands do: [cli.md](cli.md). A command refuses options that are not
listed with it.

## Connection

Options of all commands that make a request:

""" + listed(sets["net"].split()) + """
## Times

""" + listed(sets["range"].split()) + """
## Filters

Samples must match all of them:

""" + listed(sets["stacks"].split())
    pattern = rf'^(?:SECTION\({STRING}\)|COMMAND\({STRING}, {STRING}, \w+, \w+, \w+, \w+, {STRING}, {STRING}, {STRING}, {STRING}\))$'
    for title, words, arguments, keys, text, one, two in re.findall(pattern, commands, re.M):
        if title:
            out += f"\n## {title}\n"
            continue
        own, shared = [], []
        for key in keys.split():
            own += sets[key[1:]].split() if key.startswith("@") and key != "@net" else [key] if key != "@net" else []
        if "function" in own:
            shared.append("[filters](#filters)")
            own = [key for key in own if key not in sets["stacks"].split()]
        if set(sets["range"].split()) <= set(own):
            shared.append("[times](#times)")
            own = [key for key in own if key not in sets["range"].split()]
        if "@net" in keys.split():
            shared.append("[connection](#connection)")
        if "sizing" in own:
            shared.append("[inputs of the calculator](cli.md#admin)")
        out += f"\n### `hearth {words}{' ' + arguments if arguments else ''}`\n\n{text[0].upper() + text[1:]}. Since {since(words)}.\n"
        if any(row[0] in own for row in rows_of):
            out += "\n" + listed(own)
        if shared:
            out += "\nAlso " + ", ".join(shared) + ".\n"
        out += "\n```sh\n%s\n%s\n```\n" % tuple(example.replace('\\"', '"') for example in (one, two))
    return out


def cli_columns(root):
    """The columns of each table of the client."""
    source = "clients/cli/output/columns.def"
    kinds = {
        "TEXT": "text", "ID": "text", "COUNT": "whole number", "VALUE": "number, in the unit of `unit`", "DURATION": "nanoseconds",
        "BYTES": "bytes", "PERCENT": "number from 0 to 100", "TIME": "RFC 3339, UTC", "CLOCK": "RFC 3339, UTC",
        "POINTS": "number, in points of a percentage", "CHANCE": "number from 0 to 1", "FLAG": "true or false", "BAR": "bar, in tables only",
    }
    whens = {"ALWAYS": "", "IF_ANY": "if any row has it", "IF_VARIES": "if rows differ in it, or with `-o wide`", "IF_WIDE": "with `-o wide`"}
    out = "# Columns of the tables of hearth\n\n" + mark(source) + """\
The columns of `-o table`, `wide`, `jsonl`, `csv`, `tsv` and `yaml`, in their order: [formats](cli.md#tables). Names and
kinds are a contract: a column may be added, but is not renamed, and its kind does not change.

The kind is that of `jsonl`, `csv`, `tsv` and `yaml`, which have all columns; tables show units. *Table*: when a table
has the column, if it has not always.
"""
    for line in (root / source).read_text().splitlines():
        table = re.fullmatch(rf"TABLE\({STRING}\)", line)
        column = re.fullmatch(rf"COLUMN\({STRING}, (\w+), {STRING}, (\w+), {STRING}, {STRING}\)", line)
        if table:
            names = table.group(1).split("|")
            out += f"\n## `hearth {names[0]}`\n\n"
            out += "Also of " + ", ".join(f"`{name}`" for name in names[1:]) + ".\n\n" if names[1:] else ""
            out += "| column | kind | table | |\n|---|---|---|---|\n"
        elif column:
            name, kind, _, when, _, text = column.groups()
            out += f"| `{name}` | {kinds[kind]} | {whens[when]} | {text} |\n"
        elif line.startswith(("TABLE(", "COLUMN(")):
            sys.exit(f"gen_docs: cannot read this line of {source}: {line}")
    return out


def metrics(root):
    table = (root / "include/hearth/base/metrics.def").read_text()
    out = "# Metrics of hearthd\n\n" + mark("include/hearth/base/metrics.def") + """\
`GET /metrics` serves these metrics in base units (seconds, bytes): as OpenMetrics 1.0 to clients that accept
`application/openmetrics-text`, as Prometheus does, and as Prometheus text 0.0.4 to others. In OpenMetrics, the buckets
of `hearth_request_seconds` have exemplars: the latest request that fell into the bucket and whose caller records its
trace, by `trace_id`.

The first 200 values of a label have lines of their own; the others are counted under `other`. Counters have a line
with 0 for each known value from the start, so that `rate()` sees the first event, too; those of
`hearth_method_errors_total` appear with the first error of their method. Histograms have buckets from 0.5 ms to 60 s.

"""
    for _, kind, name, label, text in rows(table, rf'(?:X|UNARY)\((\w+), (\w+), {STRING}, {STRING}, {STRING}\)'):
        labels = " and ".join(f"`{one}`" for one in label.split(","))
        shown = f", label{'s' if ',' in label else ''} {labels}" if label else ""
        out += bullet(f"**`{name}`** ({kind.lower().removesuffix('_ns')}{shown})", text)
    return out


def errors(root):
    statuses = (root / "include/hearth/base/status.def").read_text()
    discards = (root / "include/hearth/engine/discards.def").read_text()
    out = "# Errors, and what is dropped\n\n" + mark("base/status.def and engine/discards.def") + """\
Every failure has one status and one sentence that says what is wrong and where. By gRPC it is `grpc-status` and
`grpc-message`; by HTTP the status code and `{"code": ..., "message": ...}`. If a label selector cannot be read, the
answer by HTTP also has [details](https://connectrpc.com/docs/protocol/#error-end-stream) with a
`hearth.v1.SelectorError`: the byte at which reading stopped.

| status | gRPC | HTTP | code | meaning |
|---|---|---|---|---|
"""
    for name, _, grpc, http, code, text in rows(statuses, rf'(?:X|UNARY)\((\w+), (\d+), (\d+), (\d+), {STRING}, {STRING}\)'):
        out += f"| {name} | {grpc} | {http} | `{code}` | {text} |\n"
    out += """
Try again after UNAVAILABLE: the answer carries `Retry-After: 1`, by gRPC `grpc-retry-pushback-ms: 1000`. A
RESOURCE_EXHAUSTED because the disk is full carries 30 s instead; one that names `ingest-rate-bytes` passes with time.
Other errors repeat until the request or the configuration changes.

An answer with status OK may lack something: its [notes](api-transports.md#notes) say so. One that lacks whole services,
because a node of the database does not answer, has a note that begins with `partial: `.

## What a push loses without failing

Dropped data is counted in `hearth_discarded_total{reason="..."}`, and returned with each push as
`hearth-dropped: reason=count, ...` (response header; by gRPC initial metadata). The unit is in the table. The header
also counts `repeated_profiles`, which were [stored before](api-push.md#push) under their ID; their metric is
`hearth_profiles_repeated_total`.

| reason | counts |
|---|---|
"""
    for _, name, text in rows(discards, rf'(?:X|UNARY)\((\w+), {STRING}, {STRING}\)'):
        out += f"| `{name}` | {text} |\n"
    return out


# The page of each service, and the paragraphs of the entry page that follow its table.
API_PAGES = {
    "push.v1.PusherService": "api-push.md",
    "querier.v1.QuerierService": "api-querier.md",
    "hearth.v1.QueryService": "api-query.md",
    "hearth.v1.TraceProfileService": "api-spans.md",
    "hearth.v1.ProfileService": "api-profiles.md",
    "hearth.v1.ProcessService": "api-tasks.md#agents",
    "hearth.v1.TaskService": "api-tasks.md#tasks",
    "hearth.v1.PolicyService": "api-tasks.md#policies",
    "hearth.v1.NetworkService": "api-tasks.md#network",
    "settings.v1.SettingsService": "api-clients.md#settings",
    "settings.v1.RecordingRulesService": "api-clients.md#recording-rules",
    "hearth.v1.UploadService": "api-uploads.md",
    "adhocprofiles.v1.AdHocProfileService": "api-clients.md#ad-hoc-profiles",
    "hearth.v1.AdminService": "api-admin.md#admin",
    "hearth.v1.AccessService": "api-access.md",
    "hearth.v1.ApplicationService": "api-admin.md#applications",
    "version.v1.Version": "api-admin.md#about-the-server",
    "capabilities.v1.FeatureFlagsService": "api-admin.md#about-the-server",
    "vcs.v1.VCSService": "api-admin.md#about-the-server",
    "grpc.health.v1.Health": "api-admin.md#health-and-plain-routes",
    "grpc.reflection.v1.ServerReflection": "api-admin.md#about-the-server",
    "grpc.reflection.v1alpha.ServerReflection": "api-admin.md#about-the-server",
    "opentelemetry.proto.collector.trace.v1.TraceService": "otlp.md",
    "opentelemetry.proto.collector.profiles.v1development.ProfilesService": "otlp-profiles.md",
}


def method_rows(root):
    """(service, method, flags) of every RPC, in the order of the table."""
    table = (root / "server/front/methods.def").read_text()
    for row in rows(table, rf'(?:X|UNARY)\((\w+), {STRING}, {STRING}, (\w+), (\w+), (\w+), (\w+), \w+, ([\w |]+)\)'):
        yield row[1], row[2], row[7]


RIGHTS = {
    "PUBLIC": "nothing", "ANY": "any role", "INGEST": "ingest", "READ": "viewer", "TASK": "profiler", "EDIT": "editor",
    "ADMIN": "admin",
}


def where(flags):
    """In which tenants a caller needs the role."""
    if "METHOD_TENANT" in flags:
        return "the request's"
    return "some" if "SOME_TENANT" in flags else "all"


def rights(root):
    front = root / "server/front"
    found = []
    for row in rows((front / "methods.def").read_text(),
                    rf'(?:X|UNARY)\((\w+), {STRING}, {STRING}, (\w+), (\w+), (\w+), (\w+), (\w+), ([\w |]+)\)'):
        found.append((f"`{row[1]}/{row[2]}`", row[7], row[8]))
    for row in rows((front / "http_routes.def").read_text(), rf'X\((\w+), {STRING}, (\w+), (\w+), (\w+), (\w+), ([\w |]+)\)'):
        found.append((f"{row[2]} `{row[1]}`", row[5], row[6]))
    for path, right in re.findall(r'^ROUTE\("([^"]+)", \w+, (\w+)\)', (front / "http/instant_routes.def").read_text(), re.M):
        found.append((f"GET `{path}`", right, ""))
    out = "# Rights\n\n" + mark("server/front/*.def, include/hearth/model/roles.def") + """\
What a caller needs for each method and route, where a listener [asks who calls](authentication.md). Roles are given in
a tenant; a method that concerns the server as a whole needs its role in all tenants (`*`).

`hearth.v1.AdminService/Status` answers any viewer, but tells figures of the whole database (sizes of tables, late
profiles, deletions, the oldest profile, the server that builds) only to administrators of all tenants.

| role | may |
|---|---|
"""
    for row in rows((root / "include/hearth/model/roles.def").read_text(), rf'X\((\w+), {STRING}, ([\w() |]+), {STRING}\)'):
        out += f"| {row[1]} | {row[3]} |\n"
    out += "\n| method or route | needs at least | in which tenants | in the audit log |\n|---|---|---|---|\n"
    for name, right, flags in found:
        needs_none = right == "PUBLIC" or right == "ANY" and "METHOD_TENANT" not in flags
        out += f"| {name} | {RIGHTS[right]} | {'' if needs_none else where(flags)} | {'yes' if 'AUDIT' in flags else ''} |\n"
    return out + """
Every role but ingest may read; admin and editor may also ingest. Datadog's agent routes whose data is dropped
([datadog.md](datadog.md)) need nothing. Refused requests are in the audit log, too.
"""


def api_page_of(service):
    if service.startswith("skywalking."):
        return "skywalking.md#services"
    if service not in API_PAGES:
        sys.exit(f"gen_docs: API_PAGES names no page for the service {service}")
    return API_PAGES[service]


def api(root):
    services = {}
    for service, method, flags in method_rows(root):
        services.setdefault(service, []).append(method + (" (gRPC only)" if "HEARTH_METHOD_INLINE" in flags else ""))
    order = list(API_PAGES) + sorted(name for name in services if name.startswith("skywalking."))
    out = "# The API\n\n" + mark("server/front/methods.def") + """\
Hearth speaks the wire protocols of Pyroscope's SDKs, of Grafana's Pyroscope data source, of SkyWalking's agents and of
OpenTelemetry's span exporters, in the versions of [proto/](../../proto/README.md). These pages say what a call does:

| page | covers |
|---|---|
| [Transports, tenants and notes](api-transports.md) | gRPC, Connect, gRPC-Web, JSON; headers; what answers have in common |
| [Pushing profiles](api-push.md) | Push, `/ingest`: each step from bytes to rows |
| [Queries of Pyroscope](api-querier.md) | flame graphs, series, heatmaps, pprof, gauges, plain HTTP |
| [Queries of Hearth](api-query.md) | selections, tables of functions, sandwich, lines, timelines of functions, explain |
| [Spans and traces](api-spans.md) | from spans to profiles and back |
| [Uploads as a list](api-profiles.md) | each pushed profile: found by labels and time, counted, opened by its id |
| [Agents, tasks, policies and network](api-tasks.md) | directing profilers and reading their results |
| [Settings, recording rules, ad hoc profiles](api-clients.md) | data that clients keep on the server |
| [Administration and health](api-admin.md) | deletion, retention, limits, health, plain routes, reflection |
| [Who may call](api-access.md), [credentials](authentication.md), [rights](rights.md) | tokens, users, grants, the audit log |
| [SkyWalking's agents](skywalking.md), [OpenTelemetry](otlp.md) | their services and routes |

Errors and their numbers: [errors.md](errors.md). Limits: [limits.md](limits.md). What differs from Pyroscope:
[pyroscope-compatibility.md](pyroscope-compatibility.md).

## Methods

| service | methods | page |
|---|---|---|
"""
    for service in order:
        page = api_page_of(service)
        out += f"| `{service}` | {', '.join(services.pop(service))} | [{page.split('#')[0].removesuffix('.md')}]({page}) |\n"
    for service in services:
        sys.exit(f"gen_docs: the service {service} is missing from the table of {__file__}")
    return out + """
The methods of `vcs.v1.VCSService` are declared and unimplemented.

## Not offered yet

- profiles by OTLP; speedscope
- debuginfo; source code (`vcs.v1`)
- asynchronous queries
- exemplars of profiles that are past `retain-raw` (a note says so)
- Connect over HTTP/2 and by GET

Unknown paths are answered with 404, unknown gRPC methods with unimplemented.
"""


def limits_profile(root):
    theirs = (root / "include/hearth/app/limits_pyroscope.def").read_text()
    table = (root / "include/hearth/app/options.def").read_text()
    ours = dict(re.findall(rf'[XR]\(\w+, [\w.]+, {STRING}, {STRING}', table))
    out = "# Limits of Pyroscope\n\n" + mark("include/hearth/app/limits_pyroscope.def") + """\
`--limits.profile=pyroscope` (`HEARTH_LIMITS_PROFILE`) starts from these values instead of Hearth's own. An option that
is set, in the file, the environment or by flag, takes precedence over both profiles, and so do a tenant's own limits.
Limits that are not listed have no counterpart. What each limit does: [limits.md](limits.md).

| option | hearth | pyroscope | its flag there |
|---|---|---|---|
"""
    for flag, value, name in re.findall(rf'^P\({STRING}, {STRING}, {STRING}\)', theirs, re.M):
        out += f"| `{flag}` | {ours[flag]} | {value} | `{name}` |\n"
    return out


PAGES = {"api.md": api, "rights.md": rights, "limits-profile.md": limits_profile, "options.md": options, "hearthd.yaml": yaml_example, "cli-options.md": cli_options, "cli-columns.md": cli_columns, "metrics.md": metrics, "errors.md": errors}


def missing_words(root):
    """What the hand-written pages must name: (page, word)."""
    table = (root / "include/hearth/app/options.def").read_text()
    for flag in re.findall(r'[XR]\(\w+, limits\.\w+, "([\w-]+)"', table):
        yield "docs/reference/limits.md", flag
    commands = (root / "clients/cli/commands.def").read_text()
    for words in re.findall(r'^COMMAND\("([^"]+)"', commands, re.M):
        words = words.split()
        taken = words[:2] if words[0] != "rules" else words[:1]
        yield "docs/reference/cli.md", " ".join(taken if words[0] not in ("task", "policy", "network") else words[:1])
        yield "docs/reference/cli.md", words[-1]
    sizing = (root / "clients/cli/sizing/sizing.def").read_text()
    for flag in re.findall(r'^INPUT\(\w+, "([\w-]+)"', sizing, re.M):
        yield "docs/reference/cli.md", f"`--{flag}"
    for name in ("datadog_tags", "datadog_types", "datadog_labels"):
        table = (root / f"server/format/datadog/{name}.def").read_text()
        for word in re.findall(r'^(?:RENAMED|IGNORED|KEPT)\("([^"]+)"|^TYPE\(\w+, "([^"]+)"', table, re.M):
            yield "docs/reference/datadog.md", "`%s`" % (word[0] or word[1])
    for path in re.findall(r'^QUIET\("([^"]+)"', (root / "server/front/http/quiet_routes.def").read_text(), re.M):
        yield "docs/reference/datadog.md", f"`{path}`"
    for service, method, _ in method_rows(root):
        page = f"docs/reference/{api_page_of(service).split('#')[0]}"
        yield page, service
        if not service.startswith(("vcs.", "grpc.")):
            yield page, method


def documents(root):
    for path in sorted(root.rglob("*.md")):
        if not path.relative_to(root).parts[0].startswith((".", "build")):
            yield path


def without_code(path):
    return re.sub(r"^```.*?^```", "", path.read_text(), flags=re.S | re.M)


def anchors(path):
    """What a link to this page may name: its headings, as GitHub makes anchors of them, and its own anchors."""
    text = without_code(path)
    names = set(re.findall(r'<a id="([^"]+)">', text))
    for heading in re.findall(r"^#+ (.*)$", text, flags=re.M):
        plain = re.sub(r"\]\([^)]*\)|[`*\[]", "", heading).strip().lower()
        names.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return names


def dead_links(root):
    """Relative links of all documents that lead to no file, or to no heading of it."""
    for path in documents(root):
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", without_code(path)):
            if "://" in target:
                continue
            there = path.parent / target if target else path
            if not there.exists():
                yield path.relative_to(root), target
            elif anchor and there.suffix == ".md" and anchor not in anchors(there):
                yield path.relative_to(root), f"{target}#{anchor}"


def unlisted_pages(root):
    """Pages below docs/ that the index leaves out."""
    index = root / "docs/README.md"
    listed = {(index.parent / target).resolve()
              for target in re.findall(r"\]\(([^)#\s]+)", index.read_text()) if "://" not in target}
    for path in sorted((root / "docs").rglob("*.md")):
        if path != index and path.resolve() not in listed:
            yield path.relative_to(root)


def dead_paths(root):
    """Source files that documents name in backticks, by their path from the root, and that do not exist."""
    for path in documents(root):
        for name in re.findall(r"`((?:server|include|clients|tests|docs|sql|grammar)/[\w./-]+\.\w+)`", without_code(path)):
            if not (root / name).exists():
                yield path.relative_to(root), name


def wide_lines(root):
    """Lines of prose beyond WIDEST columns. Code, tables and the targets of links may be wider."""
    for path in documents(root):
        if path.is_relative_to(root / "server"):
            continue
        in_code = False
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.lstrip().startswith("```"):
                in_code = not in_code
            shown = re.sub(r"\]\([^)]*\)|<[^>]*>", "", line)
            if not in_code and not line.startswith(("|", "#")) and len(shown) > WIDEST and " " in shown.strip():
                yield path.relative_to(root), number


def check(root):
    failed = False
    for name, make in PAGES.items():
        page = root / "docs/reference" / name
        if not page.exists() or page.read_text() != make(root):
            print(f"{page.relative_to(root)} differs from its table: run tests/lint/gen_docs.py .")
            failed = True
    for page, word in missing_words(root):
        if not (root / page).exists() or word not in (root / page).read_text():
            print(f"{page} does not mention {word}")
            failed = True
    for page, target in dead_links(root):
        print(f"{page} links to {target}, which does not exist")
        failed = True
    for page, name in dead_paths(root):
        print(f"{page} names {name}, which does not exist")
        failed = True
    for page, number in wide_lines(root):
        print(f"{page}:{number} is wider than {WIDEST} columns")
        failed = True
    for page in unlisted_pages(root):
        print(f"docs/README.md does not link to {page}")
        failed = True
    return failed


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    root = pathlib.Path(arguments[0] if arguments else ".")
    if "--check" in sys.argv[1:]:
        sys.exit(1 if check(root) else 0)
    for name, make in PAGES.items():
        (root / "docs/reference" / name).write_text(make(root))


main()
