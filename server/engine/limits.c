/* limits.c -- defaults of limits.def. */
#include "hearth/engine/limits.h"

void hearth_limits_init(struct hearth_limits *limits)
{
    *limits = (struct hearth_limits){
#define X(type, field, def) .field = (def),
#include "hearth/engine/limits.def"
#undef X
    };
}
