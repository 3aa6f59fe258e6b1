import assert from "node:assert/strict";
import { test } from "node:test";
import { placesOf } from "../src/api/functions";

const sayBuildId = (id: string) => `build id ${id}`;

test("a function is written at a line, in a binary with a build id", () => {
  const line = { line: "31", file: "json.go", mapping: "/usr/bin/shop", buildId: "4bf92f" };
  assert.deepEqual(placesOf(line, sayBuildId), ["json.go:31", "/usr/bin/shop", "build id 4bf92f"]);
});

test("a binary stands once where no file is known, and unknown parts are left out", () => {
  assert.deepEqual(placesOf({ mapping: "libc.so.6", buildId: "77" }, sayBuildId), ["libc.so.6", "build id 77"]);
  assert.deepEqual(placesOf({ file: "json.go" }, sayBuildId), ["json.go"]);
  assert.deepEqual(placesOf({}, sayBuildId), []);
});
