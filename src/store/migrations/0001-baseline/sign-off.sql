-- Totals of files, and what was signed.

-- The total that both sides of a migration compute, and its key. The receiver makes the key; sign-off destroys it and leaves
-- the row, so that the name isn't used again.
create table tokenmill.manifest_key (
  migration text primary key,
  sealed bytea,
  key_version smallint,
  created_at timestamptz not null default now(),
  destroyed_at timestamptz,
  constraint total_key_is_sealed_or_destroyed check (
    (sealed is null) = (destroyed_at is not null) and (sealed is null) = (key_version is null)
  )
);

-- One total that somebody waits for.
create table tokenmill.manifest_total (
  total_id uuid primary key,
  migration text not null,
  batch_nos bigint[] not null,
  -- The jobs name it.
  entity_id uuid not null,
  asked_by text not null,
  asked_at timestamptz not null default now(),
  -- Who waits renews it.
  wanted_at timestamptz not null default now(),
  refused text,
  result jsonb,
  ended_at timestamptz,
  constraint ended_total_has_an_end check ((ended_at is null) = (refused is null and result is null))
);

create unique index open_total_of_batches on tokenmill.manifest_total (migration, batch_nos) where ended_at is null;

-- One job: some chunks of a batch. The last one names no chunks and merges the others.
create table tokenmill.manifest_part (
  total_id uuid not null references tokenmill.manifest_total on delete cascade,
  part integer not null,
  batch_no bigint,
  chunk_from integer not null,
  chunk_to integer not null,
  sent integer not null default 0,
  sent_at timestamptz,
  done_at timestamptz,
  -- The rows that both sides leave out: [line, reason, reference].
  exceptions jsonb,
  primary key (total_id, part)
);

-- The digests of a part's rows of one brand, sorted: keyed digests, no card data. They go when the total has ended.
create table tokenmill.manifest_run (
  total_id uuid not null,
  part integer not null,
  brand text not null,
  -- Where the digests of each first byte begin, and their number.
  starts integer[] not null,
  digests bytea not null,
  primary key (total_id, part, brand),
  foreign key (total_id, part) references tokenmill.manifest_part on delete cascade
);
-- Uncompressed, so that a few of them are read without the others.
alter table tokenmill.manifest_run alter column digests set storage external;
