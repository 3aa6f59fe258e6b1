// Texts of services without profiles, and of the first profile of a store.

export const exploreEn = {
  gone: "No profiles in this range",
  lastSeen: (ago: string) => `last profile received ${ago}`,
  otherTypes: (type: string, ago: string) => `no ${type}; last profile of any type received ${ago}`,
  openThen: (service: string) => `Open ${service} at that time`,
  max: "Highest",
  moreValues: (n: string) => `Further values: ${n}`,
  moreLabels: (n: string) => `Further labels: ${n}`,

  noneYet: "No profiles yet",
  sendFirst: "Send the first one:",
  emptyRange: (service: string, ago: string) => `The last profile was received from ${service}, ${ago}.`,
  showThen: "Show that time",
  sendMore: "Or send another one:",
  waiting: "This line says so when a profile arrives.",
  received: (service: string) => `A profile was received from ${service}.`,
  open: "Open it",
  needsToken: "This server wants a token of everybody who sends. Replace TOKEN by one that an administrator gives you.",
  makeToken: "Create a token for it",
  tokenMade: "The token is filled in, and shown only until you leave this page.",
  notes: {
    Datadog: "Profiles come here instead of to Datadog's agent, and traces are dropped. The first upload takes a minute.",
    SkyWalking: "An agent of SkyWalking profiles only when a task asks it to. Start one on the page Tasks.",
    OpenTelemetry: "The Collector needs version 0.148 or later.",
  } as Record<string, string>,
  datadogToken: "Datadog's libraries send no token to an agent, so they need an address of this server that asks for none, or a proxy that adds one.",
};

export type ExploreTexts = typeof exploreEn;
