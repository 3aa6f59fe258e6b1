/* pprof_wire.c -- the functions of pprof_wire.h that are not hot enough to be inline. */
#include "pprof/pprof_wire.h"

#include "hearth/base/varint.h"

struct pprof_varint hearth_pprof_varint(const uint8_t *p, const uint8_t *end)
{
    if (HEARTH_LIKELY(end - p >= 8)) {
        uint64_t w = pprof_load8(p);
        uint64_t stops = ~w & 0x8080808080808080u;
        if (HEARTH_LIKELY(stops != 0)) {
            /*
             * Keep the bytes up to the first one without a continuation bit, then close the gaps
             * left by these bits: three steps instead of a branch per byte.
             */
            uint64_t x = w & (stops ^ (stops - 1)) & 0x7f7f7f7f7f7f7f7fu;
            x = (x & 0x007f007f007f007fu) | (x & 0x7f007f007f007f00u) >> 1;
            x = (x & 0x00003fff00003fffu) | (x & 0x3fff00003fff0000u) >> 2;
            x = (x & 0x000000000fffffffu) | (x & 0x0fffffff00000000u) >> 4;
            return (struct pprof_varint){x, p + __builtin_ctzll(stops) / 8 + 1};
        }
    }

    uint64_t value = 0;
    if (!hearth_varint_read(&p, end, &value)) {
        p = NULL;
    }

    return (struct pprof_varint){value, p};
}

struct pprof_cursor hearth_pprof_skip(struct pprof_cursor c, uint64_t tag, uint32_t n_known)
{
    uint64_t field = tag >> 3;
    uint64_t n = 0;
    if (field == 0 || tag > UINT32_MAX) {
        c.why = "tag with an impossible field number";
        return c;
    }

    uint64_t wire_type = tag & 7;
    if (wire_type == 3 || wire_type == 4) {
        c.why = "group, which is not used";
        return c;
    }

    if (wire_type > 5) {
        c.why = "tag with an unknown wire type";
        return c;
    }

    if (field <= n_known) {
        c.why = "known field with the wrong wire type";
        return c;
    }

    switch (wire_type) {
    case 0:
        (void)pprof_int(&c, &n);
        return c;
    case 1:
        n = 8;
        break;
    case 2:
        if (!pprof_int(&c, &n)) {
            return c;
        }
        break;
    default:
        n = 4;
        break;
    }

    if (n > (uint64_t)(c.end - c.p)) {
        c.why = "field reaches beyond the end of its message";
        return c;
    }

    c.p += n;
    return c;
}
