// The topology as a drawing. It is one stop of the Tab key: arrow keys move between connections and Enter opens one.
// Names are cut in their boxes and whole in the line above.
import { useMemo, useRef, useState } from "preact/hooks";
import { directingTexts } from "../../app/directing-texts";
import { boundedName, visibleName } from "../../flame/names";
import { BOX_HEIGHT, BOX_WIDTH, layoutNetwork } from "./network-layout";
import { change } from "../../url";
import { callName, componentsOf, nameOf, totalOf, type NetworkCall, type NetworkNode, type Traffic } from "./network-calls";

const NAME_LENGTH = 23; // of a box, in most letters
const PADDING = 8;
const ARROW = 6;

interface Props {
  instance: string;
  nodes: NetworkNode[];
  calls: NetworkCall[];
  chosen?: NetworkCall;
  bytes: Map<string, Traffic>;
}

// Returns 1 to 5 pixels. The root of the bytes keeps one large connection from making all others equally thin.
function widthOf(traffic: Traffic | undefined, largest: number): number {
  return largest > 0 ? 1 + 4 * Math.sqrt(totalOf(traffic) / largest) : 1.5;
}

function isVirtual({ detectType }: NetworkNode): boolean {
  return detectType === "DETECT_TYPE_VIRTUAL";
}

function describe(call: NetworkCall, nodes: Map<string, NetworkNode>): string {
  const addresses = [call.sourceId, call.destinationId].flatMap((id) => (nodes.get(id)?.addresses ?? []).slice(0, 3));
  return [callName(call, nodes), componentsOf(call), addresses.join(", ")].filter(Boolean).join(" · ");
}

function describeNode(node: NetworkNode): string {
  const known = isVirtual(node) ? directingTexts.value.network.virtual : [node.service, node.instance].filter(Boolean).join(" / ");
  return [visibleName(nameOf(node)), known, (node.addresses ?? []).slice(0, 5).join(", ")].filter(Boolean).join(" · ");
}

export function NetworkDrawing({ instance, nodes, calls, chosen, bytes }: Props) {
  const words = directingTexts.value.network;
  const [at, setAt] = useState<string>();
  const [pointed, setPointed] = useState<NetworkNode>();
  const box = useRef<HTMLDivElement>(null);
  const layout = useMemo(
    () =>
      layoutNetwork(
        nodes.map((node) => ({ id: node.processId, name: nameOf(node), isOwn: node.instance === instance && !isVirtual(node) })),
        calls.map(({ callId, sourceId, destinationId }) => ({ id: callId, source: sourceId, destination: destinationId })),
      ),
    [nodes, calls, instance],
  );
  const { byId, nodeById, ofNode } = useMemo(() => {
    const ofNode = new Map<string, NetworkCall[]>();
    for (const call of calls) {
      for (const id of new Set([call.sourceId, call.destinationId])) {
        ofNode.set(id, [...(ofNode.get(id) ?? []), call]);
      }
    }
    return { ofNode, byId: new Map(calls.map((call) => [call.callId, call])), nodeById: new Map(nodes.map((node) => [node.processId, node])) };
  }, [nodes, calls]);
  const largest = Math.max(0, ...[...bytes.values()].map(totalOf));
  const current = byId.get(at ?? "") ?? chosen;
  // Arrow keys go down the page, whatever the order of the server.
  const order = [...layout.edges].sort((a, b) => a.tip.y - b.tip.y || a.tip.x - b.tip.x || (a.id < b.id ? -1 : 1));
  const open = (id: string) => change({ call: id === chosen?.callId ? "" : id, metric: "" });
  const isLit = (call: NetworkCall) =>
    pointed ? call.sourceId === pointed.processId || call.destinationId === pointed.processId : call === current;

  const onKey = (event: KeyboardEvent) => {
    const step = ["ArrowDown", "ArrowRight"].includes(event.key) ? 1 : ["ArrowUp", "ArrowLeft"].includes(event.key) ? -1 : 0;
    if (step !== 0) {
      const i = order.findIndex(({ id }) => id === current?.callId);
      const next = order[i < 0 ? (step > 0 ? 0 : order.length - 1) : (i + step + order.length) % order.length];
      setPointed(undefined);
      setAt(next.id);
      box.current?.querySelector(`[data-edge="${next.id}"]`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else if ((event.key === "Enter" || event.key === " ") && current) {
      open(current.callId);
    } else {
      return;
    }
    event.preventDefault();
  };
  return (
    <>
      <p class="detail" role="status">
        {pointed ? describeNode(pointed) : current ? describe(current, nodeById) : <span class="muted">{words.hint}</span>}
      </p>
      <div
        class="drawing"
        ref={box}
        role="listbox"
        tabIndex={0}
        aria-label={words.drawing}
        aria-activedescendant={current && `edge-${current.callId}`}
        onKeyDown={onKey}
        onMouseLeave={() => (setPointed(undefined), setAt(undefined))}
      >
        <svg
          role="presentation"
          width={layout.width + 2 * PADDING}
          height={layout.height + 2 * PADDING}
          viewBox={`${-PADDING} ${-PADDING} ${layout.width + 2 * PADDING} ${layout.height + 2 * PADDING}`}
        >
          {layout.edges.map(({ id, path, tip }) => {
            const call = byId.get(id)!;
            const back = tip.isLeft ? ARROW : -ARROW;
            return (
              <g
                key={id}
                id={`edge-${id}`}
                data-edge={id}
                role="option"
                aria-selected={call === chosen}
                aria-label={describe(call, nodeById)}
                class={"edge" + (call === chosen ? " chosen-edge" : "") + (isLit(call) ? " lit" : "")}
                onMouseEnter={() => (setPointed(undefined), setAt(id))}
                onClick={() => open(id)}
              >
                <path class="touch" d={path} />
                <path d={path} style={{ strokeWidth: widthOf(bytes.get(id), largest) }} />
                <path class="arrow" d={`M${tip.x} ${tip.y}l${back} -4v8z`} />
              </g>
            );
          })}
          {layout.nodes.map(({ id, x, y }) => {
            const node = nodeById.get(id)!;
            const touching = ofNode.get(id) ?? [];
            return (
              <svg
                key={id}
                x={x}
                y={y}
                width={BOX_WIDTH}
                height={BOX_HEIGHT}
                class={"node" + (isVirtual(node) ? " virtual" : "") + (current && touching.includes(current) ? " lit" : "")}
                aria-hidden="true"
                onMouseEnter={() => setPointed(node)}
                onMouseLeave={() => setPointed(undefined)}
                onClick={() => touching.length === 1 && open(touching[0].callId)}
              >
                <rect x="0.5" y="0.5" width={BOX_WIDTH - 1} height={BOX_HEIGHT - 1} rx="4" />
                <svg x="6" width={BOX_WIDTH - 12} height={BOX_HEIGHT}>
                  <text y="16">{boundedName(nameOf(node), NAME_LENGTH)}</text>
                </svg>
              </svg>
            );
          })}
        </svg>
      </div>
    </>
  );
}
