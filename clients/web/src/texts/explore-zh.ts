import type { ExploreTexts } from "./explore-en";

export const exploreZh: ExploreTexts = {
  gone: "此时间范围内没有剖析",
  lastSeen: (ago) => `最近收到剖析：${ago}`,
  otherTypes: (type, ago) => `没有 ${type}；最近收到其他类型的剖析：${ago}`,
  openThen: (service) => `查看 ${service} 当时的剖析`,
  max: "最高",
  moreValues: (n) => `还有 ${n} 个取值`,
  moreLabels: (n) => `再显示 ${n} 个标签`,

  noneYet: "还没有剖析",
  sendFirst: "发送第一份：",
  emptyRange: (service, ago) => `最近一份剖析来自 ${service}，${ago}。`,
  showThen: "查看当时",
  sendMore: "也可以再发送一份：",
  waiting: "收到剖析后，这里会提示。",
  received: (service) => `已收到 ${service} 的剖析。`,
  open: "打开",
  needsToken: "发送剖析需要令牌。请把 TOKEN 换成管理员提供的令牌。",
  makeToken: "创建令牌",
  tokenMade: "令牌已填入，离开本页后不再显示。",
  notes: {
    Datadog: "剖析会发到这里，而不再发给 Datadog 的代理；链路数据会被丢弃。首次上传约需一分钟。",
    SkyWalking: "SkyWalking 的代理只在收到任务时剖析，请在“任务”页发起任务。",
    OpenTelemetry: "Collector 需要 0.148 或更高版本。",
  },
  datadogToken: "Datadog 的库不会向代理发送令牌，因此需要本服务器的一个免令牌地址，或由反向代理补上令牌。",
};
