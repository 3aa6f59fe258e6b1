import assert from "node:assert/strict";
import { test } from "node:test";
import { labelValues, withLabelValues } from "../src/label-values";

test("values are added to a selector and found in it again", () => {
  const one = withLabelValues('{service_name="shop", pod!="x"}', "pod", ["a.1"]);
  assert.equal(one, '{service_name="shop", pod!="x", pod="a.1"}');
  const two = withLabelValues(one, "pod", ["a.1", "b|c\\d"]);
  assert.deepEqual(labelValues(two, "pod"), ["a.1", "b|c\\d"]);
  assert.equal(withLabelValues(two, "pod", []), '{service_name="shop", pod!="x"}');
});

test("an expression that is more than a list of texts is left alone", () => {
  assert.deepEqual(labelValues('{pod=~"a.*"}', "pod"), []);
  assert.equal(withLabelValues('{pod=~"a.*"}', "pod", ["b"]), '{pod=~"a.*", pod="b"}');
  assert.equal(withLabelValues("{pod='a'}", "pod", ["b"]), "{pod='a'}");
});
