/* flame_keys.c -- keys out of the bytes that terminals send (ECMA-48, xterm). */
#include "flame_terminal.h"

#include <assert.h>

#define MAX_SEQUENCE 32

/* The key of a control sequence with a first parameter and a final byte. */
static int name_sequence(unsigned parameter, unsigned char final)
{
    switch (final) {
    case 'A':
        return FLAME_KEY_UP;
    case 'B':
        return FLAME_KEY_DOWN;
    case 'C':
        return FLAME_KEY_RIGHT;
    case 'D':
        return FLAME_KEY_LEFT;
    case 'H':
        return FLAME_KEY_HOME;
    case 'F':
        return FLAME_KEY_END;
    case 'Z': /* Shift-Tab */
        return '\t';
    case '~':
        return parameter == 1 || parameter == 7   ? FLAME_KEY_HOME
               : parameter == 4 || parameter == 8 ? FLAME_KEY_END
               : parameter == 5                   ? FLAME_KEY_PAGE_UP
               : parameter == 6                   ? FLAME_KEY_PAGE_DOWN
                                                  : FLAME_KEY_UNKNOWN;
    default:
        return FLAME_KEY_UNKNOWN;
    }
}

size_t flame_take_key(const unsigned char *in, size_t n, bool is_all, int *ret_key)
{
    assert(n > 0);

    if (in[0] != FLAME_KEY_ESCAPE) {
        *ret_key = in[0];
        return 1;
    }
    if (n == 1 && !is_all) {
        return 0;
    }
    if (n == 1 || (in[1] != '[' && in[1] != 'O')) {
        *ret_key = FLAME_KEY_ESCAPE;
        return 1;
    }

    /* ESC [ or ESC O, parameters and intermediate bytes, a final byte. */
    unsigned parameter = 0;
    bool is_first = true;
    for (size_t i = 2; i < n && i < MAX_SEQUENCE; i++) {
        if (in[i] >= 0x40 && in[i] <= 0x7e) {
            *ret_key = name_sequence(parameter, in[i]);
            return i + 1;
        }
        bool is_digit = in[i] >= '0' && in[i] <= '9';
        is_first = is_first && is_digit;
        parameter = is_first && parameter < 1000 ? parameter * 10 + (in[i] - '0') : parameter;
    }
    if (!is_all && n < MAX_SEQUENCE) {
        return 0;
    }
    *ret_key = FLAME_KEY_UNKNOWN;

    return n < MAX_SEQUENCE ? n : MAX_SEQUENCE;
}
