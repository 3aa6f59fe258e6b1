/*
 * jfr.h -- recordings of Java's flight recorder: whether bytes are one. They are not read any further.
 *
 * A recording is chunks, one behind the other. A chunk begins with 68 bytes, numbers big-endian: "FLR" and a zero byte,
 * major and minor version (2 bytes each), the size of the chunk with these bytes (8 bytes at 8), and what this does not
 * look at.
 *
 * Threads: pure.
 * Source:  the file format of OpenJDK's flight recorder; recordings of async-profiler have the same.
 */
#ifndef HEARTH_FORMAT_JFR_H
#define HEARTH_FORMAT_JFR_H

#include "hearth/base/status.h"
#include "hearth/base/str.h"

#define HEARTH_JFR_HEADER_BYTES 68

/* INVALID_ARGUMENT: they are not chunks of version 1 or 2 from the first byte to the last; says what is wrong at which. */
HEARTH_MUST_CHECK
enum hearth_status hearth_jfr_check(struct hearth_str bytes, struct hearth_err *err);

#endif
