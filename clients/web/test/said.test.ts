import assert from "node:assert/strict";
import { test } from "node:test";
import { saidZh } from "../src/texts/said-zh";

// As servers wrote them.
const KNOWN: [string, string[]][] = [
  ['of 21000 nodes those beyond the largest 8192 (default-flamegraph-nodes) are folded into "other": ask for more with max_nodes, at most 100000 (max-flamegraph-nodes)', ["21000", "8192"]],
  ["20 of 31 series are in the answer: raise limit to see more", ["20", "31"]],
  ["the whole range is older than queries may look back (7d, max-query-lookback): the answer is empty", ["7d", "max-query-lookback"]],
  ["the range begins 7d ago: queries may look back no further (max-query-lookback)", ["7d", "max-query-lookback"]],
  ["no sample carries the id, and its time is unknown: no span with it is stored, and no start and end are given", []],
  ["no sample carries the id, and when it ran is not known: it is not stored, and no start and end are given", []],
  ["no instance of the service has ever asked for pprof tasks", ["pprof"]],
  ["the service has 3 processes, but none has the label(s) a, b", ["3", "a, b"]],
  ["12 stack traces came, the last at 2026-11-20T10:36:00Z", ["12", "2026-11-20T10:36:00Z"]],
  ["9 stack traces came, the last at 2026-11-20T10:36:00Z; they cover 15 s of the 1 min of the task: its agent began late or ended early, or there was nothing to sample in the rest", ["15 s", "1 min"]],
  ["the answer would have more than max-points (11000000) points: use a longer step or fewer groups", ["11000000", "max-points"]],
  ["the query time range exceeds the limit (max_query_length, actual: 30d, limit: 7d)", ["30d", "7d"]],
  ["max flamegraph nodes limit 2000000 is greater than allowed 1048576 (max-flamegraph-nodes)", ["2000000", "1048576"]],
  ["too many queries of the tenant are waiting (max-queued-queries is 8, max-queries 4): retry later, or have these limits raised", ["8", "4"]],
  ["bad regular expression: missing ]: [, at offset 16", ["missing ]: [", "16"]],
  ["service_name: bad regular expression: missing ]: [", ["service_name", "missing ]: ["]],
  ['unexpected "}", expected a string, at offset 9', ['"}"', "a string", "9"]],
  ["unexpected end, expected \",\" or \"}\"", ['"," or "}"']],
  ['no selected stack trace contains the function "main.f"', ["main.f"]],
  ['max-query-range = "x" is not a duration like 7d', ["max-query-range", "x", "a duration like 7d"]],
  ["lost the connection to the database: server closed the connection unexpectedly", []],
  ["no credential was sent; tokens are accepted", []],
];

test("sentences of the server keep their numbers and names in Chinese", () => {
  for (const [english, parts] of KNOWN) {
    const chinese = saidZh(english);
    assert.ok(chinese && /[一-龥]/.test(chinese), english);
    assert.ok(!chinese.includes("undefined"), chinese);
    parts.forEach((part) => assert.ok(chinese.includes(part), `${chinese} lacks ${part}`));
  }
});

test("a sentence that is not known stays as the server wrote it", () => {
  assert.equal(saidZh("the disk is full"), undefined);
  assert.equal(saidZh("12 stack traces came, the last at 10:36; not all: it broke"), undefined);
});
