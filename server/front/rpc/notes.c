/* notes.c -- encodes lines as values of `hearth-note`. */
#include "rpc/notes.h"

#include <assert.h>

#define ELLIPSIS "..."

/* The bytes of the UTF-8 character at `p`; 1 if it is not valid. */
static size_t utf8_char_bytes(const char *p, size_t n)
{
    size_t length = 1;
    while (length < n && ((unsigned char)p[length] & 0xC0) == 0x80) {
        length++;
    }
    return length > 4 ? 1 : length;
}

static bool is_plain_note_byte(char c)
{
    return c >= ' ' && c <= '~' && c != '%';
}

static size_t encoded_note_bytes(const char *p, size_t n)
{
    size_t length = 0;
    for (size_t i = 0; i < n; i++) {
        length += is_plain_note_byte(p[i]) ? 1 : 3;
    }
    return length;
}

static char *encode_note(struct hearth_str line, struct hearth_arena *arena)
{
    static const char digits[] = "0123456789ABCDEF";
    char out[HEARTH_MAX_NOTE_BYTES];
    bool fits = encoded_note_bytes(line.p, line.n) <= sizeof out;
    size_t room = fits ? sizeof out : sizeof out - strlen(ELLIPSIS), n = 0;

    for (size_t i = 0; i < line.n;) {
        size_t end = i + utf8_char_bytes(line.p + i, line.n - i);
        if (n + encoded_note_bytes(line.p + i, end - i) > room) {
            break;
        }
        for (; i < end; i++) {
            unsigned char c = (unsigned char)line.p[i];
            if (is_plain_note_byte(line.p[i])) {
                out[n++] = line.p[i];
            } else {
                out[n++] = '%';
                out[n++] = digits[c >> 4];
                out[n++] = digits[c & 15];
            }
        }
    }

    if (!fits) {
        memcpy(out + n, ELLIPSIS, strlen(ELLIPSIS));
        n += strlen(ELLIPSIS);
    }

    return hearth_arena_strndup(arena, out, n);
}

size_t hearth_notes_encode(struct hearth_str lines, struct hearth_arena *arena,
                           const char *values[HEARTH_MAX_NOTES])
{
    size_t n = 0, n_more = 0;
    struct hearth_str last = {0};

    for (size_t from = 0; from < lines.n;) {
        size_t to = hearth_str_find(lines, '\n', from);
        struct hearth_str line = hearth_str_trim(hearth_str_n(lines.p + from, to - from));
        from = to + 1;
        if (line.n == 0) {
            continue;
        }
        if (n + 1 < HEARTH_MAX_NOTES) {
            char *value = encode_note(line, arena);
            if (value != NULL) {
                values[n++] = value;
            }
        } else {
            last = line;
            n_more++;
        }
    }

    /* One place is left for the rest: the last note itself, or the number of them. */
    assert(n < HEARTH_MAX_NOTES);
    if (n_more > 0) {
        char *value = n_more == 1 ? encode_note(last, arena)
                                  : hearth_arena_printf(arena, "and %zu more notes", n_more);
        if (value != NULL) {
            values[n++] = value;
        }
    }

    return n;
}
