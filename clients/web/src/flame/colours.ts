// Colours of frames in OKLCH, where equal steps look equal, turned to sRGB once per name.
import { changeOf, isChanged } from "./diff";
import { hashText, isBackground, kindOf, packageOf, type FrameKind } from "./names";
import { OTHER, type FlameTree } from "./tree";

export type Palette = "package" | "kind" | "self";

/** Red, green, blue, 0 to 255. */
export type Rgb = readonly [number, number, number];

function gamma(linear: number): number {
  const v = linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055;
  return Math.round(255 * Math.min(1, Math.max(0, v)));
}

/** Source: Björn Ottosson, "A perceptual color space for image processing" (2020). */
export function oklch(lightness: number, chroma: number, hue: number): Rgb {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    gamma(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    gamma(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    gamma(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

const texts = new WeakMap<Rgb, string>();

/** "#rrggbb", made once per colour: a picture asks some ten thousand times. */
export function css(colour: Rgb): string {
  let text = texts.get(colour);
  if (!text) {
    text = "#" + colour.map((v) => v.toString(16).padStart(2, "0")).join("");
    texts.set(colour, text);
  }
  return text;
}

const numbered: Rgb[] = [[0, 0, 0]];
const numbers = new Map<number, number>();

/** Equal colours have one number, from 1 on: pictures sort their boxes by it. */
export function numberOf(colour: Rgb): number {
  const [red, green, blue] = colour;
  const key = (red << 16) | (green << 8) | blue;
  let number = numbers.get(key);
  if (number === undefined) {
    number = numbered.push(colour) - 1;
    numbers.set(key, number);
  }
  return number;
}

export function colourOf(number: number): Rgb {
  return numbered[number]!;
}

/** One more than the largest number. */
export function colourCount(): number {
  return numbered.length;
}

function luminance(colour: Rgb): number {
  const [r, g, b] = colour.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

/** WCAG 2.2's ratio, 1 to 21. */
export function contrast(one: Rgb, other: Rgb): number {
  const [a, b] = [luminance(one), luminance(other)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

export interface Theme {
  background: Rgb;
  text: Rgb;
  muted: Rgb;
  hairline: Rgb;
  accent: Rgb;
  /** Lightness of boxes that have a hue. */
  boxLightness: number;
  neutral: Rgb;
  quiet: Rgb;
  match: Rgb;
  culled: Rgb;
  root: Rgb;
  more: { lightness: number; chroma: number; hue: number };
  less: { lightness: number; chroma: number; hue: number };
}

export const LIGHT: Theme = {
  background: oklch(0.985, 0.003, 90),
  text: oklch(0.24, 0.012, 260),
  muted: oklch(0.5, 0.012, 260),
  hairline: oklch(0.9, 0.004, 260),
  accent: oklch(0.6, 0.17, 45),
  boxLightness: 0.82,
  neutral: oklch(0.86, 0.01, 90),
  quiet: oklch(0.86, 0.015, 80),
  match: oklch(0.65, 0.22, 340),
  culled: oklch(0.8, 0.004, 260),
  root: oklch(0.9, 0.006, 260),
  more: { lightness: 0.7, chroma: 0.16, hue: 45 },
  less: { lightness: 0.7, chroma: 0.13, hue: 248 },
};

export const DARK: Theme = {
  background: oklch(0.185, 0.008, 260),
  text: oklch(0.95, 0.005, 90),
  muted: oklch(0.7, 0.01, 260),
  hairline: oklch(0.31, 0.01, 260),
  accent: oklch(0.75, 0.15, 58),
  boxLightness: 0.5,
  neutral: oklch(0.4, 0.01, 90),
  quiet: oklch(0.4, 0.015, 80),
  match: oklch(0.65, 0.22, 340),
  culled: oklch(0.42, 0.006, 260),
  root: oklch(0.32, 0.01, 260),
  more: { lightness: 0.52, chroma: 0.15, hue: 42 },
  less: { lightness: 0.5, chroma: 0.12, hue: 248 },
};

export const HUES = 24;
export const KINDS: FrameKind[] = ["go", "java", "script", "native", "kernel", "unknown"];
const KIND_HUE: Record<FrameKind, number> = { go: 200, java: 145, script: 265, native: 90, kernel: 45, unknown: 0 };

const boxColours = new Map<Theme, Map<number, Rgb>>();

/** Boxes have few hues, and thousands of names share them: each is computed once. */
function boxColour(theme: Theme, hue: number): Rgb {
  const ofTheme = boxColours.get(theme) ?? new Map<number, Rgb>();
  boxColours.set(theme, ofTheme);
  const colour = ofTheme.get(hue) ?? oklch(theme.boxLightness, 0.085, hue);
  ofTheme.set(hue, colour);
  return colour;
}

/** The colour of a package is the same in every table and picture, on every machine. */
export function packageColour(theme: Theme, packageName: string): Rgb {
  if (isBackground(packageName)) {
    return theme.quiet;
  }
  return boxColour(theme, (hashText(packageName) % HUES) * (360 / HUES));
}

export function kindColour(theme: Theme, kind: FrameKind): Rgb {
  return kind === "unknown" ? theme.quiet : boxColour(theme, KIND_HUE[kind]);
}

/** Names without a package, as C's, have a hue of their own: otherwise a whole program would be one colour. */
export function nameColour(theme: Theme, palette: Palette, name: string): Rgb {
  if (name === OTHER) {
    return theme.culled;
  }
  return palette === "kind" ? kindColour(theme, kindOf(name)) : packageColour(theme, packageOf(name) || name);
}

/** From yellow, nothing of its own, to red, all of the tree's largest self. */
export function selfColour(theme: Theme, self: number, largest: number): Rgb {
  const heat = largest > 0 ? Math.sqrt(self / largest) : 0;
  return oklch(theme.boxLightness - 0.06 * heat, 0.03 + 0.11 * heat, 95 - 65 * heat);
}

function mix(from: Rgb, to: Rgb, share: number): Rgb {
  return [0, 1, 2].map((i) => Math.round(from[i]! + (to[i]! - from[i]!) * share)) as unknown as Rgb;
}

/** `position` from -1, the largest decrease, to 1, the largest increase. */
export function changeColour(theme: Theme, position: number): Rgb {
  const end = position > 0 ? theme.more : theme.less;
  return mix(theme.neutral, oklch(end.lightness, end.chroma, end.hue), Math.sqrt(Math.min(1, Math.abs(position))));
}

export function diffColour(theme: Theme, tree: FlameTree, node: number, domain: number): Rgb {
  return domain === 0 || !isChanged(tree, node)
    ? theme.neutral
    : changeColour(theme, (changeOf(tree, node)?.points ?? 0) / domain);
}

/** The same lightness with hardly any hue: what a search did not find. */
export function desaturated(theme: Theme): Rgb {
  return oklch(theme.boxLightness + (theme === LIGHT ? 0.06 : -0.08), 0.01, 80);
}

export function textOn(theme: Theme, fill: Rgb): Rgb {
  const dark = LIGHT.text;
  const light = DARK.text;
  const preferred = theme === LIGHT ? dark : light;
  if (contrast(preferred, fill) >= 4.5) {
    return preferred;
  }
  return contrast(dark, fill) > contrast(light, fill) ? dark : light;
}
