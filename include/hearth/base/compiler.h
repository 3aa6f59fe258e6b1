/*
 * compiler.h -- names for the compiler attributes that Hearth uses; no other file spells
 * __attribute__, but for client.h, which is installed alone.
 */
#ifndef HEARTH_BASE_COMPILER_H
#define HEARTH_BASE_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEARTH_MUST_CHECK         __attribute__((warn_unused_result))
#define HEARTH_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define HEARTH_SENTINEL           __attribute__((sentinel)) /* variadic, ends with NULL */
#define HEARTH_NORETURN           __attribute__((noreturn))
#define HEARTH_CLEANUP(fn)        __attribute__((cleanup(fn)))
#define HEARTH_ALWAYS_INLINE      __attribute__((always_inline)) static inline
#define HEARTH_UNUSED             __attribute__((unused))
#define HEARTH_VECTOR(n_bytes)    __attribute__((vector_size(n_bytes)))
/*
 * An array of a hot loop that -ftrivial-auto-var-init need not fill; it is written before it is
 * read.
 */
#define HEARTH_UNFILLED __attribute__((uninitialized))

#define HEARTH_LIKELY(x)   __builtin_expect(!!(x), 1)
#define HEARTH_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* A build with ASan or TSan, which trace, map and signal in ways of their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define HEARTH_IS_SANITIZED true
#elif defined(__clang__)
#    define HEARTH_IS_SANITIZED \
        (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#    define HEARTH_IS_SANITIZED false
#endif

#define HEARTH_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* The struct of type `type` whose member `member` is at `ptr`. */
#define HEARTH_CONTAINER_OF(ptr, type, member) \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
