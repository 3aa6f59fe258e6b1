// Standard input: {expressions: [[where, PromQL]], units: [[where, unit]]}. Standard output: a line for each mistake.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import { parser } from '@prometheus-io/lezer-promql';

globalThis.navigator ??= { language: 'en', languages: ['en'] }; // which @grafana/data asks
const { getValueFormats } = createRequire(import.meta.url)('@grafana/data');

const { expressions, units } = JSON.parse(fs.readFileSync(0, 'utf8'));
for (const [where, text] of expressions) {
  parser.parse(text).iterate({
    enter(node) {
      if (node.type.isError) console.log(`${where}: a mistake at character ${node.from} of ${text}`);
    },
  });
}
const known = new Set(getValueFormats().flatMap((group) => group.submenu.map((format) => format.value)));
for (const [where, unit] of units) {
  if (!known.has(unit)) console.log(`${where}: Grafana has no unit ${unit}`);
}
