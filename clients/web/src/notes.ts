/** What an answer lacks, in the server's words. */
export function notesOf(response: Response): string[] {
  // Several headers arrive joined by commas, which notes have too: they stay one text.
  const joined = response.headers.get("hearth-note");
  if (!joined) return [];
  try {
    return [decodeURIComponent(joined)];
  } catch {
    return [joined];
  }
}
