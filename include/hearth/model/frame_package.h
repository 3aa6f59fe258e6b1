/*
 * frame_package.h -- the package of a function, as far as its name alone tells.
 *
 * The web page colours frames by it and collapses it (clients/web/src/flame/names.ts, packageOf);
 * clients/web/test/transforms.txt has names that the tests of both read. symbol_parts.h knows the
 * files of functions, too, and therefore more.
 *
 * Threads: pure.
 */
#ifndef HEARTH_MODEL_FRAME_PACKAGE_H
#define HEARTH_MODEL_FRAME_PACKAGE_H

#include "hearth/base/str.h"

/*
 * The package, module or library; empty: none, as in C. That of an unknown frame is "[unknown]".
 * The result borrows from name or room, which has space for name.n bytes.
 */
struct hearth_str hearth_frame_package(struct hearth_str name, char *room);

#endif
