import type { AskingTexts } from "./asking-en";

export const askingZh: AskingTexts = {
  table: {
    kind: "表格的行",
    kinds: {
      FUNCTION: "函数",
      LINE: "代码行",
      FILE: "文件",
      DIRECTORY: "目录",
      CLASS: "类",
      PACKAGE: "包或库",
      MODULE: "可执行文件、动态库",
      THREAD: "线程",
      FRAME_KIND: "代码类别",
    },
    filter: "筛选行（正则表达式）",
    copy: "复制为",
    unknown: "（未知）",
    narrow: (name) => `只看包含 ${name} 的样本`,
    rows: (n) => `共 ${n} 行`,
    part: (shown, all) => `已显示 ${shown} 行，共 ${all} 行。`,
    more: (n) => `再加载 ${n} 行`,
  },
  selector: {
    choices: { name: "标签", operator: "运算符", value: "取值", end: "标签" },
    operators: { "=": "等于", "!=": "不等于", "=~": "匹配（正则表达式）", "!~": "不匹配" },
    uploads: (n) => `${n} 次上传`,
    keys: "方向键选择，Tab 填入，Enter 应用选择器",
  },
  chips: {
    rows: (kind, names) => `${kind}：${names}`,
  },
};
