// Texts of the pages that compare: two sides, the history of a function, the heatmap.

export const comparingEn = {
  sameQuestion: "Other views of the same query",
  title: (type: string) => `${type} side by side`,
  searchBoth: "Search both sides (regular expression)",
  linked: "Zoom together",
  linkedHint: "A zoom on one side zooms the other to the same frame",
  missing: (name: string) => `${name}: not on this side`,
  change: (points: string) => `change ${points} points`,
};

export type ComparingTexts = typeof comparingEn;
