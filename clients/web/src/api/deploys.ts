// When new versions of a program first appear in a range: the first step that has profiles with a new value of a label that
// names versions.
import type { Span } from "../time";
import type { Timeline } from "./timeline";

// In order of precedence; dots of OpenTelemetry's names are underscores in labels.
const VERSION_LABELS = ["service_version", "version", "app_version", "git_ref", "git_commit", "git_sha", "revision", "release"];

export interface Deploy {
  version: string;
  atMs: number;
}

export function versionLabel(names: readonly string[]): string | undefined {
  return VERSION_LABELS.find((label) => names.includes(label));
}

// A version that is there from the first profile on was not deployed within the range.
export function deploysOf({ timesMs, lines }: Timeline, label: string): Deploy[] {
  const firsts = lines.map(({ labels, values }) => ({ version: labels[label] ?? "", at: values.findIndex((value) => value !== null) }));
  const earliest = Math.min(...firsts.filter(({ at }) => at >= 0).map(({ at }) => at));
  return firsts.filter(({ version, at }) => version !== "" && at > earliest).map(({ version, at }) => ({ version, atMs: timesMs[at]! }));
}

// The longest windows of one length that the range has before and after the deploy.
export function around(atMs: number, { startMs, endMs }: Span): { before: Span; after: Span } {
  const length = Math.min(atMs - startMs, endMs - atMs);
  return { before: { startMs: atMs - length, endMs: atMs }, after: { startMs: atMs, endMs: atMs + length } };
}
