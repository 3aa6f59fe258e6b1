import assert from "node:assert/strict";
import { test } from "node:test";
import { around, deploysOf, versionLabel } from "../src/api/deploys";

test("a version is deployed where it first appears, but for those of the beginning", () => {
  const line = (version: string, values: (number | null)[]) => ({ labels: { version }, values, mean: 0 });
  const lines = [line("1", [null, 5, 5, null]), line("2", [null, null, null, 7]), line("", [null, null, 1, 1]), line("3", [null, null, null, null])];
  assert.deepEqual(deploysOf({ timesMs: [0, 10, 20, 30], lines, unit: "cores" }, "version"), [{ version: "2", atMs: 30 }]);
  assert.deepEqual(deploysOf({ timesMs: [], lines: [], unit: "cores" }, "version"), []);
});

test("the label of versions is found by its name", () => {
  assert.equal(versionLabel(["pod", "git_ref", "version"]), "version");
  assert.equal(versionLabel(["pod", "conversion"]), undefined);
});

test("the windows around a deploy have one length and lie within the range", () => {
  assert.deepEqual(around(70, { startMs: 0, endMs: 100 }), { before: { startMs: 40, endMs: 70 }, after: { startMs: 70, endMs: 100 } });
  assert.deepEqual(around(20, { startMs: 0, endMs: 100 }), { before: { startMs: 0, endMs: 20 }, after: { startMs: 20, endMs: 40 } });
});
