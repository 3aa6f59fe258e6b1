import assert from "node:assert/strict";
import { test } from "node:test";
import { BOX_HEIGHT, BOX_WIDTH, layoutNetwork, type Edge, type Node } from "../src/pages/directing/network-layout";

const node = (id: string, isOwn = false): Node => ({ id, name: id, isOwn });
const edge = (source: string, destination: string): Edge => ({ id: `${source}-${destination}`, source, destination });
const star = (n: number): [Node[], Edge[]] => {
  const peers = Array.from({ length: n }, (_, i) => `peer-${String(i).padStart(3, "0")}`);
  return [[node("app", true), ...peers.map((id) => node(id))], peers.map((id, i) => (i % 3 === 0 ? edge(id, "app") : edge("app", id)))];
};

test("callers stand to the left of the instance, what it calls to the right", () => {
  const { nodes } = layoutNetwork([node("db"), node("app", true), node("client")], [edge("app", "db"), edge("client", "app")]);
  const x = Object.fromEntries(nodes.map(({ id, x }) => [id, x]));
  assert.ok(x.client < x.app && x.app < x.db);
});

test("the same topology gives the same picture in whatever order it is named", () => {
  const [nodes, edges] = star(20);
  const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
  const one = layoutNetwork(nodes, edges);
  const other = layoutNetwork([...nodes].reverse(), [...edges].reverse());
  assert.deepEqual(other.nodes.sort(byId), one.nodes.sort(byId));
  assert.deepEqual(other.edges.sort(byId), one.edges.sort(byId));
});

test("boxes never cover each other, with few and with many nodes", () => {
  for (const n of [1, 3, 14, 15, 58, 200]) {
    const { nodes, width, height } = layoutNetwork(...star(n));
    assert.equal(nodes.length, n + 1);
    nodes.forEach((a, i) => {
      assert.ok(a.x >= 0 && a.y >= 0 && a.x + BOX_WIDTH <= width && a.y + BOX_HEIGHT <= height);
      nodes.slice(i + 1).forEach((b) => {
        assert.ok(Math.abs(a.x - b.x) >= BOX_WIDTH || Math.abs(a.y - b.y) >= BOX_HEIGHT, `${a.id} ${b.id} of ${n}`);
      });
    });
  }
});

test("loops, calls of itself and unknown ends do not hang or throw", () => {
  const nodes = [node("a", true), node("b"), node("c")];
  const { edges } = layoutNetwork(nodes, [edge("a", "b"), edge("b", "c"), edge("c", "a"), edge("a", "a"), edge("b", "a"), edge("a", "gone")]);
  assert.equal(edges.length, 5);
  assert.ok(edges.every(({ path }) => !/NaN|undefined/.test(path)));
  assert.deepEqual(layoutNetwork([], []), { nodes: [], edges: [], width: 0, height: 0 });
});
