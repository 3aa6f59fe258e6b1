/*
 * lifecycle.h -- runs hearthd: from its arguments to its exit code (private to app; hearthd.c calls
 * it).
 *
 * Exit codes: 0 for a clean stop, 1 if it cannot start or continue, 2 for invalid options.
 */
#ifndef HEARTH_APP_LIFECYCLE_H
#define HEARTH_APP_LIFECYCLE_H

int hearth_main(int argc, char *const *argv, char *const *environment);

#endif
