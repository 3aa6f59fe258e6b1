// Offers a file to the person in front of the page.
const KEEP_MS = 60_000;

export function saveFile(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // Some browsers read it only after the click has been handled.
  setTimeout(() => URL.revokeObjectURL(link.href), KEEP_MS);
}
