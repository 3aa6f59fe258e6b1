import assert from "node:assert/strict";
import { test } from "node:test";
import { applyEdits, editsBetween, firstRule, formatEdit, parseEdit, placeOfError, removal, rulesOf, targetsOf, type StoredPolicy } from "../src/pages/directing/policy";

const stored: StoredPolicy = {
  targets: [
    { kind: "TASK_KIND_ON_CPU", checkItems: [{ monitor: "MONITOR_KIND_PROCESS_CPU", threshold: "80", periodSeconds: 10, count: 3 }] },
    { kind: "TASK_KIND_OFF_CPU" },
    { kind: "TASK_KIND_NETWORK", checkItems: [{ monitor: "MONITOR_KIND_HTTP_ERROR_RATE", threshold: "5", periodSeconds: 20, count: 4, uriPaths: ["/buy", "/a b"] }] },
  ],
};

test("an edit changes its rule and no other", () => {
  const rules = rulesOf(stored);
  const louder = { ...rules[0], threshold: 95 };
  const edited = applyEdits(rules, [louder]);
  assert.deepEqual(edited, [louder, rules[1]]);
  const targets = targetsOf(edited, stored) as NonNullable<StoredPolicy["targets"]>;
  assert.deepEqual(targets.map(({ kind }) => kind), ["TASK_KIND_ON_CPU", "TASK_KIND_OFF_CPU", "TASK_KIND_NETWORK"]);
  assert.deepEqual(targets[2].checkItems![0].uriPaths, ["/buy", "/a b"]);
});

test("edits lead from one version to another and back", () => {
  const before = rulesOf(stored);
  const after = [firstRule("OFF_CPU", "SYSTEM_LOAD"), { ...before[1], count: 1 }];
  assert.deepEqual(applyEdits(before, editsBetween(before, after)), after);
  assert.deepEqual(applyEdits(after, editsBetween(after, before)), before);
  assert.deepEqual(editsBetween(before, before), []);
});

test("edits stand in the address as they were made", () => {
  const rule = { ...firstRule("NETWORK", "HTTP_ERROR_RATE"), paths: ["/a b", "/%41"] };
  for (const edit of [rule, { ...rule, paths: [], regex: "^/(a|b) c" }, removal(rule)]) {
    assert.deepEqual(parseEdit(formatEdit(edit)), edit);
  }
  for (const wrong of ["", "ON_CPU", "ON_CPU NOTHING 1 2 3", "__proto__ PROCESS_CPU 1 2 3", "ON_CPU PROCESS_CPU x 2 3"]) {
    assert.equal(parseEdit(wrong), null);
  }
  assert.deepEqual(parseEdit("NETWORK HTTP_ERROR_RATE 1 2 3 %zz")?.paths, ["%zz"]);
});

test("an error of the server is placed at its field", () => {
  const about = (text: string) => placeOfError(`check PROCESS_CPU in ON_CPU error: ${text}`);
  assert.deepEqual(about("the process CPU percent should be in (0-100]"), {
    key: "ON_CPU PROCESS_CPU", field: "threshold", text: "the process CPU percent should be in (0-100]",
  });
  assert.equal(about("count must be equal to or smaller than period")?.field, "count");
  assert.equal(about("period must be bigger than zero")?.field, "period");
  assert.equal(about("a period of 3601 s is longer than the 3600 s that max-policy-period allows")?.field, "period");
  assert.equal(about("the URI regex: missing )")?.field, "uris");
  assert.equal(placeOfError("the service id cannot be empty"), null);
});
