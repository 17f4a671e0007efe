-- What the HTTP gateway keeps: accepted operations, batches on their way in, and its own database role.
-- The gateway reads as the reader does, and knows whose API key it was shown. Of cards it sees what anybody may see.
do $$
begin
  perform pg_advisory_xact_lock(hashtextextended('tokenmill roles', 0));
  if not exists (select from pg_roles where rolname = 'tokenmill_gateway') then
    create role tokenmill_gateway nologin;
  end if;
  grant tokenmill_reader to tokenmill_gateway;
  execute format('grant tokenmill_gateway to %I', current_user);
end
$$;

grant usage on schema tokenmill to tokenmill_gateway;
grant select (api_key_hash) on tokenmill.client to tokenmill_gateway;
grant select on tokenmill.kysely_migration to tokenmill_gateway;

-- Operations that were answered 202: each with its signed envelope until it is answered, so that what wasn't queued, or
-- was lost there, is queued again. A card in an envelope is ciphertext.
create table tokenmill.operation (
  receipt_id uuid primary key,
  client_id text not null,
  entity_id uuid not null,
  kind text not null,
  job_id text not null,
  -- Of entity, kind and request as sent; what a card is in it is ciphertext.
  request_digest bytea not null,
  -- The id that a refusal of this very envelope has beside a receipt.
  refusal_id uuid not null,
  jws text,
  state text not null default 'QUEUED',
  -- The answer to an envelope that left no receipt.
  code smallint,
  error jsonb,
  revision integer not null default 0,
  accepted_at timestamptz not null,
  expires_at timestamptz not null,
  due_at timestamptz not null,
  created_at timestamptz not null default now(),
  completed_at timestamptz,
  constraint operation_state_is_known check (state in ('QUEUED', 'ANSWERED', 'REFUSED', 'EXPIRED')),
  constraint only_a_queued_operation_keeps_its_envelope check ((state = 'QUEUED') = (jws is not null)),
  constraint refused_operation_says_why check ((state = 'REFUSED') = (error is not null))
);
create index operation_due on tokenmill.operation (due_at) where state = 'QUEUED';
create index operation_by_age on tokenmill.operation (created_at);

-- Batches that came over HTTP. A body that broke off leaves a row RECEIVING, which nothing works and which is swept away.
create table tokenmill.intake (
  intake_no bigint generated always as identity primary key,
  client_id text not null,
  entity_id uuid not null,
  batch_id text not null,
  record_kind text not null,
  token_scope uuid,
  dry_run boolean not null,
  state text not null default 'RECEIVING',
  -- A keyed hash of query and body: a body holds card numbers, which a plain hash would not hide.
  body_mac bytea,
  records bigint not null default 0,
  chunks integer not null default 0,
  chunks_done integer not null default 0,
  counts jsonb not null default '{}',
  accepted_at timestamptz not null,
  expires_at timestamptz not null,
  touched_at timestamptz not null default now(),
  finished_at timestamptz,
  constraint intake_state_is_known check (state in ('RECEIVING', 'ACCEPTED', 'CANCELLED')),
  constraint accepted_intake_was_read_whole check ((state = 'RECEIVING') = (body_mac is null)),
  constraint no_chunk_is_done_twice check (chunks_done <= chunks)
);
create unique index one_accepted_intake_per_batch_id on tokenmill.intake (client_id, batch_id) where state <> 'RECEIVING';
create index intake_open on tokenmill.intake (intake_no) where state <> 'RECEIVING' and finished_at is null;
create index intake_receiving on tokenmill.intake (touched_at) where state = 'RECEIVING';

-- Their chunks: the envelope, and the block encrypted to a capture key, until the chunk is answered. `lines` names the
-- chunk's rows (line, reference), for one that ends without a receipt.
create table tokenmill.intake_chunk (
  intake_no bigint not null references tokenmill.intake on delete cascade,
  chunk integer not null,
  receipt_id uuid not null,
  job_id text not null,
  -- The id that a refusal of this very envelope has beside a receipt.
  refusal_id uuid not null,
  jws text,
  block text,
  lines text,
  records integer not null,
  state text not null default 'WAITING',
  code smallint,
  reason text,
  sent_at timestamptz,
  due_at timestamptz,
  primary key (intake_no, chunk),
  constraint intake_chunk_state_is_known check (state in ('WAITING', 'SENT', 'DONE', 'REFUSED', 'EXPIRED', 'CANCELLED')),
  constraint only_an_open_chunk_keeps_its_block check (state in ('WAITING', 'SENT') or (jws is null and block is null)),
  constraint sent_chunk_is_due check (state <> 'SENT' or (sent_at is not null and due_at is not null))
);
-- Ciphertext can't be compressed.
alter table tokenmill.intake_chunk alter column block set storage external;
create index intake_chunk_waiting on tokenmill.intake_chunk (intake_no, chunk) where state = 'WAITING';
create index intake_chunk_sent on tokenmill.intake_chunk (intake_no, due_at) where state = 'SENT';

grant select on tokenmill.intake to tokenmill_reader;
grant select (receipt_id, client_id, entity_id, kind, job_id, state, code, error, revision, accepted_at, expires_at, due_at,
  created_at, completed_at) on tokenmill.operation to tokenmill_reader;
grant select (intake_no, chunk, receipt_id, job_id, records, state, code, reason, sent_at, due_at) on tokenmill.intake_chunk
  to tokenmill_reader;
grant select, insert, update, delete on tokenmill.operation, tokenmill.intake, tokenmill.intake_chunk to tokenmill_gateway;
-- A batch is known from its acceptance on, and may be called off.
grant insert, update (state, cancelled_at) on tokenmill.batch to tokenmill_gateway;
grant insert on tokenmill.audit to tokenmill_gateway;
