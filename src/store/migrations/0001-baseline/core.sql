-- What a single job, a batch and a token over HTTP need: one schema, `tokenmill`. Every constraint has a name that states
-- its rule.

revoke all on schema tokenmill from public;
alter default privileges in schema tokenmill revoke execute on functions from public;

-- Who may do what. The reader serves everything that only reads, and never sees sealed cards, fingerprints or keys. The queue
-- role owns BullMQ's schema and nothing of ours. The gateway reads as the reader does, and knows whose API key it was shown;
-- of cards it sees what anybody may see. src/store/roles.ts makes the roles, because they belong to the whole server.
do $$
begin
  execute format('grant create on database %I to tokenmill_queue', current_database());
end
$$;
grant usage on schema tokenmill to tokenmill_reader, tokenmill_gateway, tokenmill_worker;

-- Releases of one major run side by side while they are upgraded, host by host. One row: the number of the oldest migration whose
-- release still works on this schema. A migration that takes something away raises it, and comes with a new major.
create table tokenmill.schema_range (
  one boolean primary key default true,
  readable_from smallint not null,
  constraint there_is_one_schema_range check (one)
);
insert into tokenmill.schema_range (readable_from) values (1);
grant select on tokenmill.schema_range to tokenmill_reader;

create table tokenmill.installation (
  singleton boolean primary key default true,
  installation_id uuid not null,
  kek_id text not null,
  created_at timestamptz not null default now(),
  -- When a worker that has a place for report files last said that it makes reports. A worker without such a place reads
  -- from it whether a request for a report has to be refused, or will be worked by another host.
  reports_made_at timestamptz,
  constraint one_installation_per_store check (singleton)
);

-- Keys of the vault, each wrapped by the key-encryption key, which is never here.
create table tokenmill.data_key (
  purpose text not null,
  version smallint not null,
  wrapped bytea,
  state text not null default 'ACTIVE',
  created_at timestamptz not null default now(),
  -- The key-encryption key (KEK) that wraps it: two may hold while one replaces the other.
  kek_id text not null,
  -- The life of a data key: when it came into use, when another key took its place, and how many seals processes have
  -- reserved under it.
  seals bigint not null default 0,
  activated_at timestamptz,
  retired_at timestamptz,
  -- A version of a data key that somebody else may have: when that was said, when what it exposed was listed, and when
  -- everything that can be done about it by itself was done. A command that was killed goes on from there.
  compromised_at timestamptz,
  exposed_at timestamptz,
  compromise_ended_at timestamptz,
  primary key (purpose, version),
  constraint data_key_state_is_known check (state in ('PENDING', 'ACTIVE', 'DECRYPT_ONLY', 'DESTROYED')),
  constraint destroyed_data_key_is_gone check ((state = 'DESTROYED') = (wrapped is null)),
  -- Random nonces are safe for 2^32 seals under one key (NIST SP 800-38D, 8.3).
  constraint data_key_has_nonces_left check (seals between 0 and 4294967296),
  constraint pending_data_key_is_unused check (state <> 'PENDING' or activated_at is null),
  constraint active_data_key_has_a_beginning check (state <> 'ACTIVE' or activated_at is not null),
  constraint compromise_has_steps check (
    (exposed_at is null or compromised_at is not null) and (compromise_ended_at is null or exposed_at is not null)
  )
);

create unique index one_active_data_key_per_purpose on tokenmill.data_key (purpose) where state = 'ACTIVE';

create unique index one_pending_data_key_per_purpose on tokenmill.data_key (purpose) where state = 'PENDING';

-- What the installation signs results with.
create table tokenmill.signing_key (
  kid text primary key,
  alg text not null,
  public_jwk jsonb not null,
  wrapped_private bytea,
  created_at timestamptz not null default now(),
  private_version smallint,
  state text not null,
  statement text,
  active_at timestamptz not null,
  retired_at timestamptz,
  -- A message authentication code over the public half of each signing key, under the key that codes rights: a key that
  -- whoever owns the database has added is handed to nobody. The half never changes, so a key is coded once.
  mac bytea,
  mac_version smallint,
  constraint signing_key_state_is_known check (state in ('ANNOUNCED', 'ACTIVE', 'RETIRED')),
  constraint announced_key_has_a_statement check (state <> 'ANNOUNCED' or statement is not null),
  constraint retired_signing_key_has_an_end check ((state = 'RETIRED') = (retired_at is not null)),
  constraint private_half_of_retired_key_is_gone check ((state = 'RETIRED') = (wrapped_private is null)),
  constraint private_half_names_its_key check ((wrapped_private is null) = (private_version is null)),
  constraint signing_key_mac_names_its_key check ((mac is null) = (mac_version is null))
);

create unique index one_active_signing_key on tokenmill.signing_key (state) where state = 'ACTIVE';

create unique index one_announced_signing_key on tokenmill.signing_key (state) where state = 'ANNOUNCED';

create table tokenmill.client (
  client_id text primary key,
  name text not null,
  user_id uuid not null,
  api_key_hash bytea,
  entities uuid[] not null,
  roles text[] not null,
  alg text,
  system boolean not null default false,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  -- What a client may name its work by. A name that could be a card number is refused (PCI DSS 3.5.1), unless the client is
  -- known to name its work by long numbers; a job's own card is no name for anybody.
  -- no row.
  names text not null default 'checked',
  -- A message authentication code over each row that grants rights, under a key of the vault: a row that was made or
  -- changed by whoever owns the database, and not by tokenmill, is treated as absent. Revoking needs no key: it removes the
  -- code.
  mac bytea,
  mac_version smallint,
  api_key_version smallint not null default 1,
  constraint user_belongs_to_one_client unique (user_id),
  constraint names_is_a_rule check (names in ('checked', 'numeric')),
  constraint client_mac_names_its_key check ((mac is null) = (mac_version is null)),
  constraint client_id_has_its_form
    check (client_id ~ '^(c[a-z0-9]{25}|console|gateway|scheduler|worker)$')
);

-- The two orders of the lists of clients and of scopes, and the one of capture keys.
create index client_by_age on tokenmill.client (created_at, client_id);

create index client_by_name on tokenmill.client (name, client_id);

create table tokenmill.client_key (
  client_id text not null references tokenmill.client,
  kid text not null,
  alg text not null,
  public_jwk jsonb not null,
  state text not null default 'ACTIVE',
  valid_until timestamptz,
  created_at timestamptz not null default now(),
  -- When a worker verified an envelope that it signed, for the first time; only of system clients.
  verified_at timestamptz,
  mac bytea,
  mac_version smallint,
  primary key (client_id, kid),
  constraint client_key_state_is_known check (state in ('ACTIVE', 'RETIRED', 'REVOKED', 'STOLEN')),
  constraint retired_key_has_an_end check (state not in ('RETIRED', 'STOLEN') or valid_until is not null),
  constraint client_key_mac_names_its_key check ((mac is null) = (mac_version is null))
);

create table tokenmill.scope (
  token_scope uuid primary key,
  entity_id uuid not null,
  par boolean not null default false,
  network_tokens boolean not null default false,
  requestor text not null default 'MERCHANT',
  bin_digits smallint not null default 8,
  created_at timestamptz not null default now(),
  -- Scheme tokens. One row a provisioning: it is there before the network is asked, and stays until the network has said
  -- that nothing is left of it. A token shows its current one.
  auto_provision boolean not null default false,
  keep_billing boolean not null default false,
  mac bytea,
  mac_version smallint,
  constraint requestor_is_known check (requestor in ('MERCHANT', 'PSP')),
  constraint bin_digits_are_6_or_8 check (bin_digits in (6, 8)),
  constraint only_scheme_scopes_provision check (not auto_provision or network_tokens or par),
  constraint scope_mac_names_its_key check ((mac is null) = (mac_version is null))
);

create index scope_by_age on tokenmill.scope (created_at, token_scope);

create index scope_by_entity on tokenmill.scope (entity_id, token_scope);

create table tokenmill.capture_key (
  alias text not null,
  entity_id uuid not null,
  type text not null,
  public_key text not null,
  wrapped_private bytea,
  state text not null default 'ACTIVE',
  created_at timestamptz not null default now(),
  retired_at timestamptz,
  destroyed_at timestamptz,
  private_version smallint,
  mac bytea,
  mac_version smallint,
  -- An alias names a line of capture keys: number 1, 2, and so on. The newest is handed out; cards to each of them open.
  -- `retired_at` is the last time at which senders may encrypt to a key.
  key_id uuid not null default gen_random_uuid(),
  number smallint not null default 1,
  -- The installation's signature over alias, entity and public half, by which senders know the key.
  statement text,
  stated_by text,
  stated_until timestamptz,
  last_used_at timestamptz,
  last_used_by text,
  -- When clients were last told that the key is still in use although a newer one is handed out.
  told_at timestamptz,
  constraint capture_key_type_is_known check (type in ('jwe-rsa', 'jwe-ec', 'pgp')),
  constraint capture_key_state_is_known check (state in ('ACTIVE', 'RETIRED', 'DESTROYED')),
  constraint destroyed_capture_key_holds_no_private_half check ((state = 'DESTROYED') = (wrapped_private is null)),
  constraint private_half_names_its_key check ((wrapped_private is null) = (private_version is null)),
  constraint capture_key_mac_names_its_key check ((mac is null) = (mac_version is null)),
  constraint capture_key_pkey primary key (key_id),
  constraint capture_key_number_is_unique_in_its_line unique (alias, number),
  constraint capture_key_number_counts_from_1 check (number >= 1),
  constraint statement_names_its_signer_and_end check (num_nonnulls(statement, stated_by, stated_until) in (0, 3)),
  constraint use_of_capture_key_names_its_client check ((last_used_at is null) = (last_used_by is null))
);

create index capture_key_by_age on tokenmill.capture_key (created_at, key_id);

create table tokenmill.bin_range (
  id integer generated always as identity primary key,
  prefix text not null,
  brand text not null,
  issuer_name text,
  issuer_country text,
  type text,
  variant text,
  currency text,
  constraint bin_prefix_stands_once unique (prefix),
  constraint bin_prefix_has_4_to_11_digits check (prefix ~ '^[0-9]{4,11}$')
);

-- One row a card on file. No foreign key to scope: the check would cost each of a batch's rows a look-up, and scopes
-- are never deleted.
create table tokenmill.token (
  token_id uuid primary key,
  token_scope uuid not null,
  status text not null,
  suspended_reason text,
  token_type text not null,
  sealed bytea,
  seal_version smallint,
  bin text,
  last_four text,
  expiry_month smallint,
  expiry_year smallint,
  card_holder_name text,
  card_holder_email text,
  card_sequence text,
  start_month smallint,
  start_year smallint,
  brand text,
  card_brand text,
  bin_range integer,
  analytics_token text,
  token_expiry_date date,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  version integer not null,
  last_receipt uuid,
  batch_no bigint,
  batch_created boolean,
  batch_line integer,
  batch_lines jsonb,
  third_party_type text,
  third_party_token text,
  -- When, by which input and in which line of it the fields of a card were given, and for whom the card is on file. Null until a
  -- batch that compares these times touches the row, or the token gets another number.
  given_at jsonb,
  cards uuid[],
  expiry_is_done boolean,
  constraint token_status_is_known check (status in ('ACTIVE', 'SUSPENDED', 'DELETED')),
  constraint only_suspended_has_a_reason check ((status = 'SUSPENDED') = (suspended_reason is not null)),
  constraint deleted_keeps_no_card_data check (
    status <> 'DELETED'
    or (sealed is null and bin is null and last_four is null and card_holder_name is null
        and card_holder_email is null and analytics_token is null)
  ),
  constraint analytics_keeps_no_card check (token_type <> 'ANALYTICS' or sealed is null),
  constraint sealed_names_its_key check ((sealed is null) = (seal_version is null)),
  constraint third_party_token_names_its_type
    check ((third_party_type is null) = (third_party_token is null)),
  constraint third_party_keeps_the_card check (third_party_type is null or sealed is null),
  constraint live_names_its_card check (status = 'DELETED' or cards is not null),
  constraint deleted_keeps_no_cards check (status <> 'DELETED' or cards is null or cards = '{}')
);
-- Room for the new version of a row on its own page: new pages only.
alter table tokenmill.token set (fillfactor = 90);
-- PostgreSQL's own share of a fifth is twenty million dead rows of a hundred million.
alter table tokenmill.token set (autovacuum_vacuum_scale_factor = 0.02);

create table tokenmill.sequence_mark (
  token_id uuid not null,
  client_id text not null,
  sequence bigint not null,
  primary key (token_id, client_id)
);
-- Room for the new version of a row on its own page: new pages only.
alter table tokenmill.sequence_mark set (fillfactor = 90);
alter table tokenmill.sequence_mark set (autovacuum_vacuum_scale_factor = 0.02);

create table tokenmill.batch (
  batch_no bigint generated always as identity primary key,
  client_id text not null,
  batch_id text not null,
  record_kind text not null,
  token_scope uuid,
  chunk_records integer not null,
  layout jsonb not null,
  accepted_at timestamptz not null,
  created_at timestamptz not null default now(),
  -- A batch has a life: how much is to come, how far it has come, when it was paused, cancelled, finished. What state it is in
  -- follows from these columns and the time (src/store/batch/batch-state.ts).
  cancelled_at timestamptz,
  -- How many chunks and rows it will have; null while no chunk has said so.
  extent_chunks integer,
  extent_rows bigint,
  source_name text,
  source_sha256 text,
  -- The sender's own stop: it sends no more than so many chunks for now.
  limit_chunks integer,
  paused_at timestamptz,
  finished_at timestamptz,
  -- 0 until it is finished; one more whenever rows that had failed are decided anew after that.
  revision integer not null default 0,
  -- Summed from the receipts of its chunks.
  chunks_done integer not null default 0,
  rows_done bigint not null default 0,
  counts jsonb not null default '{}',
  reasons jsonb not null default '{}',
  summed_at timestamptz not null default now(),
  -- The last sign of life: a chunk that was answered, or that it was resumed.
  active_at timestamptz not null default now(),
  -- A stall is told once: how often it stalled, and when that was noticed last.
  stalls integer not null default 0,
  stalled_at timestamptz,
  -- Whose batch it is: the entity of its scope, or without one that of the envelope that began it. Null as soon as a
  -- chunk comes for another entity.
  entity_id uuid,
  -- When the last point was written, and how many seconds pass before the next one.
  sampled_at timestamptz,
  sample_s integer not null default 10,
  constraint batch_id_stands_once_per_client unique (client_id, batch_id),
  constraint batch_extent_is_positive check (
    coalesce(extent_chunks, 1) >= 1 and coalesce(extent_rows, 1) >= 1 and (extent_chunks is not null or extent_rows is null)),
  constraint batch_limit_is_positive check (coalesce(limit_chunks, 1) >= 1),
  constraint finished_batch_has_all_its_chunks check (
    finished_at is null or (cancelled_at is null and extent_chunks is not null and chunks_done = extent_chunks)),
  constraint finished_batch_has_a_revision check ((finished_at is null) = (revision = 0)),
  constraint stalled_batch_says_when check ((stalls = 0) = (stalled_at is null)),
  constraint batch_sample_distance_is_positive check (sample_s > 0)
);

create index batch_unsettled on tokenmill.batch (summed_at) where finished_at is null or coalesce((counts->>'FAILED')::bigint, 0) > 0;

create index batch_of_client on tokenmill.batch (client_id, batch_no);

-- Lists of batches by state, and a batch by its id alone: each was found by a walk through all batches.
create index batch_open on tokenmill.batch (batch_no) where cancelled_at is null and finished_at is null;

create index batch_cancelled on tokenmill.batch (batch_no) where cancelled_at is not null;

create index batch_of_id on tokenmill.batch (batch_id);

-- The lists of the console, newest first: all batches, those of a client, and those of an entity; and the clients of an entity.
create index batch_newest on tokenmill.batch (created_at, batch_no);

create index batch_of_client_newest on tokenmill.batch (client_id, created_at, batch_no);

create index batch_of_entity_newest on tokenmill.batch (entity_id, created_at, batch_no) where entity_id is not null;

create index batch_clients_of_entity on tokenmill.batch (entity_id, client_id) where entity_id is not null;

-- What every job left behind, once. Partitioned by the week it was written in, and dropped with it.
create table tokenmill.receipt (
  receipt_id uuid not null,
  day date not null,
  client_id text not null,
  iss text not null,
  kind text not null,
  jti text not null,
  request_digest bytea not null,
  envelope_digest bytea not null,
  reply_to text,
  reference text,
  status text not null,
  code smallint not null,
  outcome text,
  refusal jsonb,
  token_id uuid,
  batch_no bigint,
  chunk integer,
  counts jsonb,
  outcomes text,
  failed_records integer not null default 0,
  revision integer not null,
  attempt integer not null,
  accepted_at timestamptz not null,
  completed_at timestamptz not null,
  -- Whether what an operation did outside is undone.
  reversal text,
  -- How often a chunk's records ended for which reason: {outcome: {reason: n}}.
  reasons jsonb,
  -- Each keyed hash names the version of the data key that made it, so that a repeat is compared under that version after
  -- the key was replaced.
  digest_version smallint not null default 1,
  -- Whose job it was: the entity of the verified envelope. Null of a job that was cancelled before a worker saw its envelope.
  entity_id uuid,
  -- Who asked for the effect of a receipt that a reversal could undo: each envelope, and whether its sender gave it up. Null while
  -- only the envelope that took effect has asked.
  askers jsonb,
  -- A keyed hash of a request with what its card says in place of the encrypted card: the same card, encrypted again, is the same
  -- request. Null if the request has no card, or if the card wasn't opened. It is under the version `digest_version`.
  content_digest bytea,
  -- A code that only the data key `receipt` makes, over every column that decides: a receipt without a right one is believed by
  -- nobody, and blocks its job.
  mac bytea,
  mac_version smallint,
  primary key (receipt_id, day),
  constraint receipt_status_is_known check (status in ('SUCCEEDED', 'FAILED', 'CANCELLED')),
  constraint reversal_is_known check (reversal in ('REQUIRED', 'COMPLETED'))
) partition by range (day);

create index receipt_of_batch on tokenmill.receipt (batch_no, chunk) where batch_no is not null;

-- By what a person on call asks for a single job: its reference, or the token that it was about. Chunks' receipts have
-- neither.
create index receipt_of_reference on tokenmill.receipt (reference) where reference is not null and batch_no is null;

create index receipt_of_token on tokenmill.receipt (token_id) where token_id is not null and batch_no is null;

-- What is still to be told, or was told in the last days. A row points to its receipt; only a fault, which has none,
-- carries its text.
create table tokenmill.outbox (
  outbox_id bigint generated always as identity,
  day date not null,
  client_id text not null,
  reply_to text,
  -- Only where the row carries its text; else it follows from receipt and revision.
  result_id uuid,
  receipt_id uuid not null,
  revision integer not null,
  body text,
  state text not null default 'NEW',
  created_at timestamptz not null default now(),
  -- The span in which a result was made that could not be published at once, where traces are on: the publishing that follows
  -- has a link to it.
  traceparent text,
  -- The envelope that a result answers: nobody else takes it for an answer. Null for events.
  envelope_digest bytea,
  -- What that envelope asks for, as the result names it: a hash without a key, of what others may guess. So no table that is kept
  -- longer than this one has it.
  answers bytea,
  -- A code that only the data key `receipt` makes: a row without a right one is told to nobody, and becomes UNPROVED.
  mac bytea,
  mac_version smallint,
  primary key (outbox_id, day),
  constraint outbox_state_is_known check (state in ('NEW', 'SENT', 'UNPROVED'))
) partition by range (day);

create index outbox_new on tokenmill.outbox (client_id, reply_to, outbox_id) where state = 'NEW';

create index outbox_of_receipt on tokenmill.outbox (receipt_id);

create index outbox_unproved on tokenmill.outbox (outbox_id) where state = 'UNPROVED';

create table tokenmill.reply_queue (
  client_id text not null,
  reply_to text not null,
  created_at timestamptz not null default now(),
  primary key (client_id, reply_to)
);

-- Cards of these digits that were not known when asked for: what a guesser of PANs leaves behind.
create table tokenmill.guess (
  client_id text collate "C" not null,
  token_scope uuid not null,
  digits text collate "C" not null,
  misses integer not null,
  since timestamptz not null,
  primary key (client_id, token_scope, digits)
);

create table tokenmill.dry_run (
  client_id text not null,
  day date not null,
  rows bigint not null,
  primary key (client_id, day)
);

-- Cards a dry run has seen, by fingerprint, so that it predicts duplicates over chunks. Dropped with the run.
create unlogged table tokenmill.scratch (
  run text collate "C" not null,
  fingerprint uuid not null,
  chunk integer not null,
  -- The token's row without what is null.
  row json not null,
  created_at timestamptz not null default now(),
  primary key (run, fingerprint)
);

create table tokenmill.audit (
  audit_id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  actor text not null,
  action text not null,
  subject text not null,
  detail jsonb not null default '{}',
  -- The audit as a chain: acts insert plain rows, and one process at a time gives each row its number, its hash (SHA-256
  -- over the hash of the row before and this row's text) and a MAC under the data key `audit`.
  host text,
  outcome text not null default 'done',
  seq bigint,
  hash bytea,
  mac bytea,
  key_version smallint,
  -- Whose batch an act was about. What people see must not be moved by somebody who writes the table alone: the row's hash
  -- covers `detail`, and the column says what `detail` says.
  entity_id uuid,
  constraint audit_outcome_is_known check (outcome in ('done', 'refused', 'failed')),
  constraint audit_row_has_one_number unique (seq),
  constraint audit_number_has_its_hash check (
    (seq is null and hash is null and mac is null and key_version is null)
    or (seq > 0 and octet_length(hash) = 32 and octet_length(mac) = 32 and key_version > 0)
  ),
  constraint audit_entity_is_that_of_its_detail
    check (entity_id is null or (detail->>'entity_id') is not distinct from entity_id::text)
);

-- The acts on keys, by whose last one a process knows that it has missed a turning.
create index audit_of_key_lives on tokenmill.audit (audit_id)
  where action like 'data-key.%' or action = 'key-lives.restored';

create index audit_without_number on tokenmill.audit (audit_id) where seq is null;

-- The chain of the audit: one row. `seq` and `hash`: the head of the chain. A segment is cut (its head is signed and kept here) before it is
-- sent, so that it is sent again with the same bytes after a crash.
create table tokenmill.audit_chain (
  only_row boolean primary key default true,
  seq bigint not null default 0,
  hash bytea not null default decode(repeat('00', 32), 'hex'),
  -- Which process numbers the rows and sends the segments, and until when it has that right.
  holder uuid,
  held_until timestamptz,
  -- The last segment that was cut: its number, the last row in it with its hash, and its signed head.
  segment bigint not null default 0,
  cut_seq bigint not null default 0,
  cut_hash bytea not null default decode(repeat('00', 32), 'hex'),
  cut_at timestamptz not null default now(),
  cut_head text,
  -- The first row of a segment that was cut and not sent yet; null if every segment was sent.
  unsent_from bigint,
  sent_at timestamptz not null default now(),
  -- Since when the outside place takes no segments.
  away_since timestamptz,
  -- Somebody waits for a row to be outside: the next segment is cut at once.
  wanted boolean not null default false,
  -- Where the newest segment went, as the worker says that sent it: a URL without its user and query, or the worker's host if no
  -- AUDIT_URL was set. Null: none was sent yet.
  place text,
  is_outside boolean,
  constraint only_one_chain check (only_row),
  constraint cut_is_within_chain check (cut_seq <= seq)
);

insert into tokenmill.audit_chain default values;

-- What a reversal puts back: a token's row as it was before an interactive job changed it, sealed. Kept for 24 hours,
-- erased with the card.
create table tokenmill.before_image (
  receipt_id uuid primary key,
  token_id uuid not null,
  sealed bytea not null,
  key_version smallint not null,
  created_at timestamptz not null default now(),
  -- Under which version of `seal` the row in the copy is sealed, so that this version isn't destroyed before the copy.
  seal_version smallint default 1
);
alter table tokenmill.before_image set (autovacuum_vacuum_scale_factor = 0.02);

create index before_image_of_token on tokenmill.before_image (token_id);

create index before_image_by_age on tokenmill.before_image (created_at);

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
  failure jsonb,
  revision integer not null default 0,
  accepted_at timestamptz not null,
  expires_at timestamptz not null,
  due_at timestamptz not null,
  created_at timestamptz not null default now(),
  completed_at timestamptz,
  constraint operation_state_is_known check (state in ('QUEUED', 'ANSWERED', 'REFUSED', 'EXPIRED')),
  constraint only_a_queued_operation_keeps_its_envelope check ((state = 'QUEUED') = (jws is not null)),
  constraint refused_operation_says_why check ((state = 'REFUSED') = (failure is not null))
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
  -- Of the key that hashes the bodies of batches.
  body_mac_version smallint not null default 1,
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

-- What workers tell senders: which keys are live, and what every worker that may take their jobs can do.

-- When it was told last. One row: `change` grows with each change of clients, of their keys and of scopes, `seq` with each
-- list. `list` is the list itself (JWS), for gateways.
create table tokenmill.live_list (
  singleton boolean primary key default true,
  seq bigint not null default 0,
  change bigint not null default 1,
  told_change bigint not null default 0,
  told_at timestamptz not null default 'epoch',
  list text,
  constraint there_is_one_live_list check (singleton)
);

insert into tokenmill.live_list default values;

-- Which PostgreSQL this store lies on, and the highest timeline it was ever worked on. Every promotion of a standby
-- begins a new timeline, so a server with a lower one is what was left behind by a promotion.
create table tokenmill.cluster (
  singleton boolean primary key default true,
  system_identifier text not null,
  timeline bigint not null,
  seen_at timestamptz not null default now(),
  constraint one_cluster check (singleton),
  constraint timeline_is_positive check (timeline > 0)
);

-- What happened, for whoever subscribes to it: each event once.
create table tokenmill.event (
  event_id bigint generated always as identity primary key,
  type text not null,
  client_id text not null,
  subject text not null,
  revision integer not null,
  data jsonb not null,
  created_at timestamptz not null default now(),
  -- A code that only the data key `receipt` makes: an event without a right one is told to nobody.
  mac bytea,
  mac_version smallint,
  constraint event_is_written_once_per_revision unique (type, client_id, subject, revision)
);

-- Events are kept for some days.
create index event_by_age on tokenmill.event (created_at);

create index event_of_subject on tokenmill.event (client_id, subject);

-- Who is told of which events, and how far each telling by HTTP has come.
create table tokenmill.endpoint (
  endpoint_id uuid primary key,
  client_id text not null references tokenmill.client,
  -- Null: the client's results queue.
  url text,
  events text[] not null,
  -- The secret of its signatures; the former one signs beside it until its end.
  sealed bytea,
  seal_version smallint,
  former_sealed bytea,
  former_version smallint,
  former_until timestamptz,
  -- It asked for time: nothing is sent to it before, and at most so many at once.
  slow_until timestamptz,
  at_once smallint not null default 4,
  -- It answered 410: nothing is sent until an operator enables it.
  disabled_at timestamptz,
  created_at timestamptz not null default now(),
  removed_at timestamptz,
  -- The code of client, URL and events. A removed endpoint has none.
  mac bytea,
  mac_version smallint,
  constraint endpoint_mac_names_its_key check ((mac is null) = (mac_version is null)),
  constraint endpoint_tells_of_something check (cardinality(events) >= 1),
  -- A removed endpoint's secrets are gone.
  constraint endpoint_url_has_a_secret check (
    (sealed is null) = (seal_version is null) and (removed_at is not null or (url is null) = (sealed is null))),
  constraint former_secret_is_whole check (
    (former_sealed is null) = (former_version is null) and (former_sealed is null) = (former_until is null)),
  constraint endpoint_takes_one_to_four_at_once check (at_once between 1 and 4)
);

create index endpoint_of_client on tokenmill.endpoint (client_id) where removed_at is null;

create unique index queue_is_subscribed_once on tokenmill.endpoint (client_id) where url is null and removed_at is null;

-- One event for one URL. The row is the truth; a job on the queue is one attempt.
create table tokenmill.delivery (
  delivery_id uuid primary key,
  event_id bigint not null references tokenmill.event on delete cascade,
  endpoint_id uuid not null references tokenmill.endpoint,
  state text not null default 'WAITING',
  -- Of all attempts; each has its own job.
  attempt integer not null default 0,
  -- The place in the schedule of attempts, which an operator may begin anew.
  step smallint not null default 0,
  -- Failures since its last success, whoever began its schedule anew.
  failures integer not null default 0,
  -- WAITING: when it is due. SENDING: when its job is sent again.
  next_at timestamptz not null default now(),
  -- Of the last attempt.
  tried_at timestamptz,
  status smallint,
  reason text,
  ended_at timestamptz,
  created_at timestamptz not null default now(),
  constraint delivery_state_is_known check (state in ('WAITING', 'SENDING', 'DELIVERED', 'FAILED')),
  constraint ended_delivery_says_when check ((state in ('DELIVERED', 'FAILED')) = (ended_at is not null))
);

create index delivery_due on tokenmill.delivery (endpoint_id, next_at) where state = 'WAITING';

create index delivery_under_way on tokenmill.delivery (endpoint_id, next_at) where state = 'SENDING';

create index delivery_failed on tokenmill.delivery (endpoint_id, ended_at) where state = 'FAILED';

create index delivery_of_event on tokenmill.delivery (event_id);

create table tokenmill.process (
  process_id uuid primary key,
  role text not null,
  host text not null,
  version text not null,
  kinds text[] not null default '{}',
  features text[] not null default '{}',
  -- The most connections to the store that it opens.
  connections integer not null,
  started_at timestamptz not null default now(),
  seen_at timestamptz not null default now(),
  -- It was told to end, and did.
  ended_at timestamptz,
  -- The keys with which a process can open what is stored: ids of KEKs, and data keys as purpose and version (seal/2).
  keys text[] not null default '{}',
  -- How long a worker's recent interactive jobs on cards took, by which a re-encryption goes slower.
  work_ms integer,
  -- What a worker did in its last minutes, by kind. It writes the whole list with each heartbeat, so that a heartbeat that is
  -- repeated or lost changes nothing.
  work jsonb not null default '[]',
  -- How many processes want each core of a worker's host, as its last heartbeat says: an overloaded host is why a batch stands still.
  load real,
  -- The epoch of the keys' lives by which it goes, if it opens the vault (key_lives).
  key_epoch bigint,
  -- Its database user, which may have a limit of connections.
  login name not null default session_user,
  constraint only_workers_take_kinds check (role in ('interactive', 'bulk') or (kinds = '{}' and features = '{}')),
  constraint process_role_is_known
    check (role in ('interactive', 'bulk', 'scheduler', 'gateway', 'three-ds', 'console')),
  -- As for the kinds: only a worker says that it worked.
  constraint only_workers_work check (role in ('interactive', 'bulk') or work = '[]')
);

-- Envelopes that workers dropped, by the client that they say they are from; '' where there is no such client. Nobody has
-- proved what they say. One row per client and reason, whoever writes to the queue.
create table tokenmill.dropped_envelope (
  claimed_client text not null,
  reason text not null,
  dropped bigint not null,
  -- The first and the last without a long pause between two.
  since timestamptz not null,
  last_at timestamptz not null,
  primary key (claimed_client, reason)
);

-- For whom a card is on file. One row a source reference: the id under which a customer of a provider gave the card, and what
-- must travel with it. Batches without such ids write none.
create table tokenmill.source_reference (
  reference_no bigint generated always as identity primary key,
  token_scope uuid not null,
  provider text not null,
  -- Empty where the provider has no such id.
  provider_account text not null,
  customer_id text not null,
  card_id text not null,
  token_id uuid not null,
  on_file jsonb not null,
  version integer not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  last_receipt uuid not null,
  -- Of the batch that changed it last.
  batch_no bigint,
  batch_line integer,
  -- As it was before the single job that changed it last.
  before jsonb,
  given_at jsonb,
  constraint batch_line_names_its_batch check ((batch_no is null) = (batch_line is null)),
  constraint one_token_per_source_reference unique (card_id, customer_id, provider_account, provider, token_scope)
);
alter table tokenmill.source_reference set (autovacuum_vacuum_scale_factor = 0.02);

-- What a reversal takes back. Batches aren't reversed.
create index source_reference_of_receipt on tokenmill.source_reference (last_receipt) where batch_no is null;

-- To which token a reversal would give it back.
create index source_reference_of_former_token on tokenmill.source_reference ((before->>'tokenId')) where before is not null;

-- The owners of a token are read page by page, oldest first.
create index source_reference_of_token_by_age on tokenmill.source_reference (token_id, reference_no);

-- What a job replaced in a source reference is kept in its row for a day. Housekeeping finds the older rows.
create index source_reference_of_reversal on tokenmill.source_reference (updated_at) where before is not null;

-- That there was one: a keyed hash of its ids, when it went and why.
create table tokenmill.released_reference (
  owner_hash bytea not null,
  released_at timestamptz not null,
  cause text not null,
  receipt_id uuid not null,
  -- A release is found by the provider's id of the card, too, where the customer's isn't known. Whoever serves HTTP shows what
  -- must travel with a card.
  card_hash bytea not null,
  -- One job can release an owner twice: a chunk that is worked again finds the owner added again.
  reference_no bigint not null default 0,
  key_version smallint not null default 1,
  constraint release_cause_is_known check (cause in ('RELEASED', 'TOKEN_DELETED')),
  constraint released_reference_pkey primary key (owner_hash, receipt_id, reference_no)
);

create index released_reference_of_card on tokenmill.released_reference (card_hash);

-- The key-encryption keys (KEKs) of the installation: the current one, former ones that backups may need, and one that is
-- to become the current one. No KEK is here, and nothing that says where one is.
create table tokenmill.kek (
  kek_id text primary key,
  state text not null,
  -- Bytes that the KEK has wrapped. A host that unwraps them has the KEK.
  probe bytea not null,
  created_at timestamptz not null default now(),
  -- Since when it is not the current one any more.
  retired_at timestamptz,
  constraint kek_state_is_known check (state in ('PENDING', 'ACTIVE', 'RETIRED')),
  constraint retired_kek_has_its_time check ((state = 'RETIRED') = (retired_at is not null))
);

create unique index one_kek_is_active on tokenmill.kek (state) where state = 'ACTIVE';

-- Which readers of results say that they know an announced key. `reply_to` is empty for a client's queue without a name.
create table tokenmill.signing_key_reader (
  kid text not null references tokenmill.signing_key,
  client_id text not null references tokenmill.client,
  reply_to text not null,
  acknowledged_at timestamptz not null default now(),
  primary key (kid, client_id, reply_to)
);

-- The directory of cards: a card may be known under several versions of the fingerprint key while it turns.
create table tokenmill.card (
  -- The first 16 bytes of the keyed hash. The version isn't part of the key: a card is looked for under each one.
  fp uuid primary key,
  version smallint not null,
  token_id uuid not null
);
alter table tokenmill.card set (autovacuum_vacuum_scale_factor = 0.02);

-- The lives of all data keys, and under which versions of the fingerprint key cards are written and found: one row, with a
-- proof by the key-encryption key (KEK). Processes that hold keys go by it; `data_key` repeats it for people and searches.
create table tokenmill.key_lives (
  one boolean primary key default true,
  -- Each change adds one.
  epoch bigint not null,
  -- JSON.
  keys text not null,
  -- JSON. Every transaction that writes cards reads it first, and keeps it as it is until its end.
  phase text not null,
  kek_id text not null,
  -- SHA-256 of the columns above, wrapped by the KEK.
  proof bytea not null,
  written_at timestamptz not null default now(),
  constraint there_is_one_row_of_lives check (one)
);

-- The version of the fingerprint key under which a dry run's cards are kept, whatever the key does meanwhile.
create unlogged table tokenmill.scratch_run (
  run text primary key,
  version smallint not null,
  created_at timestamptz not null default now()
);

-- A role without the key-encryption key, the gateway, may know some data keys. Processes with that key encrypt each
-- version of them to the role's own key pair (X25519), whose private half is in a file of the role's hosts.
create table tokenmill.role_key (
  -- The thumbprint of the public half (RFC 7638).
  kid text primary key,
  role text not null,
  public_jwk jsonb not null,
  -- A secret that the file holds, too, sealed under the data key private-half for this very kid: it proves that tokenmill
  -- wrote the row, and to the role that tokenmill wrote the keys that it reads.
  sealed bytea,
  key_version smallint,
  created_at timestamptz not null default now(),
  -- A key that was forgotten never comes back: a copy of its file may be in wrong hands.
  forgotten_at timestamptz,
  constraint role_is_known check (role in ('gateway')),
  constraint role_key_has_a_secret_until_it_is_forgotten check (
    num_nonnulls(sealed, key_version) = case when forgotten_at is null then 2 else 0 end
  )
);

create table tokenmill.shared_key (
  kid text not null references tokenmill.role_key,
  purpose text not null,
  version smallint not null,
  -- The data key as a compact JWE.
  jwe text not null,
  created_at timestamptz not null default now(),
  primary key (kid, purpose, version),
  foreign key (purpose, version) references tokenmill.data_key (purpose, version)
);

-- Where each receipt is. A receipt's week isn't known from its id, so a look-up by id alone searches the index of every
-- week. Here one search suffices. A row is also the claim on the id: the primary key of the receipts holds within a week
-- only.
create table tokenmill.receipt_key (
  receipt_id uuid primary key,
  -- The day of the receipt, which tells its week. Null: the job was answered, and left no receipt.
  day date,
  -- Of the last answer before the receipt, or of the receipt's first. The receipt's own row counts from there.
  revision integer not null,
  -- The day of the last answer. Null: there is a receipt.
  answered_on date,
  constraint receipt_key_has_one_day check ((day is null) <> (answered_on is null))
);
alter table tokenmill.receipt_key set (autovacuum_vacuum_scale_factor = 0.02);

-- Retention finds old answers by it. Keys of receipts go with the receipts.
create index receipt_key_of_answers on tokenmill.receipt_key (answered_on) where day is null;

create function tokenmill.note_key_change() returns trigger language plpgsql as $$
begin
  update tokenmill.live_list set change = change + 1;
  return null;
end
$$;
revoke execute on function tokenmill.note_key_change() from public;

-- Refuses a data key that another KEK than the current one has wrapped. The row's lock makes it wait for a rotation that
-- is about to commit: a process that read the former KEK's id can't leave a key behind that nobody wraps anew.
create function tokenmill.check_current_kek() returns trigger language plpgsql as $$
begin
  perform 1 from tokenmill.installation where kek_id = new.kek_id for share;
  if not found and exists (select from tokenmill.installation) then
    raise exception 'another key-encryption key is current' using errcode = 'serialization_failure';
  end if;
  return new;
end
$$;
revoke execute on function tokenmill.check_current_kek() from public;

-- Whether the database's owner has connected, or whoever may act as the owner: the owner isn't held to what holds for
-- workers.
create function tokenmill.is_owner() returns boolean language sql stable
set search_path = pg_catalog, pg_temp as $$
  select pg_has_role(session_user, relowner, 'MEMBER') from pg_class where oid = 'tokenmill.audit'::regclass
$$;
revoke execute on function tokenmill.is_owner() from public;

-- Makes the partition of the week that begins on this Monday, unless it is there.
create function tokenmill.make_week(parent text, monday date) returns void language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare name text := parent || '_' || to_char(monday, 'YYYYMMDD');
begin
  if parent not in ('receipt', 'outbox') or extract(isodow from monday) <> 1 then
    raise exception 'no week of a partitioned table: %, %', parent, monday using errcode = 'invalid_parameter_value';
  end if;
  if to_regclass('tokenmill.' || name) is null then
    execute format('create table tokenmill.%I partition of tokenmill.%I for values from (%L) to (%L)',
      name, parent, to_char(monday, 'YYYY-MM-DD'), to_char(monday + 7, 'YYYY-MM-DD'));
    if parent = 'outbox' then
      execute format('alter table tokenmill.%I set (autovacuum_vacuum_scale_factor = 0.02)', name);
    end if;
  end if;
end
$$;
revoke execute on function tokenmill.make_week(text, date) from public;
grant execute on function tokenmill.make_week(text, date) to tokenmill_worker;

-- Drops the partition of a week: for a worker only a week that ended six days ago (seven, and a margin for its clock).
create function tokenmill.drop_week(parent text, monday date) returns void language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
  if parent not in ('receipt', 'outbox') or extract(isodow from monday) <> 1 then
    raise exception 'no week of a partitioned table: %, %', parent, monday using errcode = 'invalid_parameter_value';
  end if;
  if (now() at time zone 'UTC')::date < monday + 13 and not tokenmill.is_owner() then
    raise exception 'the week of % is not over for six days', monday using errcode = 'insufficient_privilege';
  end if;
  execute format('drop table if exists tokenmill.%I', parent || '_' || to_char(monday, 'YYYYMMDD'));
end
$$;
revoke execute on function tokenmill.drop_week(text, date) from public;
grant execute on function tokenmill.drop_week(text, date) to tokenmill_worker;

-- How far the slowest replica is behind, in ms; null without one. The server shows it to the owner, who may have the role
-- pg_read_all_stats.
create function tokenmill.replica_lag_ms() returns bigint language sql security definer
set search_path = pg_catalog, pg_temp as $$
  select (extract(epoch from max(replay_lag)) * 1000)::bigint from pg_stat_replication
$$;
revoke execute on function tokenmill.replica_lag_ms() from public;
grant execute on function tokenmill.replica_lag_ms() to tokenmill_worker;

-- Writes a heartbeat of a process whose database role may write no row of a process. Others wait for processes by what these
-- rows say, so the role and the time aren't the process's to say, and a row of another role stays as it is. Of each such
-- role 200 rows stay, so that it can't fill the table: those that were seen last.
create function tokenmill.see_process(own_role text, id uuid, own_host text, own_version text, most integer, held text[])
returns void language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if length(own_host) > 255 or length(own_version) > 64 or most not between 0 and 10000 or cardinality(held) > 1000 then
    raise exception 'a heartbeat of % is too large', own_role using errcode = 'invalid_parameter_value';
  end if;
  insert into tokenmill.process as p (process_id, role, host, version, connections, keys)
  values (id, own_role, own_host, own_version, most, held)
  on conflict (process_id) do update set seen_at = now(), keys = excluded.keys where p.role = excluded.role;
  if not found then
    raise exception 'the process % has another role than %', id, own_role using errcode = 'insufficient_privilege';
  end if;
  -- Rows that another heartbeat has locked are passed over: two that remove each other's row would wait for each other.
  delete from tokenmill.process where process_id in (
    select process_id from tokenmill.process where process_id in (
      select process_id from tokenmill.process where role = own_role
      order by ended_at is not null, seen_at desc, process_id = id desc offset 200
    ) for update skip locked
  );
end
$$;
revoke execute on function tokenmill.see_process(text, uuid, text, text, integer, text[]) from public;

-- Of the keys only those that a gateway may know (SHARED_PURPOSES): its word about another one decides nothing.
create function tokenmill.see_gateway(id uuid, own_host text, own_version text, most integer, held text[])
returns void language sql security definer set search_path = pg_catalog, pg_temp as $$
  select tokenmill.see_process('gateway', id, own_host, own_version, most, array(
    select key from unnest(held) as key where key ~ '^(network-token|api-key|intake)/[1-9][0-9]{0,8}$'
  ))
$$;
revoke execute on function tokenmill.see_gateway(uuid, text, text, integer, text[]) from public;

create function tokenmill.leave_gateway(id uuid) returns void language sql security definer
set search_path = pg_catalog, pg_temp as $$
  update tokenmill.process set ended_at = now() where process_id = id and role = 'gateway'
$$;
revoke execute on function tokenmill.leave_gateway(uuid) from public;

-- A status that changes leaves the indexes of a token's row alone, so that PostgreSQL writes the new version of the row onto
-- the page of the old one and touches no index (a HOT update). Therefore the index of the nightly sweep doesn't name the
-- status. So that it holds no token for ever, a trigger notes which tokens need no sweep any more.
-- src/store/large-indexes.ts builds the index.
create function tokenmill.note_expiry() returns trigger language plpgsql as $$
begin
  new.expiry_is_done := case when new.suspended_reason = 'EXPIRED' or new.status = 'DELETED' then true end;
  return new;
end
$$;
revoke execute on function tokenmill.note_expiry() from public;

create trigger note_key_change after insert or update or delete on tokenmill.client
  for each statement execute function tokenmill.note_key_change();

create trigger note_key_change after insert or update or delete on tokenmill.client_key
  for each statement execute function tokenmill.note_key_change();

create trigger note_key_change after insert or update or delete on tokenmill.scope
  for each statement execute function tokenmill.note_key_change();

create trigger key_lives_are_proved_by_current_kek before insert or update of kek_id on tokenmill.key_lives
  for each row execute function tokenmill.check_current_kek();

create trigger data_key_is_wrapped_by_current_kek before insert or update of kek_id on tokenmill.data_key
  for each row execute function tokenmill.check_current_kek();

create trigger token_notes_its_expiry before update on tokenmill.token for each row
  when (
    new.token_expiry_date is not null
    and (new.status = 'DELETED' or new.suspended_reason is not distinct from 'EXPIRED')
      is distinct from coalesce(old.expiry_is_done, false)
  )
  execute function tokenmill.note_expiry();

-- What a worker does beyond its rights on tables (src/store/worker-rights.ts): each function runs as the database's owner,
-- so it does one thing only, checks its arguments, and finds nothing by a search path.
grant select on tokenmill.installation to tokenmill_reader;

grant select on tokenmill.client_key to tokenmill_reader;

grant select on tokenmill.scope to tokenmill_reader;

grant select on tokenmill.bin_range to tokenmill_reader;

grant select on tokenmill.sequence_mark to tokenmill_reader;

grant select on tokenmill.batch to tokenmill_reader;

grant select on tokenmill.receipt to tokenmill_reader;

grant select (outbox_id, day, client_id, reply_to, result_id, receipt_id, revision, body, state, created_at, traceparent,
  envelope_digest) on tokenmill.outbox to tokenmill_reader;

grant select on tokenmill.reply_queue to tokenmill_reader;

grant select on tokenmill.dry_run to tokenmill_reader;

grant select (kid, alg, public_jwk, created_at, state, statement, active_at, retired_at, mac, mac_version) on
  tokenmill.signing_key to tokenmill_reader;

grant select (client_id, name, user_id, entities, roles, alg, system, created_at, revoked_at, names, mac, mac_version)
  on tokenmill.client to tokenmill_reader;

grant select (alias, entity_id, type, public_key, state, created_at, retired_at, destroyed_at, mac, mac_version,
  key_id, number, statement, stated_by, stated_until, last_used_at, last_used_by, told_at) on tokenmill.capture_key to
  tokenmill_reader;

grant select (token_id, token_scope, status, suspended_reason, token_type, bin, last_four, expiry_month, expiry_year,
  card_holder_name, card_holder_email, brand, card_brand, bin_range, analytics_token, token_expiry_date, created_at,
  updated_at, version, last_receipt, batch_no, third_party_type, third_party_token) on tokenmill.token to
  tokenmill_reader;

grant select (api_key_hash, api_key_version) on tokenmill.client to tokenmill_gateway;

grant select on tokenmill.kysely_migration to tokenmill_gateway;

grant select on tokenmill.intake to tokenmill_reader;

grant select (receipt_id, client_id, entity_id, kind, job_id, state, failure, revision, accepted_at, expires_at,
  due_at, created_at, completed_at) on tokenmill.operation to tokenmill_reader;

grant select (intake_no, chunk, receipt_id, job_id, records, state, code, reason, sent_at, due_at) on
  tokenmill.intake_chunk to tokenmill_reader;

grant select, insert, update, delete on tokenmill.operation to tokenmill_gateway;

grant select, insert, update, delete on tokenmill.intake to tokenmill_gateway;

grant select, insert, update, delete on tokenmill.intake_chunk to tokenmill_gateway;

grant insert, update (cancelled_at) on tokenmill.batch to tokenmill_gateway;

grant insert (actor, action, subject, detail, host, outcome, entity_id), select (audit_id) on tokenmill.audit to
  tokenmill_gateway;

grant select on tokenmill.live_list to tokenmill_reader;

grant select on tokenmill.cluster to tokenmill_reader;

grant select on tokenmill.event to tokenmill_reader;

grant select on tokenmill.delivery to tokenmill_reader;

grant select (endpoint_id, client_id, events, former_until, slow_until, at_once, disabled_at, created_at,
  removed_at) on tokenmill.endpoint to tokenmill_reader;

grant select on tokenmill.process to tokenmill_reader;

grant execute on function tokenmill.see_gateway(uuid, text, text, integer, text[]) to tokenmill_gateway;

grant execute on function tokenmill.leave_gateway(uuid) to tokenmill_gateway;

grant select on tokenmill.dropped_envelope to tokenmill_reader;

grant select (released_at, cause, receipt_id) on tokenmill.released_reference to tokenmill_reader;

grant select (reference_no, token_scope, provider, provider_account, customer_id, card_id, token_id, version,
  created_at, updated_at, last_receipt, batch_no, batch_line) on tokenmill.source_reference to tokenmill_reader;

grant select (on_file) on tokenmill.source_reference to tokenmill_gateway;

grant select (kek_id, state, created_at, retired_at) on tokenmill.kek to tokenmill_reader;

grant select on tokenmill.signing_key_reader to tokenmill_reader;

grant select (epoch, keys, phase, kek_id, written_at) on tokenmill.key_lives to tokenmill_reader;

grant select on tokenmill.shared_key to tokenmill_gateway;

grant select (purpose, version, state) on tokenmill.data_key to tokenmill_gateway;

grant select on tokenmill.receipt_key to tokenmill_reader;

-- What workers did in each minute: the sum over all of them. A minute is summed anew while workers still report it, and is then final.
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

-- Entities whose capture keys turn by themselves.
create table tokenmill.capture_turning (
  entity_id uuid primary key,
  every_days smallint not null,
  since timestamptz not null default now(),
  constraint capture_keys_turn_within_ten_years check (every_days between 30 and 3650)
);

grant select on tokenmill.work_minute to tokenmill_reader;

grant select on tokenmill.capture_turning to tokenmill_reader;
