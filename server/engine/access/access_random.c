/* access_random.c -- random bytes of tokens, sessions and salts. */
#include "access/access_internal.h"

#include <sys/random.h>

enum hearth_status hearth_access_random(void *out, size_t n, struct hearth_err *err)
{
    /* Up to 256 bytes are never cut or interrupted. */
    for (size_t at = 0; at < n;) {
        size_t part = n - at < 256 ? n - at : 256;
        if (getrandom((char *)out + at, part, 0) != (ssize_t)part) {
            return HEARTH_FAIL(err, HEARTH_INTERNAL, "the system gives no random bytes");
        }
        at += part;
    }
    return HEARTH_OK;
}
