import type { ComparingTexts } from "./comparing-en";

export const comparingZh: ComparingTexts = {
  sameQuestion: "同一查询的其他视图",
  title: (type) => `并排查看 ${type}`,
  searchBoth: "在两侧同时搜索（正则表达式）",
  linked: "同步缩放",
  linkedHint: "在一侧放大某个栈帧时，另一侧也放大到同一栈帧",
  missing: (name) => `${name}：这一侧没有`,
  change: (points) => `变化 ${points} 个百分点`,
};
