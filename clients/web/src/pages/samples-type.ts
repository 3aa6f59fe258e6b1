// Which profile type counts the samples of another one.

/** Finds the id of the type that counts the samples of the same profiles; undefined if they lack it or `type` itself counts them. */
export function samplesType(types: readonly string[], type: string): string | undefined {
  const [name, , , ...period] = type.split(":");
  const isSibling = (id: string) => id.split(":")[0] === name && id.split(":").slice(3).join(":") === period.join(":");
  const found = types.find((id) => id.split(":").slice(1, 3).join(":") === "samples:count" && isSibling(id));
  return found !== type ? found : undefined;
}
