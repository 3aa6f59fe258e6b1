// What happened at a moment of a chart, as ticks on its top edge. Those too near to be told apart share one.
export interface Marker {
  atMs: number;
  name: string;
  onOpen?(): void;
}

interface Cluster {
  x: number;
  markers: Marker[];
}

// As wide as a target for a finger.
const NEAR_PX = 24;
const MAX_NAMES = 6;

export function clustersOf(markers: Marker[], toX: (ms: number) => number): Cluster[] {
  const clusters: Cluster[] = [];
  for (const marker of [...markers].sort((a, b) => a.atMs - b.atMs)) {
    const x = toX(marker.atMs);
    const last = clusters.at(-1);
    if (last && x - last.x < NEAR_PX) {
      last.markers.push(marker);
    } else {
      clusters.push({ x, markers: [marker] });
    }
  }
  return clusters;
}

export function Markers({ clusters, label, width }: { clusters: Cluster[]; label: string; width: number }) {
  return (
    <ul class="markers" aria-label={label}>
      {clusters.map(({ x, markers }) => {
        const names = markers.slice(0, MAX_NAMES).map(({ name }) => name);
        const more = markers.length > MAX_NAMES ? [`+${markers.length - MAX_NAMES}`] : [];
        const first = markers[0];
        return (
          <li key={`${first.atMs} ${first.name}`} style={{ left: `${x}px` }}>
            <button type="button" aria-label={[...names, ...more].join("; ")} onClick={() => first.onOpen?.()}>
              <span data-count={markers.length > 1 ? markers.length : ""} />
            </button>
            <span class={x > width / 2 ? "marker-name to-left" : "marker-name"} aria-hidden="true">
              {[...names, ...more].map((name) => (
                <span key={name}>{name}</span>
              ))}
            </span>
          </li>
        );
      })}
    </ul>
  );
}
