// Bundles each test for Node by the esbuild that Vite brings, and runs them all; `run.mjs bench` runs the benchmarks.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const isBench = process.argv[2] === "bench";
const tests = readdirSync(here).filter((name) => name.endsWith(isBench ? ".bench.ts" : ".test.ts"));
// Inside the package, so that Node finds what stays outside the bundles.
const out = mkdtempSync(join(here, "../node_modules/.tests-"));
try {
  await build({
    entryPoints: tests.map((name) => join(here, name)),
    outdir: out,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node18",
    outExtension: { ".js": ".mjs" },
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".css": "empty" },
    external: ["preact", "@preact/signals"],
    logLevel: "warning",
  });
  const files = readdirSync(out).filter((name) => name.endsWith(".mjs")).map((name) => join(out, name));
  process.exitCode = spawnSync(process.execPath, [...(isBench ? [] : ["--test"]), ...files], { stdio: "inherit" }).status ?? 1;
} finally {
  rmSync(out, { recursive: true });
}
