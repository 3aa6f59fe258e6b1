import assert from "node:assert/strict";
import { test } from "node:test";
import { parseLabels } from "../src/api/uploads";

test("labels are names and values, separated by commas or lines", () => {
  assert.deepEqual(parseLabels(""), []);
  assert.deepEqual(parseLabels(" env = prod,region=eu\nteam="), [
    { name: "env", value: "prod" },
    { name: "region", value: "eu" },
    { name: "team", value: "" },
  ]);
  assert.deepEqual(parseLabels("query=a=b"), [{ name: "query", value: "a=b" }]);
});

test("a text that is no label is refused as a whole", () => {
  for (const text of ["env", "=prod", "env=prod, region", "a b=c"]) {
    assert.equal(parseLabels(text), undefined, text);
  }
});
