-- Each keyed hash names the version of the data key that made it, so that a repeat is compared under that version after
-- the key was replaced. Rows of earlier releases, and those that their workers still write, are of version 1. A constant
-- default rewrites no table.
alter table tokenmill.receipt add column digest_version smallint not null default 1;
alter table tokenmill.authentication add column digest_version smallint not null default 1;
alter table tokenmill.client add column api_key_version smallint not null default 1;
alter table tokenmill.released_reference add column key_version smallint not null default 1;
-- The key that hashes the bodies of batches. Version 1 is what gateways of earlier releases derive from the key of API keys.
alter table tokenmill.intake add column body_mac_version smallint not null default 1;

grant select (api_key_version) on tokenmill.client to tokenmill_gateway;
