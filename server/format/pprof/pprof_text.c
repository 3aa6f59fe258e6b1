/* pprof_text.c -- truncates and repairs strings; knows the magic bytes of other formats. */
#include "pprof/pprof_text.h"

#include "pprof/pprof_wire.h"

#define REPLACEMENT "\xEF\xBF\xBD"

/* Length of the well-formed character at p, or 0. */
static size_t measure_utf8_character(const char *p, size_t left)
{
    unsigned char c = (unsigned char)p[0];
    size_t n = c < 0x80 ? 1 : c < 0xC0 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    return n <= left && hearth_str_utf8_valid(hearth_str_n(p, n)) ? n : 0;
}

/* Truncate *text to its last max_bytes (0: no limit). True if it was longer. */
static bool keep_tail(struct hearth_str *text, uint32_t max_bytes)
{
    if (max_bytes == 0 || text->n <= max_bytes) {
        return false;
    }

    text->p += text->n - max_bytes;
    text->n = max_bytes;

    /* The truncation may have split a character, which has at most three continuation bytes. */
    for (int i = 0; i < 3 && text->n > 0 && ((unsigned char)text->p[0] & 0xC0u) == 0x80u; i++) {
        text->p++;
        text->n--;
    }

    return true;
}

/* The length of the repaired text, which is written to `out` unless that is NULL. */
static size_t repair_utf8(struct hearth_str text, char *out)
{
    size_t n_out = 0;
    bool in_bad_run = false;

    for (size_t i = 0; i < text.n;) {
        size_t n = measure_utf8_character(text.p + i, text.n - i);
        const char *from = n > 0 ? text.p + i : REPLACEMENT;
        size_t n_from = n > 0 ? n : in_bad_run ? 0 : sizeof REPLACEMENT - 1;
        if (out != NULL) {
            memcpy(out + n_out, from, n_from);
        }
        n_out += n_from;
        in_bad_run = n == 0;
        i += n > 0 ? n : 1;
    }

    return n_out;
}

bool hearth_pprof_mend_text(struct hearth_str *text, uint32_t max_bytes, struct hearth_arena *arena,
                            struct hearth_pprof_notes *notes)
{
    bool cut = keep_tail(text, max_bytes);

    if (!hearth_str_utf8_valid(*text)) {
        size_t n = repair_utf8(*text, NULL);
        char *mended = hearth_arena_alloc(arena, n);
        if (mended == NULL) {
            return false;
        }
        (void)repair_utf8(*text, mended);
        *text = hearth_str_n(mended, n);
        notes->strings_repaired++;
        cut = keep_tail(text, max_bytes) || cut; /* a replacement is longer than one byte */
    }

    notes->strings_cut += cut;

    return true;
}

#define OTLP_EXPORT                                                                        \
    "an export of OpenTelemetry's profiles (OTLP ExportProfilesServiceRequest), which is " \
    "sent by POST to /v1development/profiles with Content-Type: application/"

/*
 * True for an ExportProfilesServiceRequest: it has resource_profiles (1) and a dictionary (2), and
 * no other field. A pprof has messages in these fields, too, but the messages of its field 1
 * consist of integers, and those of resource_profiles of messages and texts.
 */
static bool is_otlp_export(struct hearth_str bytes)
{
    const uint8_t *begin = (const uint8_t *)bytes.p;
    struct pprof_cursor c = {begin, begin + bytes.n, NULL}, payload;
    bool has_profiles = false, has_dictionary = false;

    while (c.p < c.end) {
        uint64_t tag, inner = 0;
        if (!pprof_int(&c, &tag) || (tag != PPROF_LEN(1) && tag != PPROF_LEN(2)) ||
            !pprof_payload(&c, &payload)) {
            return false;
        }
        if (tag == PPROF_LEN(1) && payload.p < payload.end) {
            bool is_message = pprof_int(&payload, &inner) && (inner & 7) == 2;
            if (!is_message) {
                return false;
            }
            has_profiles = true;
        }
        has_dictionary = has_dictionary || tag == PPROF_LEN(2);
    }

    return has_profiles && has_dictionary;
}

static bool is_otlp_json(struct hearth_str bytes)
{
    struct hearth_str text = hearth_str_trim(hearth_str_n(bytes.p, bytes.n < 256 ? bytes.n : 256));

    if (!hearth_str_starts(text, HEARTH_STR("{"))) {
        return false;
    }

    text = hearth_str_trim(hearth_str_n(text.p + 1, text.n - 1));

    return hearth_str_starts(text, HEARTH_STR("\"resourceProfiles\""));
}

/* True for "goroutine 7 [running]:", the first line when Go prints the stacks of goroutines. */
static bool is_goroutine_dump(struct hearth_str bytes)
{
    static const char begin[] = "goroutine ";
    size_t from = sizeof begin - 1, end = hearth_str_find(bytes, '\n', 0), at = from;
    struct hearth_str line = hearth_str_trim(hearth_str_n(bytes.p, end));

    if (!hearth_str_starts(line, hearth_str_n(begin, from))) {
        return false;
    }
    while (at < line.n && line.p[at] >= '0' && line.p[at] <= '9') {
        at++;
    }

    return at > from &&
           hearth_str_starts(hearth_str_n(line.p + at, line.n - at), HEARTH_STR(" [")) &&
           hearth_str_ends(line, HEARTH_STR("]:"));
}

const char *hearth_pprof_recognise(struct hearth_str bytes)
{
#define MAGIC(literal, is)                     \
    {                                          \
        {(literal), sizeof(literal) - 1}, (is) \
    }

    static const struct {
        struct hearth_str magic;
        const char *is;
    } formats[] = {
        MAGIC("\x1f\x8b", "still compressed (gzip)"),
        MAGIC("\x28\xb5\x2f\xfd", "still compressed (zstd)"),
        MAGIC("\x04\x22\x4d\x18", "still compressed (lz4)"),
        MAGIC("PK\x03\x04", "a zip archive"),
        MAGIC("FLR\0", "a JFR recording"),
        MAGIC("go 1.", "an execution trace of Go, which is no profile"),
        MAGIC("PERFILE2", "a perf.data file"),
        MAGIC("2ELIFREP", "a perf.data file"),
        MAGIC("\x7f"
              "ELF",
              "an ELF binary"),
        MAGIC("{", "JSON"),
        MAGIC("[", "JSON"),
        MAGIC("<", "HTML or XML"),
        MAGIC("heap profile:", "a legacy text heap profile of gperftools"),
        MAGIC("heapz ", "a legacy text heap profile"),
        MAGIC("--- heapz", "a legacy text heap profile"),
        MAGIC("--- growthz", "a legacy text growth profile"),
        MAGIC("--- contention", "a legacy text contention profile"),
        MAGIC("--- mutex", "a legacy text mutex profile"),
        MAGIC("--- threadz", "a legacy text thread profile"),
        MAGIC("--- Thread", "a legacy text thread profile"),
        MAGIC("--- profile", "a legacy text CPU profile"),
        MAGIC("--- symbol", "a legacy profile with a symbol section"),
        MAGIC("heap_v2/", "a heap profile of jemalloc (jeprof --collapsed prints its stacks)"),
        MAGIC("goroutine profile:", "a goroutine profile in text form (request it with debug=0)"),
        MAGIC("threadcreate profile:",
              "a threadcreate profile in text form (request it with debug=0)"),
        /* Old CPU profiles are machine words: 0, 3, version (Java: 1), period, 0 */
        MAGIC("\0\0\0\0\x03\0\0\0\x01\0\0\0", "a legacy binary CPU profile of Java"),
        MAGIC("\0\0\0\0\x03\0\0\0", "a legacy binary CPU profile of gperftools"),
        MAGIC("\0\0\0\0\0\0\0\x03", "a legacy binary CPU profile of gperftools"),
        MAGIC("\0\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0", "a legacy binary CPU profile of gperftools"),
        MAGIC("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x03", "a legacy binary CPU profile of gperftools"),
    };
#undef MAGIC
    if (is_otlp_export(bytes)) {
        return OTLP_EXPORT "x-protobuf";
    }
    if (is_otlp_json(bytes)) {
        return OTLP_EXPORT "json";
    }
    if (is_goroutine_dump(bytes)) {
        return "a dump of goroutines (debug=2), which is no profile (request it with debug=0)";
    }

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(formats); i++) {
        if (hearth_str_starts(bytes, formats[i].magic)) {
            return formats[i].is;
        }
    }

    return NULL;
}

bool hearth_pprof_looks_like_text(struct hearth_str bytes)
{
    size_t n = bytes.n < 64 ? bytes.n : 64;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes.p[i];
        if ((c < ' ' && c != '\n' && c != '\t' && c != '\r') || c == 0x7f) {
            return false;
        }
    }

    return n >= 8;
}
