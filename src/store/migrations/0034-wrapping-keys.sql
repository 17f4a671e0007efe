-- Each wrapped key names what opens it: a key-encryption key (KEK), so that two may hold while one replaces the other, or
-- for private halves a version of the data key `private-half`, so that a running worker needs no KEK for them.
alter table tokenmill.data_key add column kek_id text;
update tokenmill.data_key set kek_id = (select kek_id from tokenmill.installation);
alter table tokenmill.data_key
  alter column kek_id set not null,
  alter column wrapped drop not null,
  drop constraint data_key_state_is_known,
  add constraint data_key_state_is_known check (state in ('PENDING', 'ACTIVE', 'DECRYPT_ONLY', 'DESTROYED')),
  add constraint destroyed_data_key_is_gone check ((state = 'DESTROYED') = (wrapped is null));

alter table tokenmill.capture_key add column kek_id text, add column private_version smallint;
update tokenmill.capture_key set kek_id = (select kek_id from tokenmill.installation) where wrapped_private is not null;
alter table tokenmill.capture_key add constraint private_half_names_its_key check (
  wrapped_private is null or (kek_id is null) <> (private_version is null)
);

alter table tokenmill.signing_key add column kek_id text, add column private_version smallint;
update tokenmill.signing_key set kek_id = (select kek_id from tokenmill.installation);
alter table tokenmill.signing_key add constraint private_half_names_its_key check (
  (kek_id is null) <> (private_version is null)
);

-- The keys with which a process can open what is stored: ids of KEKs, and data keys as purpose and version (seal/2).
alter table tokenmill.process add column keys text[] not null default '{}';
