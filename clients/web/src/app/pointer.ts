// A caret below the place that the server names in bytes.
export function pointer(text: string, offset: number): string {
  const before = new TextDecoder().decode(new TextEncoder().encode(text).subarray(0, offset));
  return " ".repeat([...before].length) + "^";
}
