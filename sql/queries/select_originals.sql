-- Returns the files of an upload: those that its client sent with the profiles, or the file of a
-- task that they were made of, whose number is negative and whose name is that of the task's upload.
--
-- Indexes: original_profile, task_upload_profile.
--
-- $1 text tenant
-- $2 int4 writer
-- $3 int8 number of the profile
SELECT q.original_no, q.name, q.n_bytes, q.client_tags
FROM (
    SELECT o.part, o.original_no, o.name, o.n_bytes, o.client_tags
    FROM hearth_data.original o
    JOIN hearth_data.service v ON v.service_id = o.service_id
    JOIN hearth_data.tenant t ON t.tenant_id = v.tenant_id
    WHERE t.name = $1 AND o.writer_id = $2 AND o.profile_no = $3
    UNION ALL
    SELECT 0, -u.upload_no, u.upload_id || '.' || u.format, u.n_bytes, ''
    FROM hearth_data.task_upload u
    JOIN hearth_data.tenant t ON t.tenant_id = u.tenant_id
    WHERE t.name = $1 AND u.writer_id = $2 AND u.profile_no = $3 AND u.profile_no <> 0) q
ORDER BY q.part, q.original_no
