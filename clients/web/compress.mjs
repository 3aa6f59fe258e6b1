// Writes each file of dist/ also as NAME.gz and NAME.br where that is smaller, and fails beyond the budget.
import { execFileSync } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { brotliCompressSync, constants } from "node:zlib";
import { filesBelow } from "./files.mjs";

const BUDGET_BYTES = 150_000; // of all files, by gzip

/** The file by gzip. zopfli takes seconds, once, for a twentieth less than zlib's best. */
function gzipOf(path) {
  return execFileSync("zopfli", ["-c", path], { maxBuffer: 2 * statSync(path).size + 1024 });
}

let total = 0;
for (const path of filesBelow("dist")) {
  const plain = readFileSync(path);
  const forms = {
    ".gz": gzipOf(path),
    ".br": brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: plain.length } }),
  };
  for (const [ending, bytes] of Object.entries(forms)) {
    if (bytes.length < plain.length) {
      writeFileSync(path + ending, bytes);
    }
  }
  total += Math.min(plain.length, forms[".gz"].length);
  console.log(`${path}: ${plain.length} bytes, ${forms[".gz"].length} by gzip, ${forms[".br"].length} by brotli`);
}
console.log(`all files: ${total} bytes by gzip, of ${BUDGET_BYTES}`);
if (total > BUDGET_BYTES) {
  console.error("the page is larger than its budget");
  process.exit(1);
}
