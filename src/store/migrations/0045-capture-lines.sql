-- An alias names a line of capture keys: number 1, 2, and so on. The newest is handed out; cards to each of them open. A
-- row of an earlier release is a line of one key. `retired_at` is the last time at which senders may encrypt to a key.
alter table tokenmill.capture_key
  add column key_id uuid not null default gen_random_uuid(),
  add column number smallint not null default 1,
  -- The installation's signature over alias, entity and public half, by which senders know the key.
  add column statement text,
  add column stated_by text,
  add column stated_until timestamptz,
  add column last_used_at timestamptz,
  add column last_used_by text,
  -- When clients were last told that the key is still in use although a newer one is handed out.
  add column told_at timestamptz,
  drop constraint capture_key_pkey,
  add constraint capture_key_pkey primary key (key_id),
  add constraint capture_key_number_is_unique_in_its_line unique (alias, number),
  add constraint capture_key_number_counts_from_1 check (number >= 1),
  add constraint statement_names_its_signer_and_end check (num_nonnulls(statement, stated_by, stated_until) in (0, 3)),
  add constraint use_of_capture_key_names_its_client check ((last_used_at is null) = (last_used_by is null));

-- Entities whose capture keys turn by themselves.
create table tokenmill.capture_turning (
  entity_id uuid primary key,
  every_days smallint not null,
  since timestamptz not null default now(),
  constraint capture_keys_turn_within_ten_years check (every_days between 30 and 3650)
);

grant select (key_id, number, statement, stated_by, stated_until, last_used_at, last_used_by, told_at)
  on tokenmill.capture_key to tokenmill_reader;
grant select on tokenmill.capture_turning to tokenmill_reader;
