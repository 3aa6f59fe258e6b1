/* fuzz_jfr.c -- any bytes as a JFR recording: what is one stays one with another behind it, and is none without its end. */
#include "hearth/base/buf.h"
#include "hearth/format/jfr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_str bytes = {(const char *)data, size};
    struct hearth_err err = HEARTH_ERR_INIT;
    if (hearth_jfr_check(bytes, &err) != HEARTH_OK) {
        HEARTH_ASSERT(err.msg[0] != '\0');
        return 0;
    }
    struct hearth_buf twice;
    hearth_buf_init(&twice, 0);
    hearth_buf_str(&twice, bytes);
    hearth_buf_str(&twice, bytes);
    HEARTH_ASSERT(hearth_jfr_check(hearth_buf_view(&twice), &err) == HEARTH_OK);
    HEARTH_ASSERT(hearth_jfr_check(hearth_str_n(bytes.p, size - 1), &err) != HEARTH_OK);
    hearth_buf_release(&twice);
    return 0;
}
