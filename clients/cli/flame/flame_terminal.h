/*
 * flame_terminal.h -- connects a flame_screen to the terminal of the process: raw input, the
 * alternate screen, resizing, and a clean end after signals.
 *
 * The sequences are those of ECMA-48 and xterm, which terminals have in common; a library of
 * terminal descriptions would limit most of them to 256 colours.
 *
 * Threads: one call at a time; it sets signal handlers.
 */
#ifndef HEARTH_CLIENTS_FLAME_TERMINAL_H
#define HEARTH_CLIENTS_FLAME_TERMINAL_H

#include "flame_screen.h"

/*
 * Shows the screen until it is done. Standard input and output must be a terminal. INTERNAL if it
 * cannot be read or written; NO_MEMORY. The terminal is restored in every case.
 */
HEARTH_MUST_CHECK
enum hearth_status flame_terminal_run(struct flame_screen *screen, struct hearth_err *err);

/*
 * The first key of n > 0 bytes that a terminal sent. Returns the bytes that it consists of; 0 if
 * more bytes are needed, which is impossible if `is_all` says that no more will follow.
 */
size_t flame_take_key(const unsigned char *in, size_t n, bool is_all, int *ret_key);

#endif
