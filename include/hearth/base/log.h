/*
 * log.h -- structured log lines on standard error: logfmt or JSON, one line per event.
 *
 *   HEARTH_LOG(HEARTH_LOG_INFO, "http", "listening", "addr", "127.0.0.1:4040", NULL);
 *
 * Keys and values are C strings; NULL ends the list. Values are escaped; invalid UTF-8 becomes '?'.
 * A line has at most 4 KB: the first value that does not fit is truncated, later pairs are omitted,
 * and the line ends with cut=1. Never log bodies or secrets. Library layers log at debug level
 * only.
 *
 * Threads: safe; a line is one write(2).
 */
#ifndef HEARTH_BASE_LOG_H
#define HEARTH_BASE_LOG_H

#include "hearth/base/compiler.h"

enum hearth_log_level {
    HEARTH_LOG_DEBUG,
    HEARTH_LOG_INFO,
    HEARTH_LOG_WARN,
    HEARTH_LOG_ERROR,
};

void hearth_log_set_level(enum hearth_log_level level); /* default: info */
void hearth_log_set_json(bool json);
/* "debug", "info", "warn" or "error"; false for other names. */
bool hearth_log_parse_level(const char *name, enum hearth_log_level *ret);
bool hearth_log_enabled(enum hearth_log_level level);
void hearth_log_write(enum hearth_log_level level, const char *component, const char *msg,
                      ...) HEARTH_SENTINEL;

#define HEARTH_LOG(level, component, ...)                        \
    do {                                                         \
        if (hearth_log_enabled(level)) {                         \
            hearth_log_write((level), (component), __VA_ARGS__); \
        }                                                        \
    } while (0)

/*
 * A number as a log argument: text in one of eight thread-local buffers, used in turn. In JSON
 * lines it is a number; all other values are strings, even if they look like numbers.
 */
const char *hearth_log_i64(int64_t value);

#endif
