import assert from "node:assert/strict";
import { test } from "node:test";
import { flameEn } from "../src/texts/flame-en";
import { flameZh } from "../src/texts/flame-zh";

test("one is not many", () => {
  assert.equal(flameEn.frame("f", "5.00%", "1.00%", "1"), "f, total 5.00%, self 1.00%, 1 child");
  assert.equal(flameEn.matches("1", "1", "3 s", "5.00%"), "1 frame of 1 function: 3 s, 5.00% of all");
  assert.equal(flameEn.culled("1,204"), "1,204 frames, each too narrow to draw");
});

test("Chinese sentences have Chinese punctuation", () => {
  const said = [
    flameZh.hint,
    flameZh.remove("a"),
    flameZh.culled("2"),
    flameZh.matches("1", "2", "3", "4"),
    flameZh.literal,
    flameZh.gone("1", "2"),
    flameZh.frame("a", "b", "c", "d"),
  ];
  for (const sentence of said) assert.doesNotMatch(sentence, /[,:;]/, sentence);
});
