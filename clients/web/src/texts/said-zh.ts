// Sentences of the server that people often meet: why nothing matched, and which limit was met. A sentence that is not here is shown
// as the server wrote it.
type Sentence = [RegExp, (...parts: string[]) => string];

const KINDS: Record<string, string> = { "trace tasks": "链路任务", "pprof tasks": " pprof 任务", "async-profiler tasks": " async-profiler 任务" };
const RECORDS: Record<string, string> = { "stack trace": "条调用栈", connection: "个连接", snapshot: "个快照", file: "个文件" };

const waits = (who: string, kind: string) => (who.startsWith("agent") ? "进程代理（eBPF）" : "该服务的实例") + "来领取过" + (KINDS[kind] ?? "任务");

const SENTENCES: Sentence[] = [
  // Limits.
  [
    /^of (\d+) (nodes|frames) those beyond the largest (\d+) .*are folded into "other"/,
    (all, _, largest) => `共 ${all} 个帧，只保留最大的 ${largest} 个，其余并入“other”`,
  ],
  [
    /^(\d+) of (\d+) (series|groups) are in the answer: raise limit to see more$/,
    (n, all) => `共 ${all} 个序列，这里只有 ${n} 个：提高 limit 可查看更多`,
  ],
  [
    /^the range begins (.+) ago: queries may look back no further \((.+)\)$/,
    (ago, limit) => `时间范围从 ${ago} 前开始：查询最多只能回看到那里（${limit}）`,
  ],
  [
    /^the whole range is older than queries may look back \((.+), (.+)\): the answer is empty$/,
    (ago, limit) => `整个时间范围都早于查询可回看的 ${ago}（${limit}），因此没有结果`,
  ],
  [/^the answer lacks series: .* \(raise ([a-z-]+)\)/, (limit) => `结果缺少部分序列：租户的序列太多，内存放不下（可提高 ${limit}）`],
  [/^more (?:profiles|spans) .* the latest (\d+) .*\((max-lookup-[a-z]+)\)/, (n, limit) => `数量超过一次请求的上限，只取最近的 ${n} 个（${limit}）`],
  [/^exemplars exist from (.+) on; earlier profiles have expired \((.+)\),/, (from, limit) => `${from} 之后才有样例；更早的剖析已过期（${limit}）`],
  [
    /^(\d+) stack traces that Go's runtime cut, (\d+) in all, are joined/,
    (n, all) => `Go 运行时截断了 ${n} 条调用栈（合计 ${all}），已用其他调用栈补全缺失的帧`,
  ],
  [
    /^profiles before (.+) are gone \((.+)\); the range (begins|ends) at (.+)$/,
    (gone, limit, edge, at) => `${gone} 之前的剖析已过期（${limit}）；时间范围${edge === "begins" ? "从" : "到"} ${at} ${edge === "begins" ? "开始" : "为止"}`,
  ],
  [
    /^profiles before (.+) are gone \((.+)\); the time from (.+) to (.+) is left out$/,
    (gone, limit, from, to) => `${gone} 之前的剖析已过期（${limit}）；不含 ${from} 至 ${to}`,
  ],
  [/^profiles before (.+) are gone \((.+)\), .* nothing is left of/, (gone, limit) => `${gone} 之前的剖析已过期（${limit}），此时间范围内没有可用数据`],
  [/^the answer would have more than max-points \((\d+)\) points/, (n) => `结果会超过 ${n} 个点（max-points）：请用更长的步长或更少的分组`],
  [
    /^the query time range exceeds the limit \(max_query_length, actual: (.+), limit: (.+?)\)/,
    (actual, limit) => `查询的时间范围 ${actual} 超过上限 ${limit}（max-query-range）`,
  ],
  [
    /^max flamegraph nodes limit (\d+) is greater than allowed (\d+)/,
    (n, most) => `火焰图节点数 ${n} 超过允许的 ${most}（max-flamegraph-nodes）`,
  ],
  [
    /^too many queries of the tenant are waiting \(max-queued-queries is (\d+), max-queries (\d+)\)/,
    (queued, running) => `租户等待的查询太多（max-queued-queries 为 ${queued}，max-queries 为 ${running}）：请稍后重试，或提高上限`,
  ],
  [/^too many requests are waiting \(max-queued-requests is (\d+)\)/, (n) => `等待的请求太多（max-queued-requests 为 ${n}）：请稍后重试`],
  [/^request bodies and pushes in work need more than (\S+) \((\d+)\)/, (limit, n) => `正在处理的请求所需内存超过 ${limit}（${n}）：请稍后重试`],
  // Errors.
  [/^bad regular expression: (.+?)(, at offset \d+)?$/, (why, at = "") => `正则表达式有误：${why}${at.replace(", at offset ", "，位于字节 ")}`],
  [/^(\S+): bad regular expression: (.+)$/, (field, why) => `${field} 中的正则表达式有误：${why}`],
  [/^no selected stack trace contains the function "(.+)"$/, (name) => `所选调用栈中没有函数“${name}”`],
  [/^no service "(.+)"$/, (name) => `没有服务“${name}”`],
  [/^no task "(.+)"$/, (id) => `没有任务“${id}”`],
  [/^no ad hoc profile "(.+)"$/, (id) => `没有临时剖析“${id}”`],
  [/^there is no application "(.+)"$/, (name) => `没有应用“${name}”`],
  [/^left and right differ in unit or aggregation/, () => "两侧的单位或聚合方式不同，无法比较"],
  [/^the two profiles have no type "(.+)" of the same unit in common$/, (type) => `两个剖析没有单位相同的共同类型“${type}”`],
  [/^query start time is after end time$/, () => "查询的开始时间晚于结束时间"],
  [/^background work interfered with this query (\d+) times: retry$/, (n) => `后台任务 ${n} 次干扰了此查询：请重试`],
  [/^the server is stopping$/, () => "服务器正在停止"],
  [/^the deadline \(.+\) passed before a thread took the request/, () => "请求在轮到执行之前已超时"],
  [/^(?:lost the connection|not connected) to the database/, () => "没有与数据库的连接"],
  [/^the selector is empty, expected (.+) \(\{\} matches everything\)/, (wanted) => `选择器为空，应为 ${wanted}（{} 匹配全部）`],
  [
    /^unexpected (.+?), expected (.+?)(?:, at offset (\d+))?$/,
    (found, wanted, at) => `此处不应有${found === "end" ? "结尾" : ` ${found}`}，应为 ${wanted}${at ? `，位于字节 ${at}` : ""}`,
  ],
  [/^the selector matches (\d+) series, not (-?\d+): nothing was deleted/, (n, wanted) => `选择器匹配 ${n} 个序列，而不是 ${wanted} 个：没有删除任何内容`],
  [/^(\S+) = "(.*)" is not (.+)$/, (name, value, wanted) => `${name} = “${value}”不是有效的值（${wanted}）`],
  [/^no credential was sent/, () => "请求没有凭据"],
  [/^(.+) may not do this in any tenant/, (who) => `${who} 在任何租户中都无权这样做`],
  // Dry runs of policies.
  [
    /^agents look each second and report one value of these: .* at most (.+); shorter peaks/,
    (most) => `代理每秒采样，但只上报其中一个值：该值视为持续到下一个值，最长 ${most}；其间更短的峰值不可见`,
  ],
  [/^HTTP values are reported for seconds with requests, without saying which/, () => "HTTP 指标只针对有请求的秒上报，且不说明是哪几秒：视为上报前的最后几秒"],
  [/^no metrics of (.+): agents report them while a policy watches them/, (what) => `没有 ${what} 的指标：只有策略监视时代理才会上报（可先设为观察模式）`],
  // Why a trace or a span has no profile.
  [
    /^no sample (?:of these profile types )?carries the id, and (?:its time is unknown|when it ran is not known): /,
    () => "没有样本带有此 ID，也不知道它何时运行：它没有被存储，请求也没有给出起止时间",
  ],
  [/^no sample (of these profile types )?carries the id$/, (types) => (types ? "这些剖析类型没有样本带有此 ID" : "没有样本带有此 ID")],
  [/^the profiles with its samples are gone \((.+)\)$/, (limit) => `含有其样本的剖析已过期（${limit}）`],
  [/^no series that the selector takes has profiles.* near the window$/, () => "所选序列在该时段附近没有剖析"],
  [/^no profile was being taken in the window$/, () => "该时段内没有进行剖析"],
  [
    /^no profiles of (trace|span) "(.+)": (.+?); searched: (.+)$/,
    (kind, id, reason = "", searched) => `${kind === "trace" ? "链路" : "跨度"} ${id} 没有剖析：${saidZh(reason) ?? reason}。搜索范围：${searched}`,
  ],
  // Why a task has no data, or which data it has.
  [/^no service of this name is known$/, () => "没有这个名称的服务"],
  [/^no process has these labels$/, () => "没有进程带有这些标签"],
  [/^no agent of processes \(eBPF\) has asked for tasks within (\d+) minutes$/, (n) => `${n} 分钟内没有进程代理（eBPF）来领取任务`],
  [/^agents ask, but none has reported a process of this service within (\d+) minutes$/, (n) => `代理在领取任务，但 ${n} 分钟内没有上报该服务的进程`],
  [/^the agents of the matching processes say that they cannot be profiled/, () => "匹配的进程的代理表示无法对其剖析（support_ebpf_profiling）"],
  [/^no (agent of processes \(eBPF\)|instance of the service) has ever asked for (.+)$/, (who, kind) => `从未有${waits(who, kind)}`],
  [
    /^no (agent of processes \(eBPF\)|instance of the service) has asked for (.+) since about (.+)$/,
    (who, kind, since) => `自 ${since} 左右起，没有${waits(who, kind)}`,
  ],
  [/^(\d+) agents ask, but none reports a process of service (.+)$/, (n, service) => `有 ${n} 个代理在领取任务，但都没有上报服务 ${service} 的进程`],
  [/^the service has (\d+) processes, but none of instance (.+)$/, (n, instance) => `该服务有 ${n} 个进程，但没有一个属于实例 ${instance}`],
  [/^the service has (\d+) processes, but none has the label\(s\) (.+)$/, (n, labels) => `该服务有 ${n} 个进程，但没有一个带有标签 ${labels}`],
  [
    /^(\d+) processes match, but their agents say that they cannot be profiled/,
    (n) => `有 ${n} 个进程匹配，但它们的代理表示无法剖析（support_ebpf_profiling）`,
  ],
  [/^instances that ask: (.+); none is one of those that the task names$/, (some) => `来领取任务的实例：${some}；都不是任务指定的实例`],
  [/^a matching agent last asked at about (.+), and is told when it asks again$/, (at) => `匹配的代理上次领取约在 ${at}，下次领取时会收到`],
  [/^told at (.+); nothing has come yet, it ends at (.+)$/, (at, end) => `${at} 已下发；还没有数据，将于 ${end} 结束`],
  [/^told at (.+); it is not known yet whether the answer arrived$/, (at) => `${at} 已下发；尚不知对方是否收到`],
  [/^it starts at (.+)$/, (at) => `将于 ${at} 开始`],
  [
    /^(\d+) (stack trace|connection|snapshot|file)s? (came|so far), the last at (\S+?)(?:; they cover (.+) of the (.+) of the task: .+)?$/,
    (n, kind, came, at, part, whole) =>
      `${came === "came" ? "收到" : "已收到"} ${n} ${RECORDS[kind ?? ""]}，最后一次在 ${at}` +
      (part ? `；只覆盖任务 ${whole} 中的 ${part}：代理开始得晚或结束得早，或其余时间没有可采的样本` : ""),
  ],
  [/^cancelled at (.+), before anybody was told$/, (at) => `${at} 已取消，尚未下发`],
];

/** The sentence in Chinese; undefined for sentences that are not known. */
export function saidZh(text: string): string | undefined {
  for (const [pattern, say] of SENTENCES) {
    const found = pattern.exec(text);
    if (found) {
      return say(...found.slice(1));
    }
  }
  return undefined;
}
