// Texts of administration.

export const adminEn = {
  title: "Administration",
  parts: {
    state: "State",
    applications: "Services",
    limits: "Limits",
    retention: "Retention and disk",
    deletion: "Deletion",
    errors: "Refused uploads",
    scrape: "Scrape targets",
    access: "Access",
    audit: "Audit log",
  } as Record<string, string>,

  // What several parts say.
  name: "Name",
  selector: "Label selector",
  range: "Range of time",
  changed: "Changed",
  changedBy: (name: string, time: string) => `by ${name}, ${time}`,
  createdBy: "Created by",
  createdByAt: (name: string, time: string) => `created by ${name}, ${time}`,
  edit: "Change",
  save: "Save",
  leave: "Cancel",
  find: "Find",
  delete: "Delete",
  really: "Delete for good",
  reset: "Use the server's",
  never: "never",
  noneMatches: "Nothing matches the filter.",
  onlyFirst: (shown: string, all: string) => `The first ${shown} of ${all} are shown. Filter to see others.`,
  latestOnly: (shown: string) => `Only the latest ${shown} are shown.`,
  onlyThese: "Show only these",
  showAll: "Show all",

  // State.
  ready: "This server is ready.",
  degraded: "This server answers queries, but refuses profiles:",
  notReady: "This server is not ready:",
  work: "Background work",
  builder: (host: string) => `The server on ${host} makes roll-ups.`,
  noBuilder: "No server makes roll-ups now. Queries over long ranges are slower, because they read single profiles.",
  lag: (lag: string) => `Roll-ups are ${lag} behind.`,
  noLag: "Roll-ups are up to date.",
  oldest: (time: string) => `The oldest profile is from ${time}.`,
  late: (n: string) => `${n} late profiles are not in roll-ups yet. Queries read them one by one.`,
  tombstones: (n: string) => `${n} deletions are hidden, but not removed from disk yet.`,
  checks: "Checks of the database",
  wrong: "Wrong",
  advice: "Advice",
  fine: (n: string) => `${n} checks found nothing to improve`,
};

export type AdminTexts = typeof adminEn;
