import assert from "node:assert/strict";
import { test } from "node:test";
import { choose, closed, matching, placeOf, withRoom } from "../src/app/completion";

// The caret stands where the text has "|".
function at(marked: string) {
  const caret = marked.indexOf("|");
  const text = marked.replace("|", "");
  return { text, place: placeOf(text, caret) };
}

test("the place of the caret tells what can stand there", () => {
  const kinds: [string, string, string, string][] = [
    ["|", "name", "", ""],
    ["{|}", "name", "", ""],
    ["{se|}", "name", "se", ""],
    ["{service_name|}", "name", "service_name", ""],
    ["{service_name |}", "operator", "", "service_name"],
    ["{service_name!|}", "operator", "!", "service_name"],
    ["{service_name=|}", "value", "", "service_name"],
    ['{service_name="ch|"}', "value", "ch", "service_name"],
    ['{service_name="ch|', "value", "ch", "service_name"],
    ['{service_name="a\\"b|"}', "value", 'a\\"b', "service_name"],
    ['{service_name="a"|}', "end", "", "service_name"],
    ['{service_name="a",|}', "name", "", ""],
    ['{service_name="a", po|}', "name", "po", ""],
    ['{service_name="a", pod=~"x|"}', "value", "x", "pod"],
  ];
  for (const [marked, kind, typed, label] of kinds) {
    const { place } = at(marked);
    assert.deepEqual([place.kind, place.typed, place.label], [kind, typed, label], marked);
  }
  assert.equal(at('{service_name="a", pod="|"}').place.others, '{service_name="a"}');
});

test("a choice takes the place of what was typed", () => {
  const cases: [string, string, string][] = [
    ["|", "pod", '{pod="|'],
    ["{po|}", "pod", '{pod="|}'],
    ['{po|="x"}', "pod", '{pod|="x"}'],
    ["{pod |}", "=~", '{pod =~"|}'],
    ['{pod="|}', "a\"b", '{pod="a\\"b"|'],
    ['{pod="a|"}', "abc", '{pod="abc"|}'],
    ['{pod=|}', "abc", '{pod="abc"|}'],
  ];
  for (const [marked, chosen, expected] of cases) {
    const { text, place } = at(marked);
    const done = choose(text, place, chosen);
    assert.equal(done.text.slice(0, done.caret) + "|" + done.text.slice(done.caret), expected, marked);
  }
});

test("what begins with the typed text stands first, otherwise the given order stays", () => {
  assert.deepEqual(matching(["xb", "a", "bz", "by"], "B", 3), ["bz", "by", "xb"]);
});

test("braces are added, and room for one more matcher", () => {
  assert.deepEqual(withRoom("{}"), { text: "{}", caret: 1 });
  assert.deepEqual(withRoom('{a="b"}'), { text: '{a="b", }', caret: 8 });
  assert.equal(closed('a="b", '), '{a="b"}');
  assert.equal(closed(""), "{}");
});
