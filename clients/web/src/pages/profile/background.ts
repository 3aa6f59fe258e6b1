// Code that the reader did not write and can seldom change, by the kinds that people want out of sight. A kind is told by
// the name of a function, the file that it stands in, or the module that it was mapped from.
export const BACKGROUND = ["kernel", "libc", "gc", "go", "jvm", "python", "node", "dotnet", "ruby"] as const;
export type Background = (typeof BACKGROUND)[number];

export interface Place {
  name: string;
  file: string;
  module: string;
}

interface Rule {
  name?: RegExp;
  file?: RegExp;
  module?: RegExp;
}

const RULES: Record<Background, Rule> = {
  kernel: { name: /^\[k\]|_\[k\]$|^vmlinux\+/, module: /^\[(kernel|guest\.kernel|vdso|vsyscall)|\bvmlinux|\.ko(\.\w+)?$/ },
  libc: {
    // perf names no module for functions that the compiler inlined.
    name: /^(_start|__libc_\w+|__GI_\w+|__(mem|str|wcs)\w+_(avx|sse|evex|erms)\w*)$/,
    module: /(^|\/)(libc|libpthread|libm|librt|ld-linux[\w-]*|ld-musl[\w-]*|libc-musl[\w-]*)[.-][\w.-]*so[\d.]*$|(^|\/)(libc|libm)\.so/,
  },
  gc: {
    name: new RegExp(
      [
        // Go
        "^runtime\\.(gc[A-Z]|bgsweep|bgscavenge|markroot|scanobject|scanblock|greyobject|sweepone|\\(\\*gcWork\\)|wbBuf|\\(\\*mspan\\)\\.sweep)",
        // JVM
        "^(G1|Parallel|PS|Serial|Shenandoah|Z|CMS)\\w*(GC|Mark|Collect|Evac|Scav|Reloc|Concurrent)\\w*(::|$)|^GCTaskThread|^VM_G1|^WorkGang",
        // .NET, V8, Python, Ruby
        "^(WKS|SVR)::(gc_heap|GCHeap)|^v8::internal::(Heap::|MarkCompact|Scavenger|IncrementalMarking|Sweeper|ConcurrentMarking)",
        "^\\(garbage collector\\)$|^Garbage Collector|^gc_collect|^_PyGC|^PyGC_|^rb_gc|^gc_(start|marks|sweep|mark)|^newobj_slowpath",
      ].join("|"),
    ),
  },
  go: { name: /^(runtime|internal\/runtime|runtime\/internal|runtime\/debug)[./]|^(gogo|mcall|systemstack|asyncPreempt)$/ },
  jvm: { name: /^(java|javax|jdk|sun|com[./]sun)[./]/, module: /(^|\/)lib(jvm|java|nio|net)\.so/ },
  python: { file: /(^|\/)lib\/python3?[\d.]*\/(?!.*(site|dist)-packages)|^<frozen /, module: /(^|\/)(libpython[\d.]*\.so[\d.]*|python[\d.]*)$/ },
  node: { name: /(^|\s|\()node:internal\/|^v8::|^node::/, file: /^node:/, module: /(^|\/)(node|libnode\.so[\d.]*)$/ },
  dotnet: { name: /^(System|Microsoft\.(Win32|Extensions|AspNetCore))[.!]/, module: /(^|\/)lib(coreclr|clrjit|System\.Native)\.so$/ },
  ruby: { name: /^(vm_|rb_|ruby_|invoke_block)/, module: /(^|\/)(libruby[\w.-]*\.so[\d.]*|ruby[\d.]*)$/ },
};

function holds({ name, file, module }: Rule, of: Place): boolean {
  return (name?.test(of.name) ?? false) || (file?.test(of.file) ?? false) || (module?.test(of.module) ?? false);
}

export function isBackgroundCode(kinds: readonly Background[], of: Place): boolean {
  return kinds.some((kind) => holds(RULES[kind], of));
}
