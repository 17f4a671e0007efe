-- Acts on keys that wait for a second operator, or that one has confirmed. The message authentication code, under the key
-- that codes rights, covers everything but the time of use: whoever owns the database can't confirm an act.
create table tokenmill.confirmation (
  confirmation_id text primary key,
  -- The act: its name in the audit, and what it is done to.
  action text not null,
  subject text not null,
  -- Clients, and the thumbprints of the keys by which they signed.
  asked_by text not null,
  asked_key text not null,
  asked_at timestamptz not null,
  expires_at timestamptz not null,
  confirmed_by text,
  confirmed_key text,
  confirmed_at timestamptz,
  used_at timestamptz,
  mac bytea not null,
  mac_version smallint not null,
  constraint confirmation_is_whole check (num_nonnulls(confirmed_by, confirmed_key, confirmed_at) in (0, 3)),
  constraint another_operator_confirms check (confirmed_by <> asked_by and confirmed_key <> asked_key),
  constraint used_act_was_confirmed check (used_at is null or confirmed_at is not null)
);
