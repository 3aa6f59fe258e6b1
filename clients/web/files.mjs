import { readdirSync } from "node:fs";
import { join } from "node:path";

/** The paths of all files below a directory. */
export function filesBelow(directory) {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}
