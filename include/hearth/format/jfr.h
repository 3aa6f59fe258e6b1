/*
 * jfr.h -- checks whether bytes are a recording of Java's Flight Recorder. Recordings are not
 * decoded.
 *
 * A recording is a sequence of chunks. A chunk begins with a header of 68 bytes, numbers
 * big-endian: "FLR" and a zero byte, major and minor version (2 bytes each), the size of the chunk
 * with its header (8 bytes at offset 8), and fields that are ignored here.
 *
 * Threads: pure.
 * Source:  the file format of OpenJDK's Flight Recorder, which async-profiler writes, too.
 */
#ifndef HEARTH_FORMAT_JFR_H
#define HEARTH_FORMAT_JFR_H

#include "hearth/base/status.h"
#include "hearth/base/str.h"

#define HEARTH_JFR_HEADER_BYTES 68

/*
 * INVALID_ARGUMENT unless the bytes, from the first to the last, are chunks of version 1 or 2; the
 * message says what is wrong at which byte.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_jfr_check(struct hearth_str bytes, struct hearth_err *err);

#endif
