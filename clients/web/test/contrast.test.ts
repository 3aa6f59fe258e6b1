import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

type Rgb = [number, number, number];

// CSS Color 4: oklch to linear sRGB, cut to what a screen shows.
function linearRgb(lightness: number, chroma: number, hue: number): Rgb {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const rgb: Rgb = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return rgb.map((each) => Math.min(1, Math.max(0, each))) as Rgb;
}

// WCAG 2: relative luminance and the ratio of two of them.
function contrast(one: Rgb, other: Rgb): number {
  const luminance = ([r, g, b]: Rgb) => 0.2126 * r + 0.7152 * g + 0.0722 * b;
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

const css = readFileSync("src/styles/tokens.css", "utf8");

function tokensOf(block: string): Map<string, Rgb> {
  const found = block.matchAll(/--([\w-]+): oklch\(([\d.]+) ([\d.]+) ([\d.]+)\)/g);
  return new Map([...found].map(([, name, l, c, h]) => [name, linearRgb(Number(l), Number(c), Number(h))]));
}

const [light, dark] = css.split(':root[data-theme="dark"]').map(tokensOf);
const TEXTS = ["text", "muted", "ember", "warn", "error"];
const GROUNDS = ["background", "surface", "raised"];

for (const [theme, tokens] of [["light", light], ["dark", dark]] as const) {
  test(`texts of the ${theme} theme have a contrast of 4.5 on each ground`, () => {
    for (const text of TEXTS) {
      for (const ground of GROUNDS) {
        const ratio = contrast(tokens.get(text)!, tokens.get(ground)!);
        assert.ok(ratio >= 4.5, `${text} on ${ground}: ${ratio.toFixed(2)}`);
      }
    }
    assert.ok(contrast(tokens.get("on-ember")!, tokens.get("ember")!) >= 4.5, "on-ember on ember");
  });

  test(`graphics of the ${theme} theme have a contrast of 3`, () => {
    for (const graphic of ["cool", "ember", "heat-1", "heat-2", "heat-3", "heat-4", "heat-5"]) {
      for (const ground of GROUNDS) {
        assert.ok(contrast(tokens.get(graphic)!, tokens.get(ground)!) >= 3, `${graphic} on ${ground}`);
      }
    }
  });
}
