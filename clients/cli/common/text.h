/*
 * text.h -- values, times and bars for people; texts on standard output and in files.
 */
#ifndef HEARTH_CLIENTS_TEXT_H
#define HEARTH_CLIENTS_TEXT_H

#include "hearth/base/human.h"

#include "cli.h"

/* Short names for base/human.h. */
static inline void cli_value(double value, struct hearth_str unit, char out[48])
{
    hearth_human_value(value, unit, out);
}
static inline void cli_bar(double fraction, int width, struct hearth_buf *out)
{
    hearth_human_bar(fraction, width, out);
}
static inline void cli_fit(struct hearth_str text, int width, bool pad, struct hearth_buf *out)
{
    hearth_human_fit(text, width, pad, out);
}
/* 2026-11-20T11:36:00.000+01:00 in the zone of the client, ...Z in UTC; as --from accepts it. */
void cli_zoned(int64_t ns, char out[32]);
/* As cli_zoned, without parts of a second. */
void cli_zoned_seconds(int64_t ms, char out[48]);
/* Names the zone of cli_time and cli_local_date on standard error, unless it is UTC. */
void cli_say_zone(void);
/* 11-20 10:36:00 local time. */
void cli_time(int64_t ms, char out[32]);
/* 2026-11-20T10:36:00Z, as --from accepts it and servers write it in messages. */
void cli_date(int64_t ms, char out[32]);
/* 2026-11-20 11:36:00 local time. */
void cli_local_date(int64_t ms, char out[32]);
/* 7d, 1h30m; 0: for ever. `out` holds 48 bytes. */
void cli_duration(int64_t ms, char out[48]);
/* 1,234,567. `out` holds 32 bytes. */
void cli_count(int64_t n, char out[32]);
/* "1 series", "12 series", "1 service", "3 services": n with its noun. `out` holds 64 bytes. */
void cli_number(int64_t n, const char *one, const char *many, char out[64]);
/* The sample type of a profile type, which is its second part; all of it if it has no parts. Borrows. */
struct hearth_str cli_type_name(const char *type);
/* The unit of a profile type, which is its third part; empty if it has none. Borrows. */
struct hearth_str cli_type_unit(const char *type);
/* The course of values over [start, end]: the largest value of each sixtieth of the range. */
struct cli_course {
    int64_t start, end;
    double cells[60];
};
/* Adds a value; times outside the range are in the first or last cell. */
void cli_course_add(struct cli_course *course, int64_t at, double value);
/* The course of values in block characters, one cell each; max is the full cell. */
void cli_course(const double *cells, size_t n, double max, struct hearth_buf *out);
/* 12.34%, <0.01%, +1.20% with sign; of `whole`. `out` holds 32 bytes. */
void cli_percent(double part, double whole, bool sign, char out[32]);
/* Appends a word of a command for a shell, in quotes if it needs them. '?' stands for control characters. */
void cli_shell_word(const char *text, struct hearth_buf *out);
/*
 * How texts for people are printed: is_ascii replaces block and box characters; a text of more than
 * page_lines lines is shown by a pager (0: never).
 */
void cli_set_screen(bool is_ascii, int page_lines);
/* Writes and flushes a text for people; CLI_FAILED if standard output is closed. Releases out. */
enum cli_exit cli_print(struct hearth_buf *out);
/* As cli_print, for programs: no byte is changed. */
enum cli_exit cli_print_exact(struct hearth_buf *out);
/*
 * Writes bytes into a file and says so on standard error, with `what` before the number of bytes; NULL or "-":
 * standard output. CLI_FAILED, with a message, if that fails.
 */
enum cli_exit cli_save(const char *path, struct hearth_str bytes, const char *what);

/* ---- pager.c ---- */

/* Shows a text with $PAGER, otherwise less. False: no pager runs, nothing was shown. */
bool cli_page(struct hearth_str text);

#endif
