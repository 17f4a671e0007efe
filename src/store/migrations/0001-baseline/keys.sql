-- How keys turn.

-- Re-encryption under a new data key, by any bulk worker: one row a purpose, with the place that has been reached.
create table tokenmill.reseal (
  purpose text primary key,
  -- Everything is to be sealed under this version.
  version smallint not null,
  state text not null default 'RUNNING',
  -- Who works it now. From due_at on another worker may take it.
  lease uuid,
  due_at timestamptz not null default now(),
  -- A pass looks at every row of every column of the purpose.
  pass integer not null default 1,
  pass_began_at timestamptz not null default now(),
  pass_scanned bigint not null default 0,
  -- Rows of this pass that named another version; those of them that were sealed anew, and that could not be opened.
  pass_found bigint not null default 0,
  pass_done bigint not null default 0,
  pass_failed bigint not null default 0,
  -- The last of these, as table and key.
  failed_row text,
  -- The last row that was looked at. Null: the pass is at its beginning.
  at_column text,
  at_key text,
  rows_done bigint not null default 0,
  rows_per_second integer,
  -- An estimate, for the time that is left.
  rows_expected bigint,
  -- A pass that proves anything began a while after it: nobody seals under an older version any more.
  started_at timestamptz not null default now(),
  ended_at timestamptz,
  -- When the pass began that found nothing.
  clean_at timestamptz,
  constraint reseal_state_is_known check (state in ('RUNNING', 'CANCELLED', 'DONE')),
  constraint running_reseal_has_no_end check ((state = 'RUNNING') = (ended_at is null)),
  constraint done_reseal_was_proved check (state <> 'DONE' or clean_at is not null),
  constraint reseal_place_is_whole check ((at_column is null) = (at_key is null))
);

-- Which operators' events told that a key should be replaced: once before its date, and once at the date.
create table tokenmill.key_notice (
  key text not null,
  stage text not null,
  told_at timestamptz not null default now(),
  primary key (key, stage),
  constraint key_notice_stage_is_known check (stage in ('SOON', 'OVER'))
);

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
  -- A confirmation is used once, also where whoever owns the database puts its row back: its code covers the time of use, and
  -- the head of the audit at which it was confirmed. Its use is a numbered row behind that head.
  audit_seq bigint,
  audit_hash bytea,
  constraint confirmation_is_whole check (num_nonnulls(confirmed_by, confirmed_key, confirmed_at) in (0, 3)),
  constraint another_operator_confirms check (confirmed_by <> asked_by and confirmed_key <> asked_key),
  constraint used_act_was_confirmed check (used_at is null or confirmed_at is not null),
  constraint confirmed_act_names_the_audit check (num_nonnulls(confirmed_at, audit_seq, audit_hash) in (0, 3))
);

grant select on tokenmill.reseal to tokenmill_reader;

grant select on tokenmill.key_notice to tokenmill_reader;
