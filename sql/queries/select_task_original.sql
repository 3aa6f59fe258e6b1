-- Returns at most $3 bytes of a file of a task, from the byte $2 on, which counts from 1; none beyond
-- its end. A piece has 1 MiB.
--
-- Indexes: the primary keys of task_upload and task_upload_piece.
--
-- $1 int8 number of the upload, negative
-- $2 int4 first byte
-- $3 int4 number of bytes
SELECT coalesce(substring((
    SELECT string_agg(p.payload, ''::bytea ORDER BY p.piece)
    FROM hearth_data.task_upload_piece p
    WHERE p.service_id = u.service_id AND p.upload_no = u.upload_no
        AND p.piece BETWEEN ($2 - 1) / 1048576 AND ($2::int8 + $3 - 2) / 1048576)
    FROM ($2 - 1) % 1048576 + 1 FOR $3), ''::bytea)
FROM hearth_data.task_upload u
WHERE u.upload_no = -$1
