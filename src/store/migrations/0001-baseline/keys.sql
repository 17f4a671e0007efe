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

-- Entities whose capture keys turn by themselves.
create table tokenmill.capture_turning (
  entity_id uuid primary key,
  every_days smallint not null,
  since timestamptz not null default now(),
  constraint capture_keys_turn_within_ten_years check (every_days between 30 and 3650)
);

-- Which operators' events told that a key should be replaced: once before its date, and once at the date.
create table tokenmill.key_notice (
  key text not null,
  stage text not null,
  told_at timestamptz not null default now(),
  primary key (key, stage),
  constraint key_notice_stage_is_known check (stage in ('SOON', 'OVER'))
);

grant select on tokenmill.reseal to tokenmill_reader;

grant select on tokenmill.capture_turning to tokenmill_reader;

grant select on tokenmill.key_notice to tokenmill_reader;
