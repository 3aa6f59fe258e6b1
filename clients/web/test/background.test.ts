import assert from "node:assert/strict";
import { test } from "node:test";
import { isBackgroundCode, type Background, type Place } from "../src/pages/profile/background";
import { withoutFrames } from "../src/pages/profile/without-frames";
import { checkTree, stacksOf, treeOfStacks } from "./flame-fixtures";

test("background code is told by name, file or module, and nobody's own code is", () => {
  const background: [Background, Partial<Place>][] = [
    ["kernel", { name: "do_syscall_64", module: "[kernel.kallsyms]" }],
    ["kernel", { name: "nf_hook_slow", module: "/lib/modules/6.1/kernel/net/nf_tables.ko" }],
    ["libc", { name: "__libc_send", module: "/usr/lib/x86_64-linux-gnu/libc.so.6" }],
    ["libc", { name: "memcpy", module: "/lib/libc-2.31.so" }],
    ["libc", { name: "_dl_relocate", module: "/lib64/ld-linux-x86-64.so.2" }],
    ["gc", { name: "runtime.gcBgMarkWorker" }],
    ["gc", { name: "G1ParEvacuateFollowersClosure::do_void" }],
    ["go", { name: "runtime.mallocgc" }],
    ["jvm", { name: "java/util/HashMap.put" }],
    ["jvm", { name: "JavaMain", module: "/usr/lib/jvm/17/lib/server/libjvm.so" }],
    ["python", { name: "loads", file: "/usr/lib/python3.11/json/__init__.py" }],
    ["python", { name: "_PyEval_EvalFrameDefault", module: "/usr/bin/python3.11" }],
    ["node", { name: "processTicksAndRejections", file: "node:internal/process/task_queues" }],
    ["dotnet", { name: "System.Threading.ThreadPool.Dispatch" }],
    ["ruby", { name: "vm_exec_core" }],
  ];
  for (const [kind, place] of background) {
    assert.ok(isBackgroundCode([kind], { name: "", file: "", module: "", ...place }), JSON.stringify(place));
  }
  const own: Partial<Place>[] = [
    { name: "main.handle", file: "/src/shop/handle.go", module: "/usr/bin/shop" },
    { name: "com.shop.Basket.add" },
    { name: "render", file: "/usr/lib/python3/dist-packages/jinja2/environment.py" },
    { name: "libcurl_read", module: "/usr/lib/libcurl.so.4" },
    { name: "GcReport.print" },
    { name: "handler", file: "/app/node_modules/express/router.js" },
  ];
  for (const place of own) {
    const all: Background[] = ["kernel", "libc", "gc", "go", "jvm", "python", "node", "dotnet", "ruby"];
    assert.ok(!isBackgroundCode(all, { name: "", file: "", module: "", ...place }), JSON.stringify(place));
  }
});

test("what hidden frames cost is counted as their callers'", () => {
  const tree = treeOfStacks({ "main;runtime.a;b": 2, "main;runtime.a": 3, "runtime.c": 4 });
  const shown = withoutFrames(tree, (name) => name.startsWith("runtime."));
  checkTree(shown);
  assert.deepEqual(stacksOf(shown), { "main;b": 2, main: 3, "": 4 });
});
