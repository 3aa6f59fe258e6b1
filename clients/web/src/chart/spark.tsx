// A small line without axes; null values are gaps.
const WIDTH = 96;
const HEIGHT = 20;

export function Spark({ values, largest }: { values: (number | null)[]; largest: number }) {
  let path = "";
  let isDown = false;
  values.forEach((value, i) => {
    if (value === null) {
      isDown = false;
      return;
    }
    const x = (i / Math.max(1, values.length - 1)) * WIDTH;
    const y = HEIGHT - 1 - (largest > 0 ? value / largest : 0) * (HEIGHT - 2);
    // A single point between gaps is drawn as a short line, or it would not be seen.
    path += isDown ? `L${x.toFixed(1)} ${y.toFixed(1)}` : `M${Math.max(0, x - 2).toFixed(1)} ${y.toFixed(1)}L${x.toFixed(1)} ${y.toFixed(1)}`;
    isDown = true;
  });
  return (
    <svg class="spark" width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
      <path d={path} />
    </svg>
  );
}
