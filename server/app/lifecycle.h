/*
 * lifecycle.h -- hearthd from its arguments to its exit code (private to app; main.c calls it).
 *
 * Exit codes: 0 a clean stop; 1 it could not start or had to give up; 2 wrong options.
 */
#ifndef HEARTH_APP_LIFECYCLE_H
#define HEARTH_APP_LIFECYCLE_H

int hearth_main(int argc, char *const *argv, char *const *environment);

#endif
