-- The key of a 3-D Secure contract is replaced: the former one verifies JWTs until its time ends.
alter table tokenmill.threeds_contract
  add column former_key_sealed bytea,
  add column former_key_version smallint,
  add column former_until timestamptz,
  add constraint former_contract_key_is_whole check (
    num_nonnulls(former_key_sealed, former_key_version, former_until) in (0, 3)
  );
grant select (former_until) on tokenmill.threeds_contract to tokenmill_reader;
