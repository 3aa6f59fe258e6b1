// A small line without axes; null values are gaps.
import { linePath, type Values } from "./line-path";

const WIDTH = 96;
const HEIGHT = 20;

export function Spark({ values, largest }: { values: Values; largest: number }) {
  const xs = values.map((_, i) => 2 + (i / Math.max(1, values.length - 1)) * (WIDTH - 4));
  const yOf = (value: number) => HEIGHT - 2 - (largest > 0 ? value / largest : 0) * (HEIGHT - 4);
  return (
    <svg class="spark" width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
      <path d={linePath(xs, values, yOf)} />
    </svg>
  );
}
