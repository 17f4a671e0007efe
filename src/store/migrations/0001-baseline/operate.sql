-- How the installation is, so that the console shows it without asking the queue server. The scheduler writes these tables;
-- running two schedulers does no harm.

-- The checks of `tokenmill status` that need no key and no file of a host.
create table tokenmill.watch_check (
  name text primary key,
  state text not null,
  says text not null,
  next text,
  -- Since when it has been in this state.
  since timestamptz not null default now(),
  seen_at timestamptz not null default now(),
  constraint watch_check_state_is_known check (state in ('well', 'warning', 'unknown', 'critical'))
);

-- The queue of each kind, and the failed set.
create table tokenmill.watch_queue (
  kind text primary key,
  waiting integer not null,
  active integer not null,
  delayed integer not null,
  oldest_ms bigint,
  failed integer not null,
  seen_at timestamptz not null default now()
);

-- The highest value that was seen within each minute.
create table tokenmill.watch_minute (
  minute timestamptz primary key,
  -- How long the oldest interactive job had waited; null if the queue server did not answer in this minute.
  interactive_ms bigint,
  -- The failed set; null as above.
  failed integer,
  -- How old the oldest unpublished result was.
  outbox_ms bigint not null,
  -- As outbox_ms, at the last look.
  outbox_last_ms bigint not null,
  seen_at timestamptz not null default now(),
  constraint watch_minute_begins_a_minute check (extract(epoch from minute)::bigint % 60 = 0)
);

grant select on tokenmill.watch_check to tokenmill_reader;

grant select on tokenmill.watch_queue to tokenmill_reader;

grant select on tokenmill.watch_minute to tokenmill_reader;
