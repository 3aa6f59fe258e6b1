import assert from "node:assert/strict";
import { test } from "node:test";
import { preferredType } from "../src/app/preferred-type";

const typed = (...ids: string[]) => ids.map((ID) => ({ ID }));

test("processor time is shown first, also where another client counts samples under its name", () => {
  const types = typed("memory:alloc_space:bytes:space:bytes", "process_cpu:cpu:count:cpu:count", "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
  assert.equal(preferredType(types)?.ID, "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
});

test("processor time of Node is shown before what sorts first", () => {
  const types = typed("memory:inuse_space:bytes:space:bytes", "wall:cpu:nanoseconds:wall:nanoseconds");
  assert.equal(preferredType(types)?.ID, "wall:cpu:nanoseconds:wall:nanoseconds");
});

test("of a heap the space in use is shown first, and of locks the delay", () => {
  const types = typed("memory:alloc_objects:count:space:bytes", "memory:inuse_space:bytes:space:bytes",
    "mutex:contentions:count:contentions:count", "mutex:delay:nanoseconds:contentions:count");
  assert.equal(preferredType(types)?.ID, "memory:inuse_space:bytes:space:bytes");
  assert.equal(preferredType(types.slice(2))?.ID, "mutex:delay:nanoseconds:contentions:count");
});

test("without a type that is preferred the first type is shown", () => {
  assert.equal(preferredType(typed("goroutine:goroutine:count:goroutine:count"))?.ID, "goroutine:goroutine:count:goroutine:count");
  assert.equal(preferredType([]), undefined);
});

test("a service without processor time is shown with a type that it has", () => {
  const types = typed("memory:inuse_space:bytes:space:bytes", "process_cpu:cpu:nanoseconds:cpu:nanoseconds").map((type) => ({
    ...type, isOutside: type.ID.startsWith("process_cpu"),
  }));
  assert.equal(preferredType(types)?.ID, "memory:inuse_space:bytes:space:bytes");
  assert.equal(preferredType(types.slice(1))?.ID, "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
});
