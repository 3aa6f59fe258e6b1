/*
 * demangle.h -- readable names of mangled symbols: C++ (the Itanium ABI) and Rust (legacy and v0).
 *
 * A version suffix ("@plt", "@@GLIBC_2.34") is kept after the readable name; the underscore that
 * macOS puts before symbols is ignored. The hash at the end of a Rust name is left out.
 *
 * Limits:  HEARTH_DEMANGLE_MAX_BYTES; longer names, and those that would become longer than
 *          HEARTH_DEMANGLE_MAX_OUT, remain as they are. The library limits recursion, and C++ names
 *          to 1,023 bytes.
 * Threads: safe.
 * Source:  libiberty of GNU Binutils.
 */
#ifndef HEARTH_CODEC_DEMANGLE_H
#define HEARTH_CODEC_DEMANGLE_H

#include "hearth/base/arena.h"

#define HEARTH_DEMANGLE_MAX_BYTES 4096
#define HEARTH_DEMANGLE_MAX_OUT   16384

enum hearth_demangle {
    HEARTH_DEMANGLE_NONE,   /* names stay mangled */
    HEARTH_DEMANGLE_SIMPLE, /* without parameters and return type: "ns::max<int>", as perf prints */
    HEARTH_DEMANGLE_FULL,   /* with them: "int ns::max<int>(int, int) [clone .cold]" */
};

/* False if the name is none of "none", "simple" and "full". */
bool hearth_demangle_parse(const char *name, enum hearth_demangle *ret);

/* True if a name begins like a mangled symbol: "_Z", "_R", or with another underscore. */
static inline bool hearth_demangle_applies(struct hearth_str name)
{
    size_t at = name.n > 3 && name.p[0] == '_' && name.p[1] == '_' ? 1 : 0;

    return name.n > at + 2 && name.p[at] == '_' && (name.p[at + 1] == 'Z' || name.p[at + 1] == 'R');
}

/*
 * The readable form of a name, in arena. The name itself if it is not mangled, cannot be demangled
 * or exceeds a limit. Returns false only if the arena refuses memory.
 */
HEARTH_MUST_CHECK
bool hearth_demangle(struct hearth_str name, enum hearth_demangle how, struct hearth_arena *arena,
                     struct hearth_str *ret);

#endif
