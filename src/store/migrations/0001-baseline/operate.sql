-- What the installation did in each minute, and how it is, so that the console shows both without counting receipts by time and
-- without asking the queue server. The scheduler writes these tables; running two schedulers does no harm.

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

-- How a batch went over time, for the chart on its page: at most one point in 10 s, and never many more than 240. A point is
-- written with the sums of the batch's row, when an operator pauses or resumes the batch, and when it stalls.
create table tokenmill.batch_sample (
  batch_no bigint not null references tokenmill.batch,
  at timestamptz not null,
  rows_done bigint not null,
  -- Of these, rows that are REJECTED or FAILED.
  rows_refused bigint not null,
  -- From this moment until the next point.
  state text not null,
  primary key (batch_no, at),
  constraint batch_sample_state_is_known check (state in ('RUNNING', 'PAUSED', 'STALLED')),
  constraint batch_sample_counts_rows check (rows_refused between 0 and rows_done)
);

-- Retention finds old points by it. Points are added in the order of their times, so few pages of the table make up a range.
create index batch_sample_age on tokenmill.batch_sample using brin (at);

grant select on tokenmill.work_minute to tokenmill_reader;

grant select on tokenmill.watch_check to tokenmill_reader;

grant select on tokenmill.watch_queue to tokenmill_reader;

grant select on tokenmill.watch_minute to tokenmill_reader;
