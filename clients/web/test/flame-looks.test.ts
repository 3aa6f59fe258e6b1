import assert from "node:assert/strict";
import { test } from "node:test";
import {
  changeColour,
  contrast,
  css,
  DARK,
  desaturated,
  kindColour,
  KINDS,
  LIGHT,
  nameColour,
  oklch,
  packageColour,
  selfColour,
  textOn,
} from "../src/flame/colours";
import { changeOf, goneFrames } from "../src/flame/diff";
import { hideFunction } from "../src/flame/transforms";
import { collapsedText, htmlText, speedscopeText, svgText } from "../src/flame/export";
import { fitLabel, labelOf } from "../src/flame/label";
import { layoutTree } from "../src/flame/layout";
import { boundedName, frameId, kindOf, packageOf, shortName, visibleName } from "../src/flame/names";
import { Scene } from "../src/flame/scene";
import type { FlameTree } from "../src/flame/tree";
import { HOSTILE, treeOfStacks } from "./flame-fixtures";

const packages: [string, string][] = [
  ["runtime.mallocgc", "runtime"],
  ["net/http.(*Server).Serve", "net/http"],
  ["github.com/grafana/pyroscope/pkg/model.(*Tree[go.shape.int]).Merge", "github.com/grafana/pyroscope/pkg/model"],
  ["java/util/HashMap.put", "java/util"],
  ["java.util.HashMap.put", "java.util"],
  ["std::vector<a::b>::push_back(int)", "std"],
  ["core::fmt::write", "core"],
  ["postgres+0x46b7c3", "postgres"],
  ["malloc", ""],
  ["__schedule.isra.0", ""],
  ["", "[unknown]"],
  ["[unknown]", "[unknown]"],
  ["[kernel] foo", "[kernel]"],
  ["System.Collections.List.Add", "System"],
  ["main.main.func1", "main"],
];

test("packages of names", () => {
  for (const [name, want] of packages) assert.equal(packageOf(name), want, name);
  for (const name of HOSTILE)
    assert.ok(packageOf(name).length <= Math.max(name.length, 9) && KINDS.includes(kindOf(name)));
});

test("ids and colours are the same for ever", () => {
  assert.equal(frameId("main.main"), frameId("main.main"));
  assert.equal(frameId("main"), "1oeqxwc");
  assert.equal(css(packageColour(LIGHT, "net/http")), "#d9b4ea");
  assert.equal(css(oklch(1, 0, 0)), "#ffffff");
  assert.equal(css(oklch(0.6279, 0.2577, 29.23)), "#ff0000");
});

test("text can be read on every fill of both themes", () => {
  for (const theme of [LIGHT, DARK]) {
    const fills = [
      theme.culled,
      theme.root,
      theme.neutral,
      theme.quiet,
      theme.match,
      desaturated(theme),
      ...KINDS.map((kind) => kindColour(theme, kind)),
      ...Array.from({ length: 24 }, (_, i) => oklch(theme.boxLightness, 0.085, i * 15)),
      ...[-1, -0.5, -0.1, 0, 0.1, 0.5, 1].map((at) => changeColour(theme, at)),
      ...[0, 0.25, 0.5, 1].map((at) => selfColour(theme, at, 1)),
    ];
    for (const fill of fills)
      assert.ok(contrast(textOn(theme, fill), fill) >= 4.5, `${css(fill)} ${contrast(textOn(theme, fill), fill)}`);
    assert.ok(contrast(theme.accent, theme.background) >= 3);
  }
});

test("invisible characters are seen, and others stay", () => {
  assert.equal(visibleName("a\u202eb\u0000\u200b"), "a\\u{202e}b\\u{0}\\u{200b}");
  assert.equal(visibleName("函数 größe مرحبا 👍"), "函数 größe مرحبا 👍");
  assert.equal(visibleName("\ud800"), "\\u{d800}");
  for (const name of HOSTILE) {
    assert.doesNotMatch(visibleName(name), /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/);
    assert.ok(boundedName(name, 60).length <= 60);
  }
});

test("labels lose their package first and their method last", () => {
  const label = labelOf("github.com/grafana/pyroscope/pkg/model.(*Tree).Merge");
  assert.equal(fitLabel(label, 100), label.text);
  assert.equal(fitLabel(label, 30), "…scope/pkg/model.(*Tree).Merge");
  assert.equal(fitLabel(label, 10), "model.(*T…");
  assert.equal(fitLabel(label, 1), "");
  assert.equal(shortName("std::vector<int>::push_back(a::b)"), "push_back(a::b)");
  for (const name of HOSTILE) {
    for (const columns of [1, 2, 5, 40]) assert.ok(fitLabel(labelOf(name), columns).length <= columns);
  }
});

test("changes are in points of each side", () => {
  const tree = treeOfStacks({ a: [50, 30], b: [50, 0], c: [0, 70] });
  const points = (name: string) =>
    changeOf(
      tree,
      [...tree.name].findIndex((i) => tree.names[i] === name),
    )!;
  assert.ok(Math.abs(points("a").points + 0.2) < 1e-9);
  assert.deepEqual([points("b").isGone, points("c").isNew, points("a").isNew], [true, true, false]);
  assert.deepEqual(goneFrames(tree), { frames: 1, share: 0.5 });
});

const hostileTree = treeOfStacks(
  Object.fromEntries(HOSTILE.map((name, i) => [name.replace(/;/g, ",") + ";leaf", 100 + i])),
);
const scene = (width: number) =>
  new Scene(hostileTree, layoutTree(hostileTree, 0, width), LIGHT, "package", "count", null, "total");

const UNSEEN = /[\u0000-\u0009\u000b-\u001f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/;

test("hostile names are text in SVG", () => {
  const text = svgText(scene(9000), 9000, 20, HOSTILE[0]!);
  assert.doesNotMatch(text, UNSEEN);
  const tags = new Set([...text.matchAll(/<\/?([a-zA-Z!][\w-]*)/g)].map((tag) => tag[1]));
  for (const tag of tags) {
    assert.ok(["svg", "title", "defs", "pattern", "path", "rect", "g", "text"].includes(tag!), tag);
  }
  assert.doesNotMatch(text, / on\w+="/);
  assert.doesNotMatch(text, /\b(href|src)="/);
});

const PAGE = '<a id="profile"></a>';
const SIDES = { baseline: "before", comparison: "after" };
const htmlOf = (tree: FlameTree, zoom = 0) =>
  htmlText(PAGE, tree, zoom, HOSTILE[0]!, "count", HOSTILE[0]!, "cpu", SIDES);

test("hostile names in HTML end no element", () => {
  const text = htmlOf(hostileTree);
  assert.doesNotMatch(text, UNSEEN);
  assert.equal(text.match(/</g)!.length, 2);
  const profile = JSON.parse(text.slice('<a id="profile">'.length, -"</a>".length));
  assert.equal(profile.names.length, hostileTree.names.length);
  assert.equal(profile.title, visibleName(HOSTILE[0]!));
});

test("HTML holds the nodes of both sides by steps", () => {
  const tree = treeOfStacks({ "a;b": [50, 30], "a;c": [50, 0], d: [0, 70] });
  const profile = JSON.parse(htmlOf(tree, 1).slice('<a id="profile">'.length, -"</a>".length));
  const parents: number[] = [];
  profile.parent.forEach((step: number, i: number) => parents.push(step + (i > 0 ? parents[i - 1]! : 0)));
  assert.deepEqual(parents.slice(1), [...tree.parent].slice(1));
  assert.deepEqual(profile.self, [[...tree.diff!.leftSelf], [...tree.diff!.rightSelf]]);
  assert.deepEqual(profile.sides, ["before", "after"]);
  assert.equal(profile.zoom, 1);
  assert.ok(!("changed" in profile), "noise is not known");
});

test("collapsed stacks are a line each, and speedscope's numbers add up", () => {
  const lines = collapsedText(hostileTree, 0).trimEnd().split("\n");
  assert.equal(lines.length, HOSTILE.length);
  for (const line of lines) assert.match(line, /^[^;]*;leaf \d+$/);
  assert.equal(collapsedText(treeOfStacks({ "a;b": 2, c: 1 }), 1), "a;b 2\n");
  const hidden = hideFunction(treeOfStacks({ "a;b": 2, a: 3 }), "a");
  assert.equal(collapsedText(hidden, 0), "[no stack] 3\nb 2\n", "no value is lost where all frames are hidden");
  const file = JSON.parse(speedscopeText(treeOfStacks({ "a;b": 2, c: 1 }), 0, "nanoseconds", "t", { baseline: "b", comparison: "c" }));
  assert.deepEqual(
    file.profiles[0].samples.map((s: number[]) => s.map((f) => file.shared.frames[f].name)),
    [["a", "b"], ["c"]],
  );
  assert.deepEqual(
    [file.profiles[0].weights, file.profiles[0].endValue, file.profiles[0].unit],
    [[2, 1], 3, "nanoseconds"],
  );
});

test("files of a diff hold both sides", () => {
  const tree = treeOfStacks({ "a;b": [3, 0], c: [1, 2] });
  assert.equal(collapsedText(tree, 0), "a;b 3 0\nc 1 2\n");
  const file = JSON.parse(speedscopeText(tree, 0, "count", "t", { baseline: "before", comparison: "after" }));
  assert.deepEqual(
    file.profiles.map((profile: { name: string; weights: number[] }) => [profile.name, profile.weights]),
    [["t: before", [3, 1]], ["t: after", [2]]],
  );
});
