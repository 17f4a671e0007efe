-- A message authentication code over each row that grants rights, under a key of the vault: a row that was made or
-- changed by whoever owns the database, and not by tokenmill, is treated as absent. Revoking needs no key: it removes the
-- code.
alter table tokenmill.client add column mac bytea, add column mac_version smallint,
  add constraint client_mac_names_its_key check ((mac is null) = (mac_version is null));
alter table tokenmill.client_key add column mac bytea, add column mac_version smallint,
  add constraint client_key_mac_names_its_key check ((mac is null) = (mac_version is null));
alter table tokenmill.capture_key add column mac bytea, add column mac_version smallint,
  add constraint capture_key_mac_names_its_key check ((mac is null) = (mac_version is null));
alter table tokenmill.scope add column mac bytea, add column mac_version smallint,
  add constraint scope_mac_names_its_key check ((mac is null) = (mac_version is null));

grant select (mac, mac_version) on tokenmill.client, tokenmill.capture_key to tokenmill_reader;
