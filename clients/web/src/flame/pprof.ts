// What is seen as a pprof file (google/pprof, proto/profile.proto): a location and a function for each name.
import { stackTraces, type Sides } from "./export";
import { visibleName } from "./names";
import { Writer } from "./protobuf";
import type { FlameTree } from "./tree";

const PROFILE = { sampleType: 1, sample: 2, location: 4, function: 5, string: 6 };

function message(...fields: [number, number][]): Writer {
  const writer = new Writer();
  fields.forEach(([field, value]) => writer.number(field, value));
  return writer;
}

function packed(values: number[]): Writer {
  const writer = new Writer();
  values.forEach((value) => writer.varint(value));
  return writer;
}

/** `type` says what was measured; a diff has two values a sample, which are called as its sides. */
export function pprofBytes(tree: FlameTree, zoomNode: number, type: string, unit: string, sides: Sides): Uint8Array {
  const strings = new Map([["", 0]]);
  const string = (text: string) => {
    const at = strings.get(text) ?? strings.size;
    strings.set(text, at);
    return at;
  };
  const profile = new Writer();
  for (const name of tree.diff ? [sides.baseline, sides.comparison] : [type]) {
    profile.field(PROFILE.sampleType, message([1, string(name)], [2, string(unit)]));
  }

  const functions = new Set<number>();
  for (const { frames, values } of stackTraces(tree, zoomNode)) {
    frames.forEach((frame) => functions.add(frame));
    const sample = new Writer();
    // Ids begin with 1, and the innermost frame stands first.
    sample.field(1, packed(frames.map((frame) => frame + 1).reverse()));
    sample.field(2, packed(values));
    profile.field(PROFILE.sample, sample);
  }

  for (const name of functions) {
    const location = message([1, name + 1]);
    location.field(4, message([1, name + 1]));
    profile.field(PROFILE.location, location);
    profile.field(PROFILE.function, message([1, name + 1], [2, string(visibleName(tree.names[name]!))]));
  }
  const encoder = new TextEncoder();
  [...strings.keys()].forEach((text) => profile.field(PROFILE.string, encoder.encode(text)));
  return profile.done().slice();
}

/** As pprof's own tools write it. */
export async function gzipBlob(bytes: Uint8Array): Promise<Blob> {
  const packedBytes = new Blob([bytes as BlobPart]).stream().pipeThrough(new CompressionStream("gzip"));
  return new Response(packedBytes).blob();
}
