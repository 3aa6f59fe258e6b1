"""distributed.py -- what statements over data tables must not contain, so that they also run where these are distributed.

The rules were found on Citus 13.2: it refuses such a statement, or answers it with rows of other moments or other nodes. Each is
a function of the text without literals that returns whether the text breaks it. test_placement.py applies them to the
statements that the integration tests record, selftest.py to statements that break them.
"""

import re

import placement

VOLATILE = (
    r"(?:pg_(?:try_)?advisory\w*|clock_timestamp|timeofday|random|gen_random_uuid|nextval|setval|set_config|txid_current"
    r"|pg_current_xact_id|pg_logical_emit_message)\s*\("
)
ROUTED = r"\bservice_id\s*(?:=|IN\b)"


def bare(text):
    """Without literals, comments and quoted names; all white space is one space."""
    text = re.sub(r"'(?:[^']|'')*'|\"[^\"]*\"", "''", text)
    return re.sub(r"\s+", " ", re.sub(r"--[^\n]*|/\*.*?\*/", "", text, flags=re.S)).strip()


def inner(text):
    """The parts of a text in parentheses, at every depth."""
    opened = []
    for at, character in enumerate(text):
        if character == "(":
            opened.append(at)
        elif character == ")" and opened:
            yield text[opened.pop() + 1 : at]


def outer(text):
    """The text without what stands in parentheses."""
    depth, out = 0, []
    for character in text:
        depth -= character == ")"
        if depth == 0:
            out.append(character)
        depth += character == "("
    return "".join(out)


def names_data(text, sets):
    return any(sets.get(name) == "DATA" for name in placement.tables_of(text))


def lateral_limits(text):
    """Lateral queries, over parameters as rows, that have a LIMIT or an OFFSET of their own, unless one service is named."""
    for found in re.finditer(r"\bLATERAL \(", text):
        query = next(part for part in sorted(inner(text[found.start() :]), key=len, reverse=True)
                     if text.startswith(part, found.end()))
        if re.search(r"\b(?:LIMIT|OFFSET)\b", query) and not re.search(r"\bservice_id = (?:\$?\d)", query):
            yield query


def rules(text, sets):
    """{rule: whether the statement breaks it}"""
    returning = re.split(r"\bRETURNING\b", text)[1:]
    settings = re.findall(r"\bSET (.*?)(?:\bWHERE\b|\bRETURNING\b|$)", text) if re.search(r"\bUPDATE\b", text) else []
    parts = list(inner(text))
    return {
        "SELECT without a column": re.search(r"\bSELECT FROM\b", text),
        "a volatile call in RETURNING": any(re.search(VOLATILE, part) for part in returning),
        "a volatile call in SET": any(re.search(VOLATILE, part) for part in settings),
        "a lateral query with LIMIT or OFFSET": any(names_data(query, sets) for query in lateral_limits(text)),
        "a row lock without service_id": re.search(r"\bFOR (?:NO KEY )?(?:UPDATE|SHARE)\b", text) and not re.search(ROUTED, text),
        "ctid without service_id": re.search(r"\bctid\b", text) and not re.search(ROUTED, text),
        "a recursive query without service_id": re.search(r"\bRECURSIVE\b", text) and not re.search(ROUTED, text),
        "UNION ALL at the top": re.search(r"\bUNION ALL\b", outer(text)),
        "NOT EXISTS of rows over parameters": any(
            re.search(r"\bFROM unnest\(", re.split(r"\bNOT EXISTS\b", part)[0])
            and any(names_data(query, sets) for query in re.findall(r"\bNOT EXISTS \(([^()]*)", part))
            for part in [text, *parts] if "NOT EXISTS" in outer(part)
        ),
        "MERGE": text.startswith("MERGE "),
        "a change of service_id": re.search(r"\bUPDATE\b.*\bSET (?:[^=]*=[^,]*, )*service_id =", text),
        "DETACH CONCURRENTLY": re.search(r"\bDETACH PARTITION \S+ (?:CONCURRENTLY|FINALIZE)\b", text),
    }


def breaches(statement, sets):
    """The rules that a statement breaks; none if it names no data table."""
    text = bare(statement)
    return [rule for rule, broken in rules(text, sets).items() if broken] if names_data(text, sets) else []
