-- Which profile was made of a file of a task, so that the file is an original of the listed profile.
-- 0: none, not known, or the file was received by an older server.
ALTER TABLE hearth_data.task_upload ADD COLUMN writer_id int4 NOT NULL DEFAULT 0;
ALTER TABLE hearth_data.task_upload ADD COLUMN profile_no int8 NOT NULL DEFAULT 0;
CREATE INDEX task_upload_profile ON hearth_data.task_upload (profile_no, writer_id) WHERE profile_no <> 0;
