#!/usr/bin/env python3
"""gen_docs.py ROOT [--check] -- the reference pages that derive from the .def tables.

Without --check the pages are written. With it nothing is: a page that differs from its table, a hand-written
page that leaves out an option, a command or a method, and a relative link that leads nowhere are reported,
and the exit code is 1.
"""
import pathlib
import re
import sys
import textwrap

WIDTH = 118
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
    """Fields of every line that begins with X( or G(; a line that the pattern does not fit is an error."""
    for line in text.splitlines():
        if line.startswith(("X(", "G(")):
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
environment, the flag. `--max-samples 5` is `HEARTH_MAX_SAMPLES=5` in the environment and `max-samples = 5` in the
file. An unknown key is an error that names its source and line; a secret is masked by `--print-config`.

Bytes take `k`, `m`, `g` (powers of 1024). Durations look like `500ms`, `90s`, `7d`. Lists repeat the flag or use
commas. A limit of 0 means none, unless its text says otherwise. What each limit does: [limits.md](limits.md).

Without a value: `--help`, `--version`, `--print-config` (the effective configuration, as a file).

## Signals

| signal | hearthd |
|---|---|
| SIGTERM, SIGINT | stops in order: finishes requests and commits within `--shutdown-timeout`, then stops its PostgreSQL. A second one ends it at once |
| SIGHUP, because its terminal was closed | the same. `nohup`, `setsid` and service managers keep it running |
| SIGHUP otherwise (`kill -HUP`) | reads file, environment and flags again. `log-level` takes effect at once; the log names the other options that have changed and need a restart. After an error, nothing changes |
"""
    pattern = rf'(?:G\({STRING}\)|X\((\w+), ([\w.]+), {STRING}, {STRING}, {STRING}\))'
    for group, kind, _, flag, default, text in rows(table, pattern):
        if group is not None:
            out += f"\n## {group}\n\n"
        else:
            shown = f", `{default}`" if default else ""
            out += bullet(f"**`--{flag}`** ({KINDS[kind]}{shown})", text)
    return out


def metrics(root):
    table = (root / "include/hearth/base/metrics.def").read_text()
    out = "# Metrics of hearthd\n\n" + mark("include/hearth/base/metrics.def") + """\
`GET /metrics` serves these metrics as Prometheus text 0.0.4, in base units (seconds, bytes). The first 200 values of a
label get lines of their own; the others are counted under `other`. Counters have a line with 0 for each known value from
the start, so that `rate()` sees the first event, too. Histograms have buckets from 0.5 ms to 60 s.

"""
    for _, kind, name, label, text in rows(table, rf'X\((\w+), (\w+), {STRING}, {STRING}, {STRING}\)'):
        labels = " and ".join(f"`{one}`" for one in label.split(","))
        shown = f", label{'s' if ',' in label else ''} {labels}" if label else ""
        out += bullet(f"**`{name}`** ({kind.lower().removesuffix('_ns')}{shown})", text)
    return out


def errors(root):
    statuses = (root / "include/hearth/base/status.def").read_text()
    discards = (root / "include/hearth/engine/discards.def").read_text()
    out = "# Errors, and what is dropped\n\n" + mark("base/status.def and engine/discards.def") + """\
Every failure has one status and one sentence that says what is wrong and where. By gRPC it is `grpc-status` and
`grpc-message`; by HTTP the status code and `{"code": ..., "message": ...}`.

| status | gRPC | HTTP | code | meaning |
|---|---|---|---|---|
"""
    for name, _, grpc, http, code, text in rows(statuses, rf'X\((\w+), (\d+), (\d+), (\d+), {STRING}, {STRING}\)'):
        out += f"| {name} | {grpc} | {http} | `{code}` | {text} |\n"
    out += """
Try again after UNAVAILABLE: the answer carries `Retry-After: 1`, by gRPC `grpc-retry-pushback-ms: 1000`. A
RESOURCE_EXHAUSTED because the disk is full carries 30 s instead; one that names `ingest-rate-bytes` passes with time.
The others come back until the request or the configuration changes.

## What a push loses without failing

The unit is in the meaning. Counted in `hearth_discarded_total{reason="..."}`, and returned with each push as
`hearth-dropped: reason=count, ...` (response header; by gRPC initial metadata). `repeated_profiles` there are profiles that
were [stored before](../api.md#push) under their ID; their metric is `hearth_profiles_repeated_total`.

| reason | counts |
|---|---|
"""
    for _, name, text in rows(discards, rf'X\((\w+), {STRING}, {STRING}\)'):
        out += f"| `{name}` | {text} |\n"
    return out


def limits_profile(root):
    theirs = (root / "include/hearth/app/limits_pyroscope.def").read_text()
    table = (root / "include/hearth/app/options.def").read_text()
    ours = dict(re.findall(rf'X\(\w+, [\w.]+, {STRING}, {STRING}', table))
    out = "# Limits of Pyroscope\n\n" + mark("include/hearth/app/limits_pyroscope.def") + """\
`--limits.profile=pyroscope` (`HEARTH_LIMITS_PROFILE`) begins with these values instead of Hearth's own. An option that
is set, in the file, the environment or by flag, counts in both profiles; so does what a tenant has of its own. Limits
that are not here have no counterpart. What each means: [limits.md](limits.md).

| option | hearth | pyroscope | its flag there |
|---|---|---|---|
"""
    for flag, value, name in re.findall(rf'^P\({STRING}, {STRING}, {STRING}\)', theirs, re.M):
        out += f"| `{flag}` | {ours[flag]} | {value} | `{name}` |\n"
    return out


PAGES = {"limits-profile.md": limits_profile, "options.md": options, "metrics.md": metrics, "errors.md": errors}


def missing_words(root):
    """What the hand-written pages must name: (page, word)."""
    table = (root / "include/hearth/app/options.def").read_text()
    for flag in re.findall(r'X\(\w+, limits\.\w+, "([\w-]+)"', table):
        yield "docs/reference/limits.md", flag
    cli = (root / "clients/cli/hearth.c").read_text()
    options = (root / "clients/cli/options.c").read_text()
    for name, sub in re.findall(r'^    \{"(\w+)", (?:"(\w+)"|NULL), ', cli, re.M):
        yield "docs/reference/cli.md", f"{name} {sub}".strip()
    for flag in sorted(set(re.findall(r'"(--[a-z-]+)"', options))):
        yield "docs/reference/cli.md", flag
    sizing = (root / "clients/cli/sizing.def").read_text()
    for flag in re.findall(r'^INPUT\(\w+, "([\w-]+)"', sizing, re.M):
        yield "docs/reference/cli.md", f"`--{flag}"
    for service, method in re.findall(r'X\(\w+, "([\w.]+)", "(\w+)"', (root / "server/front/methods.def").read_text()):
        own = {"skywalking": "docs/reference/skywalking.md", "opentelemetry": "docs/reference/otlp.md"}
        page = own.get(service.split(".")[0], "docs/api.md")
        yield page, service
        yield page, method


def dead_links(root):
    """Relative links of all documents."""
    for path in sorted(root.rglob("*.md")):
        page = path.relative_to(root)
        if page.parts[0].startswith((".", "build")):
            continue
        text = re.sub(r"```.*?```", "", path.read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if "://" not in target and not (path.parent / target).exists():
                yield page, target


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
        print(f"{page} links to {target}, which is not there")
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
