-- A batch has a life: how much is to come, how far it has come, when it was paused, cancelled, finished. What state it is in
-- follows from its row and the time (src/store/batch/batch-state.ts); `state` stays for workers of release 0.4.
alter table tokenmill.batch
  -- How many chunks and rows it will have; null while no chunk has said so.
  add column extent_chunks integer,
  add column extent_rows bigint,
  add column source_name text,
  add column source_sha256 text,
  -- The sender's own stop: it sends no more than so many chunks for now.
  add column limit_chunks integer,
  add column paused_at timestamptz,
  add column finished_at timestamptz,
  -- 0 until it is finished; one more whenever rows that had failed are decided anew after that.
  add column revision integer not null default 0,
  -- Summed from the receipts of its chunks.
  add column chunks_done integer not null default 0,
  add column rows_done bigint not null default 0,
  add column counts jsonb not null default '{}',
  add column reasons jsonb not null default '{}',
  add column summed_at timestamptz not null default now(),
  -- The last sign of life: a chunk that was answered, or that it was resumed.
  add column active_at timestamptz not null default now(),
  add constraint batch_extent_is_positive check (
    coalesce(extent_chunks, 1) >= 1 and coalesce(extent_rows, 1) >= 1 and (extent_chunks is not null or extent_rows is null)),
  add constraint batch_limit_is_positive check (coalesce(limit_chunks, 1) >= 1),
  add constraint cancelled_batch_says_when check ((state = 'CANCELLED') = (cancelled_at is not null)),
  add constraint finished_batch_has_all_its_chunks check (
    finished_at is null or (cancelled_at is null and extent_chunks is not null and chunks_done = extent_chunks)),
  add constraint finished_batch_has_a_revision check ((finished_at is null) = (revision = 0));

-- How often a chunk's records ended for which reason: {outcome: {reason: n}}.
alter table tokenmill.receipt add column reasons jsonb;

-- Older batches never said how much was to come: they count as left alone until a chunk comes for them again.
update tokenmill.batch as b set active_at = 'epoch', chunks_done = coalesce(sums.chunks, 0), rows_done = coalesce(sums.rows, 0),
  counts = coalesce(sums.counts, '{}')
from tokenmill.batch as own
left join (
  select batch_no, max(chunks) as chunks, sum(n)::bigint as rows, jsonb_object_agg(outcome, n) as counts
  from (
    select batch_no, outcome.key as outcome, sum(outcome.value::bigint) as n, count(*) as chunks
    from tokenmill.receipt cross join lateral jsonb_each_text(counts) as outcome
    where batch_no is not null group by batch_no, outcome.key
  ) as by_outcome
  group by batch_no
) as sums on sums.batch_no = own.batch_no
where own.batch_no = b.batch_no;

create index batch_unsettled on tokenmill.batch (summed_at) where finished_at is null or coalesce((counts->>'FAILED')::bigint, 0) > 0;
create index batch_of_client on tokenmill.batch (client_id, batch_no);

-- What happened, for whoever subscribes to it: each event once.
create table tokenmill.event (
  event_id bigint generated always as identity primary key,
  type text not null,
  client_id text not null,
  subject text not null,
  revision integer not null,
  data jsonb not null,
  created_at timestamptz not null default now(),
  constraint event_is_written_once_per_revision unique (type, client_id, subject, revision)
);
grant select on tokenmill.event to tokenmill_reader;
