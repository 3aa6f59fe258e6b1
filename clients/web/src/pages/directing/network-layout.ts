// Where the processes of a topology stand: those of the instance in the middle, peers that only call on the left, peers
// that are called on the right. The same topology gives the same picture, whatever order the server names it in.

interface LaidNode {
  id: string;
  x: number;
  y: number;
}

interface LaidEdge {
  id: string;
  path: string;
  // The tip of its arrow, and whether it points to the left.
  tip: { x: number; y: number; isLeft: boolean };
}

interface NetworkLayout {
  nodes: LaidNode[];
  edges: LaidEdge[];
  width: number;
  height: number;
}

export interface Node {
  id: string;
  name: string;
  // A process of the instance that was watched.
  isOwn: boolean;
}

export interface Edge {
  id: string;
  source: string;
  destination: string;
}

export const BOX_WIDTH = 176;
export const BOX_HEIGHT = 24;
const ROW = 32;
const GAP = 112;
// A tall layer stands in two columns, like bricks: lines to the far one run through the gaps of the near one.
const TALL = 14;
const BRICK_ROW = 16;
const COLUMN = BOX_WIDTH + 16;
// Lines back to the left leave and arrive a little lower, so that they do not hide those in the other direction.
const BACK = 6;
const BOW = 40;

// Names may be equal; ids are not.
function compare(a: Node, b: Node): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : a.id < b.id ? -1 : 1;
}

// Sorts peers by the mean place of the processes that they talk to, then by name.
function orderLayer(layer: Node[], own: Map<string, number>, edges: Edge[]): Node[] {
  const places = new Map<string, number[]>(layer.map(({ id }) => [id, []]));
  for (const { source, destination } of edges) {
    for (const [id, other] of [[source, destination], [destination, source]]) {
      const place = own.get(other);
      if (place !== undefined) {
        places.get(id)?.push(place);
      }
    }
  }
  const mean = ({ id }: Node) => {
    const all = places.get(id)!;
    return all.length === 0 ? -1 : all.reduce((sum, each) => sum + each, 0) / all.length;
  };
  return [...layer].sort((a, b) => mean(a) - mean(b) || compare(a, b));
}

interface Placed extends LaidNode {
  layer: number;
  // The sides of the layer, where lines bend.
  leftX: number;
  rightX: number;
}

function place(layers: Node[][], hasCallers: boolean): Map<string, Placed> {
  const heightOf = (n: number) => (n > TALL ? (n + 1) * BRICK_ROW : n * ROW);
  const height = Math.max(...layers.map((layer) => heightOf(layer.length)));
  const placed = new Map<string, Placed>();
  let x = 0;
  layers.forEach((layer, i) => {
    const isTall = layer.length > TALL;
    const width = isTall ? COLUMN + BOX_WIDTH : BOX_WIDTH;
    const above = (height - heightOf(layer.length)) / 2;
    // Callers have their lines on the right, so their near column is the right one.
    const isNearRight = hasCallers && i === 0;
    layer.forEach(({ id }, k) => {
      const isRight = isTall && (k % 2 === 0) === isNearRight;
      const y = above + (isTall ? k * BRICK_ROW : k * ROW) + (ROW - BOX_HEIGHT) / 2;
      placed.set(id, { id, layer: i, x: x + (isRight ? COLUMN : 0), y, leftX: x, rightX: x + width });
    });
    x += width + GAP;
  });
  return placed;
}

function pathOf(from: Placed, to: Placed): Omit<LaidEdge, "id"> {
  const middle = BOX_HEIGHT / 2;
  if (from.layer === to.layer) {
    // Calls within a layer, also of a process to itself, are bows on its right.
    const x = from.rightX;
    const [y, end] = [from.y + middle - 4, to.y + middle + 4];
    const path = `M${from.x + BOX_WIDTH} ${y}H${x}C${x + BOW} ${y} ${x + BOW} ${end} ${x} ${end}H${to.x + BOX_WIDTH}`;
    return { path, tip: { x: to.x + BOX_WIDTH, y: end, isLeft: true } };
  }
  const isBack = from.layer > to.layer;
  const lower = middle + (isBack ? BACK : 0);
  const [y, end] = [from.y + lower, to.y + lower];
  const [start, tip] = isBack ? [from.x, to.x + BOX_WIDTH] : [from.x + BOX_WIDTH, to.x];
  const [bend, arrive] = isBack ? [from.leftX, to.rightX] : [from.rightX, to.leftX];
  const half = (bend + arrive) / 2;
  return { path: `M${start} ${y}H${bend}C${half} ${y} ${half} ${end} ${arrive} ${end}H${tip}`, tip: { x: tip, y: end, isLeft: isBack } };
}

export function layoutNetwork(nodes: Node[], edges: Edge[]): NetworkLayout {
  const called = new Set(edges.map(({ destination }) => destination));
  const own = nodes.filter(({ isOwn }) => isOwn).sort(compare);
  const places = new Map(own.map(({ id }, i) => [id, i]));
  const peers = (isCalled: boolean) =>
    orderLayer(nodes.filter(({ id, isOwn }) => !isOwn && called.has(id) === isCalled), places, edges);
  const layers = [peers(false), own, peers(true)].filter((layer) => layer.length > 0);
  if (layers.length === 0) {
    return { nodes: [], edges: [], width: 0, height: 0 };
  }

  const placed = place(layers, layers[0] !== own);
  const all = [...placed.values()];
  const drawn = edges.flatMap(({ id, source, destination }) => {
    const [from, to] = [placed.get(source), placed.get(destination)];
    return from && to ? [{ id, ...pathOf(from, to) }] : [];
  });
  // Bows of the last layer need room on the right.
  const isBowed = edges.some(({ source, destination }) => placed.get(source)?.layer === layers.length - 1 && placed.get(destination)?.layer === layers.length - 1);
  return {
    nodes: all.map(({ id, x, y }) => ({ id, x, y })),
    edges: drawn,
    width: Math.max(...all.map(({ rightX }) => rightX)) + (isBowed ? BOW : 0),
    height: Math.max(...all.map(({ y }) => y)) + BOX_HEIGHT + (ROW - BOX_HEIGHT) / 2,
  };
}
