-- What the installation did in each minute, and how it is, so that the console shows both without counting receipts by time
-- and without asking the queue server. The scheduler writes these tables; running two schedulers does no harm.

-- What a worker did in its last minutes, by kind. It writes the whole list with each heartbeat, so that a heartbeat that is
-- repeated or lost changes nothing.
alter table tokenmill.process add column work jsonb not null default '[]';
-- As for the kinds: only a worker says that it worked.
alter table tokenmill.process add constraint only_workers_work check (role in ('interactive', 'bulk') or work = '[]');

-- The sum over all workers. A minute is summed anew while workers still report it, and is then final.
create table tokenmill.work_minute (
  minute timestamptz not null,
  kind text not null,
  -- Rows of chunks, and single jobs.
  done integer not null,
  refused integer not null,
  failed integer not null,
  -- 95 of 100 attempts began within this time after their job was made; null without an attempt.
  wait_p95_ms integer,
  primary key (minute, kind),
  constraint work_minute_begins_a_minute check (extract(epoch from minute)::bigint % 60 = 0),
  constraint work_minute_counts_are_counts check (done >= 0 and refused >= 0 and failed >= 0)
);

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

grant select on tokenmill.work_minute, tokenmill.watch_check, tokenmill.watch_queue, tokenmill.watch_minute
  to tokenmill_reader, tokenmill_console;
grant select (host, version, started_at, work) on tokenmill.process to tokenmill_console;
