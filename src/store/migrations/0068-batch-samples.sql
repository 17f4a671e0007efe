-- How a batch went over time, for the chart on its page: at most one point in 10 s, and never many more than 240. A point is
-- written with the sums of the batch's row, when an operator pauses or resumes the batch, and when it stalls. Batches of
-- earlier releases have none.
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

alter table tokenmill.batch
  -- When the last point was written, and how many seconds pass before the next one.
  add column sampled_at timestamptz,
  add column sample_s integer not null default 10,
  add constraint batch_sample_distance_is_positive check (sample_s > 0);

-- The lists of the console, newest first: all batches, those of a client, and those of an entity; and the clients of an entity.
create index batch_newest on tokenmill.batch (created_at, batch_no);
create index batch_of_client_newest on tokenmill.batch (client_id, created_at, batch_no);
create index batch_of_entity_newest on tokenmill.batch (entity_id, created_at, batch_no) where entity_id is not null;
create index batch_clients_of_entity on tokenmill.batch (entity_id, client_id) where entity_id is not null;

-- The rows of a chunk that were REJECTED or FAILED: place in the chunk (from 1), line of the source, outcome and reason. A
-- receipt's outcomes also hold references, token ids and a part of each card's fingerprint, so the console can't read them.
create function tokenmill.refused_rows(of_batch bigint, since date, of_chunk integer, after integer, most integer)
returns table (place integer, line bigint, outcome smallint, reason text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select row.place::integer, (row.packed->>0)::bigint, (row.packed->>1)::smallint, nullif(row.packed->>4, '0')
  from tokenmill.receipt as r cross join lateral jsonb_array_elements(r.outcomes::jsonb) with ordinality as row(packed, place)
  where r.batch_no = of_batch and r.day >= since and r.chunk = of_chunk and r.outcomes is not null
    and row.packed->>1 in ('4', '5') and row.place > after
  order by row.place limit least(most, 1000)
$$;
revoke execute on function tokenmill.refused_rows(bigint, date, integer, integer, integer) from public;
grant execute on function tokenmill.refused_rows(bigint, date, integer, integer, integer) to tokenmill_console;
grant select on tokenmill.batch_sample to tokenmill_console;
