-- What the client said of itself with a file, beyond the labels of its profiles: tags that change with each process or
-- release, such as the id of the runtime.
ALTER TABLE hearth_data.original ADD COLUMN client_tags text NOT NULL DEFAULT ''; -- name:value, separated by commas
