import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeMerge, stacksJson, type Selection } from "../src/api/encode";
import { markdownOf, tsvOf } from "../src/pages/profile/copy-table";

const table = { header: ["Function", "Self"], rows: [["a\tb\nc", "1"], ["std::vector<T>|x_*", "2"]] };

test("a name makes neither cells nor rows nor markup of its own", () => {
  assert.equal(tsvOf(table), "Function\tSelf\na b c\t1\nstd::vector<T>|x_*\t2\n");
  assert.equal(
    markdownOf(table),
    "| Function | Self |\n| --- | ---: |\n| a b c | 1 |\n| std::vector\\<T\\>\\|x\\_\\* | 2 |\n",
  );
});

test("rows of tables are conditions of a question, in both forms of a request", () => {
  const asked: Selection = {
    type: "t", selector: "{}", startMs: 1, endMs: 2, functions: [], without: [], rows: [{ kind: "FILE", names: ["a.c", ""] }],
  };
  assert.deepEqual(stacksJson(asked), {
    callSite: [], functions: [], allFunctions: false, without: [], rows: [{ kind: "TOP_KIND_FILE", names: ["a.c", ""] }],
  });
  assert.equal(stacksJson({}), undefined);
  const bytes = [...encodeMerge(asked, 1)].join(" ");
  // stacks (5) with one row filter (7): kind (1) FILE is 3, names (2) "a.c" and "".
  assert.ok(bytes.includes("42 11 58 9 8 3 18 3 97 46 99 18 0"), bytes);
});
