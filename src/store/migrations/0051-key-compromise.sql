-- A version of a data key that somebody else may have: when that was said, when what it exposed was listed, and when
-- everything that can be done about it by itself was done. A command that was killed goes on from there.
alter table tokenmill.data_key
  add column compromised_at timestamptz,
  add column exposed_at timestamptz,
  add column compromise_ended_at timestamptz,
  add constraint compromise_has_steps check (
    (exposed_at is null or compromised_at is not null) and (compromise_ended_at is null or exposed_at is not null)
  );
