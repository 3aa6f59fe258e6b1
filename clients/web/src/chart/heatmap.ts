// How a heatmap is drawn: the shades of its counts.

export const SHADES = 5;

// The least count of each shade. Counts differ by magnitudes, so the shades do, too.
export function shadesOf(most: number): number[] {
  if (most <= SHADES) {
    return Array.from({ length: most }, (_, i) => i + 1);
  }
  const bounds = Array.from({ length: SHADES }, (_, i) => Math.round(most ** (i / SHADES)));
  return bounds.filter((bound, i) => i === 0 || bound > bounds[i - 1]!);
}

/** Of few shades the palest is the first and the strongest the last. */
export function colourIndex(shade: number, n: number): number {
  return n < 2 ? SHADES - 1 : Math.round((shade * (SHADES - 1)) / (n - 1));
}

export function shadeOf(bounds: readonly number[], count: number): number {
  let shade = bounds.length - 1;
  while (shade > 0 && count < bounds[shade]!) {
    shade--;
  }
  return shade;
}
