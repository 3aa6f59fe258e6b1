// A table as text for a spreadsheet or for a comment of a review.
export interface CopiedTable {
  header: string[];
  rows: string[][];
}

// A tab or a line feed in a name would begin another cell.
function plainCell(text: string): string {
  return text.replace(/[\t\r\n]/g, " ");
}

export function tsvOf({ header, rows }: CopiedTable): string {
  return [header, ...rows].map((cells) => cells.map(plainCell).join("\t") + "\n").join("");
}

// Everything that Markdown or HTML within it gives a meaning to.
function markdownCell(text: string): string {
  return plainCell(text).replace(/[\\`*_{}[\]<>&|~#]/g, "\\$&");
}

// The first column is text, all others are numbers.
export function markdownOf({ header, rows }: CopiedTable): string {
  const line = (cells: string[]) => `| ${cells.join(" | ")} |\n`;
  const rule = line(header.map((_, i) => (i === 0 ? "---" : "---:")));
  return line(header.map(markdownCell)) + rule + rows.map((cells) => line(cells.map(markdownCell))).join("");
}
