-- Files as clients sent them, kept next to the profiles that were made of them (docs/decisions/0029-originals.md). Written
-- in the transaction of the first profile of the file; not longer kept than its profiles.
CREATE TABLE hearth_data.original (
    original_no int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    service_id int4 NOT NULL,
    writer_id int4 NOT NULL, -- with profile_no: the id of the upload, as in profile
    profile_no int8 NOT NULL,
    part int4 NOT NULL, -- number of the file in the upload, from 0
    ts int8 NOT NULL, -- of that profile
    name text NOT NULL, -- as the client said
    n_bytes int8 NOT NULL,
    payload bytea NOT NULL -- as sent, mostly compressed by the client
);
ALTER TABLE hearth_data.original ALTER payload SET STORAGE EXTERNAL;
CREATE INDEX original_profile ON hearth_data.original (profile_no, writer_id);
CREATE INDEX original_service ON hearth_data.original (service_id, ts);
