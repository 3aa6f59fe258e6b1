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
  range: {
    zone: (name) => `所有时间均为此浏览器的时区：${name}。`,
    linkHint: (range) => `链接在任何时候打开都一样：其中的“${range}”已换成此刻对应的时间。`,
    copied: "已复制",
  },
  selector: {
    choices: { name: "标签", operator: "运算符", value: "取值", end: "标签" },
    operators: { "=": "等于", "!=": "不等于", "=~": "匹配（正则表达式）", "!~": "不匹配" },
    uploads: (n) => `${n} 次上传`,
    keys: "方向键选择，Tab 填入，Enter 应用选择器",
  },
  timeline: {
    label:
      "开销随时间的变化。拖动可选择时间范围；按住 Alt 拖动可与此前同样长的时间对比；双击回到完整范围。键盘：方向键移动，Shift 加方向键选择，Enter 应用，Alt+Enter 对比，Esc 返回。",
    others: "其余",
    only: (name) => `只看 ${name}`,
    compare: "对比一段时间",
    compareHint: "接下来选中的时间段会与它之前同样长的一段对比。按住 Alt 拖动效果相同。",
    reset: "完整范围",
    resetHint: "回到第一次选择之前的范围，双击效果相同。",
    gap: "没有剖析数据",
    markers: "任务",
    task: (name) => `任务：${name}`,
    policy: (name) => `由策略触发：${name}`,
    trigger: (name, cause) => `由策略触发：${name}（${cause}）`,
  },
  chips: {
    rows: (kind, names) => `${kind}：${names}`,
  },
};
