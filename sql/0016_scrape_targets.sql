-- What servers fetch profiles from. A row is a claim: the server that holds it scrapes the target until the claim expires.
-- Written by each scrape; removed an hour after the last claim expired.
CREATE TABLE hearth_data.scrape_target (
    target_key uuid PRIMARY KEY, -- hash of tenant, job, address and path
    tenant text NOT NULL,
    job text NOT NULL,
    address text NOT NULL, -- HOST:PORT
    path text NOT NULL,
    holder uuid NOT NULL, -- of one run of a server
    claimed_until timestamptz NOT NULL,
    scraped_at int8 NOT NULL DEFAULT 0, -- milliseconds; 0: not yet, like the rest
    took_ms int8 NOT NULL DEFAULT 0,
    n_bytes int8 NOT NULL DEFAULT 0,
    failure text NOT NULL DEFAULT '' -- of the latest scrape; empty: it succeeded
) WITH (fillfactor = 50);
CREATE INDEX scrape_target_tenant ON hearth_data.scrape_target (tenant, job, address, path);
