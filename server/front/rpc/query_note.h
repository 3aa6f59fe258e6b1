/* query_note.h -- puts queries that have ended on the list of recent ones. Threads: safe. */
#ifndef HEARTH_FRONT_QUERY_NOTE_H
#define HEARTH_FRONT_QUERY_NOTE_H

struct hearth_rpc;

/* For every request that has ended, before its arena is freed; ignores requests without a query. */
void hearth_query_note(struct hearth_rpc *rpc);

#endif
