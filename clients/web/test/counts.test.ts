import assert from "node:assert/strict";
import { test } from "node:test";
import { samplesOf } from "../src/flame/counts";
import { nameOf } from "../src/flame/tree";
import { samplesType } from "../src/pages/samples-type";
import { treeOfStacks } from "./flame-fixtures";

test("a frame has the samples of the frame with the same names above it", () => {
  const time = treeOfStacks({ "a;b": 50, "c;b": 20, c: 10 });
  const counts = treeOfStacks({ "c;b": 2, "a;b": 7, c: 1, other: 5 });
  const samples = Array.from({ length: time.n }, (_, node) => `${nameOf(time, node)} ${samplesOf(time, node, counts)}`);
  assert.deepEqual(samples.slice(1).sort(), ["a 7", "b 2", "b 7", "c 3"]);
  assert.deepEqual(samplesOf(time, 0, counts), [15]);
});

test("a frame of a diff has the samples of both sides", () => {
  const time = treeOfStacks({ "a;b": [50, 0], "a;c": [20, 30] });
  const counts = treeOfStacks({ "a;c": [2, 3], "a;b": [7, 0] });
  const samples = Array.from({ length: time.n }, (_, node) => `${nameOf(time, node)} ${samplesOf(time, node, counts)}`);
  assert.deepEqual(samples, ["total 9,3", "a 9,3", "b 7,0", "c 2,3"]);
});

test("what is not known has no number of samples", () => {
  const time = treeOfStacks({ "a;b": 50, other: 3 });
  const node = (name: string) => [...time.name].findIndex((i) => time.names[i] === name);
  assert.equal(samplesOf(time, node("b"), undefined), undefined);
  assert.equal(samplesOf(time, node("b"), treeOfStacks({ a: 5 })), undefined, "the server folded it");
  assert.equal(samplesOf(time, node("b"), treeOfStacks({})), undefined, "nothing was counted");
  assert.equal(samplesOf(time, node("other"), treeOfStacks({ other: 5 })), undefined, "other frames were folded there");
});

test("samples are counted by a type of the same profiles, or not at all", () => {
  const types = ["process_cpu:cpu:nanoseconds:cpu:nanoseconds", "process_cpu:samples:count:cpu:nanoseconds", "wall:wall:nanoseconds:wall:nanoseconds",
    "wall:samples:count:cpu:nanoseconds", "memory:alloc_space:bytes:space:bytes", "memory:alloc_objects:count:space:bytes"];
  assert.deepEqual(types.map((id) => samplesType(types, id)), [types[1], undefined, undefined, undefined, undefined, undefined]);
});
