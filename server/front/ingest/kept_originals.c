/* kept_originals.c -- the option keep-originals, and names of files (contract: kept_originals.h).
 */
#include "ingest/kept_originals.h"

#include "hearth/codec/compress.h"

#include "rpc/front_internal.h"

#include <assert.h>

#define MAX_KEPT_NAME 255u

static bool is_kept_protocol(const char *name)
{
    static const char *const known[] = {HEARTH_KEPT_DATADOG, HEARTH_KEPT_INGEST, HEARTH_KEPT_PUSH};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(known); i++) {
        if (strcmp(name, known[i]) == 0) {
            return true;
        }
    }

    return false;
}

enum hearth_status hearth_kept_protocols_check(const char *const *protocols, struct hearth_err *err)
{
    for (; protocols != NULL && *protocols != NULL; protocols++) {
        if (!is_kept_protocol(*protocols)) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "keep-originals has \"%s\"; its protocols are datadog, ingest "
                               "(POST /ingest) and push (push.v1)",
                               *protocols);
        }
    }

    return HEARTH_OK;
}

bool hearth_front_keeps(const struct hearth_front *front, const char *protocol)
{
    const char *const *kept = front->options.keep_originals;

    assert(is_kept_protocol(protocol));

    for (; kept != NULL && *kept != NULL; kept++) {
        if (strcmp(*kept, protocol) == 0) {
            return true;
        }
    }

    return false;
}

struct hearth_str hearth_original_name_of_client(struct hearth_arena *arena, struct hearth_str name)
{
    size_t n = name.n < MAX_KEPT_NAME ? name.n : MAX_KEPT_NAME;
    char *copy = hearth_arena_strndup(arena, name.p, n);

    if (copy == NULL) {
        return hearth_str_n(NULL, 0);
    }
    hearth_str_utf8_mend(copy, n);

    return hearth_str_n(copy, n);
}

struct hearth_str hearth_original_name_of_bytes(struct hearth_arena *arena, const char *plain,
                                                struct hearth_str bytes)
{
    static const char *const suffixes[] = {
        [HEARTH_COMPRESSION_NONE] = "",    [HEARTH_COMPRESSION_GZIP] = ".gz",
        [HEARTH_COMPRESSION_ZLIB] = ".zz", [HEARTH_COMPRESSION_ZSTD] = ".zst",
        [HEARTH_COMPRESSION_LZ4] = ".lz4",
    };
    enum hearth_compression compression = hearth_compression_detect(bytes);

    assert((size_t)compression < HEARTH_ARRAY_LEN(suffixes));
    char *name = hearth_arena_printf(arena, "%s%s", plain, suffixes[compression]);

    return name == NULL ? hearth_str_n(NULL, 0) : hearth_str_c(name);
}
