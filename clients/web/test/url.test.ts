import assert from "node:assert/strict";
import { test } from "node:test";
import { cliCommand, type Look } from "../src/pages/profile/cli-command";
import { formatSelector, parseSelector, serviceOf, withMatcher } from "../src/selector";
import { chooseStep, resolveRange, resolveTime } from "../src/time";
import { selectorOffsetOf } from "../src/api/connect";
import { pointer } from "../src/app/pointer";
import { effect } from "@preact/signals";
import { address, PAGES, formatAddress, formatList, param, parseAddress, parseList, shownPage } from "../src/url";

test("every page with every parameter comes back from its address", () => {
  const params = { q: '{a="ü & b", c=~"x+|y"}', from: "now-1h", zoom: "1f.2e", with: "main\nf(a, b)" };
  for (const page of PAGES) {
    const at = new URL("http://host" + formatAddress(page, params));
    assert.deepEqual(parseAddress(at.pathname, at.search), { page, params, unknownPath: "" });
  }
});

test("one state has one address: sorted, without empty parameters", () => {
  assert.equal(formatAddress("explore", { to: "now", from: "now-1h", q: "" }), "/?from=now-1h&to=now");
  assert.equal(formatAddress("diff", {}), "/diff");
});

test("an unknown path is the first page, which names the path", () => {
  const { page, unknownPath } = parseAddress("/nowhere", "");
  assert.equal(page, "explore");
  assert.equal(unknownPath, "/nowhere");
  assert.equal(parseAddress("/", "").unknownPath, "");
});

test("times are relative to now or milliseconds, and anything else is refused", () => {
  assert.equal(resolveTime("now", 1000), 1000);
  assert.equal(resolveTime("now-90m", 6e6), 6e5);
  assert.equal(resolveTime("1700000000000", 0), 1700000000000);
  for (const text of ["", "-1", "now+1h", "now-1y", "1e3", "yesterday"]) {
    assert.ok(Number.isNaN(resolveTime(text, 0)), text);
  }
});

test("a range that makes no sense is the last hour", () => {
  const hour = { startMs: 0, endMs: 3.6e6 };
  assert.deepEqual(resolveRange({ from: "now", to: "now-1h" }, 3.6e6), hour);
  assert.deepEqual(resolveRange({ from: "x", to: "y" }, 3.6e6), hour);
});

test("a step is a length that people know and gives at most the points asked for", () => {
  assert.equal(chooseStep({ startMs: 0, endMs: 3.6e6 }, 240), 15);
  assert.equal(chooseStep({ startMs: 0, endMs: 3.6e6 }, 48), 120);
});

test("selectors come back from their chips, whatever the values contain", () => {
  const matchers = [
    { name: "a", op: "=", value: 'quote " back \\ line \n comma , brace }' },
    { name: "b", op: "!~", value: "x.*" },
  ] as const;
  assert.deepEqual(parseSelector(formatSelector([...matchers])), matchers);
  assert.deepEqual(parseSelector("{}"), []);
});

test("what is no list of matchers stays a text", () => {
  for (const text of ['{a="b"', "{a=b}", '{a="b" c="d"}', "cpu{}"]) {
    assert.equal(parseSelector(text), null, text);
  }
});

test("a matcher takes the place of those with the same label and operator", () => {
  const both = withMatcher('{service_name="a", pod!="x"}', { name: "service_name", op: "=", value: "b" });
  assert.equal(serviceOf(both), "b");
  assert.equal(parseSelector(both)?.length, 2);
});

test("a matcher drops no condition that the page cannot read", () => {
  const service = { name: "service_name", op: "=", value: "b" } as const;
  for (const [text, want] of [
    ["{a='x'}", `{a='x', service_name="b"}`],
    ["cpu{}", 'cpu{service_name="b"}'],
    ["cpu { a=`x`, } ", 'cpu { a=`x`, service_name="b"}'],
    ["cpu", 'cpu{service_name="b"}'],
  ] as const) {
    assert.equal(withMatcher(text, service), want);
  }
});

test("the caret of an error stands below the byte that the server names", () => {
  assert.equal(pointer("{a,,}", 3), "   ^");
  assert.equal(pointer('{a="é",,}', 8), "       ^");
  const detail = (value: string) => selectorOffsetOf([{ type: "other" }, { type: "hearth.v1.SelectorError", value }]);
  assert.deepEqual(["CAM", "CKwC", ""].map(detail), [3, 300, 0]);
  assert.equal(selectorOffsetOf([]), undefined);
});

test("lists in an address keep names with line feeds and backslashes", () => {
  for (const names of [[], ["a"], ["a\nb", "App\\Http\\Kernel", "\\n"], ["\\\n\\"]]) {
    assert.deepEqual(parseList(formatList(names)), names);
  }
});

const selection = { type: "cpu", selector: '{a="it\'s"}', startMs: 0, endMs: 1, functions: [] as string[], without: [] as string[] };
const row = (kind: string, ...names: string[]) => ({ rows: [{ kind, names }] });

function command(part: object, look: object = {}): string | null {
  const flame = { view: "flame", callSite: [], transforms: [], ...look } as Look;
  return cliCommand({ ...selection, ...part }, flame, "http://h", "now-1h", "now");
}

test("the command line is offered only where it means the same", () => {
  assert.equal(command({}), `hearth flame '{a="it'\\''s"}' --url http://h --type 'cpu' --from 'now-1h' --to 'now'`);
  assert.match(command({ functions: ["f"], without: ["g h"] })!, /^hearth flame .* --function 'f' --without 'g h'$/);
  assert.equal(command({ functions: ["f", "g"] }), null);
  assert.match(command(row("FRAME_KIND", "go", ""))!, / --frame-kind 'go' --frame-kind ''$/);
  assert.match(command(row("FUNCTION", "f", "g"))!, / --function 'f' --function 'g'$/);
  assert.equal(command(row("FILE", "/a/")), null);
  assert.equal(command({ ...row("FUNCTION", "f"), functions: ["g"] }), null);
});

test("the command has the transforms in their order, or the zoom", () => {
  const transforms = [["hide", "it's"], ["focus", "f"], ["recursion", "/f/"], ["module", "net/http"]].map(([kind, name]) => ({ kind, name }));
  const options = ` --hide 'it'\\''s' --focus 'f' --collapse-recursion '/f/' --collapse-package 'net/http'`;
  assert.ok(command({}, { transforms })!.endsWith(options));
  assert.ok(command({}, { transforms, callSite: ["main"] })!.endsWith(options), "a zoom into transformed stack traces");
  assert.ok(command({}, { callSite: ["main", "a b"] })!.endsWith(" --call-site 'main' --call-site 'a b'"));
  assert.doesNotMatch(command({}, { callSite: Array.from({ length: 65 }, () => "f") })!, /call-site/);
  assert.equal(command({}, { transforms: [{ kind: "hide", name: "/a/" }] }), null, "it would be a regular expression");
  assert.equal(command({}, { transforms: [{ kind: "module", name: "" }] }), null, "it takes no empty name");
});

test("tables, callers and callees have commands of their own", () => {
  const table = { view: "table", kind: "FRAME_KIND", filter: "a|b", sort: "total" };
  assert.match(command(row("FRAME_KIND", "go"), table)!, /^hearth top .* --to 'now' --by-kind 'frame-kind' --search 'a\|b' --sort 'total'$/);
  assert.match(command({}, { view: "table", kind: "FUNCTION", filter: "", sort: "self" })!, /^hearth top .* --to 'now'$/);
  assert.match(command({}, { view: "sandwich", name: "a b" })!, /^hearth sandwich 'a b' '\{a=.* --to 'now'$/);
});

test("a reader of one parameter is notified only when that parameter changes", () => {
  const seen: string[] = [];
  const stop = effect(() => {
    seen.push(`${shownPage.value} ${param("q", "{}")}`);
  });
  const go = (params: Record<string, string>) => (address.value = { page: "profile", params });
  go({ zoom: "a" });
  go({ zoom: "a.b" });
  go({ zoom: "a.b", q: '{a="b"}' });
  stop();
  assert.deepEqual(seen, ["explore {}", "profile {}", 'profile {a="b"}']);
});
