import assert from "node:assert/strict";
import { test } from "node:test";
import { directingEn } from "../src/texts/directing-en";
import { directingZh } from "../src/texts/directing-zh";
import { en } from "../src/texts/en";
import { askingEn } from "../src/texts/asking-en";
import { askingZh } from "../src/texts/asking-zh";
import { pagesEn } from "../src/texts/pages-en";
import { pagesZh } from "../src/texts/pages-zh";
import { zh } from "../src/texts/zh";

type Leaf = [string, unknown];

function leaves(table: object, path = ""): Leaf[] {
  return Object.entries(table).flatMap(([key, value]): Leaf[] =>
    typeof value === "object" && value !== null ? leaves(value, `${path}${key}.`) : [[path + key, value]],
  );
}

const tables: [object, object][] = [[en, zh], [pagesEn, pagesZh], [directingEn, directingZh], [askingEn, askingZh]];

test("both languages have the same texts", () => {
  for (const [english, chinese] of tables) {
    assert.deepEqual(leaves(chinese).map(([key]) => key), leaves(english).map(([key]) => key));
  }
});

test("no text is empty, shouts, or drops what it is given", () => {
  for (const [key, value] of tables.flat().flatMap((table) => leaves(table))) {
    const given = typeof value === "function" ? Array.from({ length: value.length }, (_, i) => `<${i}>`) : [];
    const text: string = typeof value === "function" ? value(...given) : String(value);
    assert.notEqual(text.trim(), "", key);
    assert.ok(!/[!！]$/.test(text), key);
    given.forEach((each) => assert.ok(text.includes(each), `${key} lacks ${each}`));
  }
});
