// A small line without axes; null values are gaps.
import { linePath, type Values } from "./line-path";

const WIDTH = 96;
const HEIGHT = 20;
// A ring of a single point is larger than the line.
const INSET = 3;

export function Spark({ values, largest }: { values: Values; largest: number }) {
  const xs = values.map((_, i) => INSET + (i / Math.max(1, values.length - 1)) * (WIDTH - 2 * INSET));
  const yOf = (value: number) => HEIGHT - INSET - (largest > 0 ? value / largest : 0) * (HEIGHT - 2 * INSET);
  return (
    <svg class="spark" width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
      <path d={linePath(xs, values, yOf)} />
    </svg>
  );
}
