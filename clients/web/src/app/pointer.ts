// A caret below the place that the server names in bytes.
export function pointer(text: string, offset: number): string {
  const before = new TextDecoder().decode(new TextEncoder().encode(text).subarray(0, offset));
  return " ".repeat([...before].length) + "^";
}

// The byte of a selector at which the server stopped reading, as its refusal says it.
export function offsetOf(message: string): number | undefined {
  const found = /^selector: .* at offset (\d+)$/s.exec(message);
  return found ? Number(found[1]) : undefined;
}
