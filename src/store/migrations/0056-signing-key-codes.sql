-- A message authentication code over the public half of each signing key, under the key that codes rights: a key that
-- whoever owns the database has added is handed to nobody. The half never changes, so a key is coded once.
alter table tokenmill.signing_key add column mac bytea, add column mac_version smallint,
  add constraint signing_key_mac_names_its_key check ((mac is null) = (mac_version is null));

grant select (mac, mac_version) on tokenmill.signing_key to tokenmill_reader;
