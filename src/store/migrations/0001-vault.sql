-- The token store: one schema, `tokenmill`. Every constraint has a name that states its rule.

create table tokenmill.installation (
  singleton boolean primary key default true,
  installation_id uuid not null,
  kek_id text not null,
  created_at timestamptz not null default now(),
  constraint one_installation_per_store check (singleton)
);

-- Keys of the vault, each wrapped by the key-encryption key, which is never here.
create table tokenmill.data_key (
  purpose text not null,
  version smallint not null,
  wrapped bytea not null,
  state text not null default 'ACTIVE',
  created_at timestamptz not null default now(),
  primary key (purpose, version),
  constraint data_key_state_is_known check (state in ('ACTIVE', 'DECRYPT_ONLY', 'DESTROYED'))
);

-- What the installation signs results with.
create table tokenmill.signing_key (
  kid text primary key,
  alg text not null,
  public_jwk jsonb not null,
  wrapped_private bytea not null,
  created_at timestamptz not null default now()
);

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
  constraint user_belongs_to_one_client unique (user_id),
  constraint client_id_has_its_form check (client_id ~ '^(c[a-z0-9]{25}|gateway|scheduler|worker)$')
);

create table tokenmill.client_key (
  client_id text not null references tokenmill.client,
  kid text not null,
  alg text not null,
  public_jwk jsonb not null,
  state text not null default 'ACTIVE',
  valid_until timestamptz,
  created_at timestamptz not null default now(),
  primary key (client_id, kid),
  constraint client_key_state_is_known check (state in ('ACTIVE', 'RETIRED', 'REVOKED')),
  constraint retired_key_has_an_end check (state <> 'RETIRED' or valid_until is not null)
);

create table tokenmill.scope (
  token_scope uuid primary key,
  entity_id uuid not null,
  par boolean not null default false,
  network_tokens boolean not null default false,
  requestor text not null default 'MERCHANT',
  bin_digits smallint not null default 8,
  created_at timestamptz not null default now(),
  constraint requestor_is_known check (requestor in ('MERCHANT', 'PSP')),
  constraint bin_digits_are_6_or_8 check (bin_digits in (6, 8))
);

create table tokenmill.capture_key (
  alias text primary key,
  entity_id uuid not null,
  type text not null,
  public_key text not null,
  wrapped_private bytea,
  state text not null default 'ACTIVE',
  created_at timestamptz not null default now(),
  retired_at timestamptz,
  destroyed_at timestamptz,
  constraint capture_key_type_is_known check (type in ('jwe-rsa', 'jwe-ec', 'pgp')),
  constraint capture_key_state_is_known check (state in ('ACTIVE', 'RETIRED', 'DESTROYED')),
  constraint destroyed_capture_key_holds_no_private_half check ((state = 'DESTROYED') = (wrapped_private is null))
);

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
  fingerprint bytea,
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
  constraint one_live_token_per_card unique (fingerprint),
  constraint token_status_is_known check (status in ('ACTIVE', 'SUSPENDED', 'DELETED')),
  constraint only_suspended_has_a_reason check ((status = 'SUSPENDED') = (suspended_reason is not null)),
  constraint deleted_keeps_no_card_data check (
    status <> 'DELETED'
    or (fingerprint is null and sealed is null and bin is null and last_four is null and card_holder_name is null
        and card_holder_email is null and analytics_token is null)
  ),
  constraint live_has_a_fingerprint check (status = 'DELETED' or fingerprint is not null),
  constraint analytics_keeps_no_card check (token_type <> 'ANALYTICS' or sealed is null),
  constraint sealed_names_its_key check ((sealed is null) = (seal_version is null))
);
create index token_expires on tokenmill.token (token_expiry_date) where token_expiry_date is not null and status = 'ACTIVE';

create table tokenmill.sequence_mark (
  token_id uuid not null,
  client_id text not null,
  sequence bigint not null,
  primary key (token_id, client_id)
);

create table tokenmill.batch (
  batch_no bigint generated always as identity primary key,
  client_id text not null,
  batch_id text not null,
  record_kind text not null,
  token_scope uuid,
  chunk_records integer not null,
  layout jsonb not null,
  accepted_at timestamptz not null,
  state text not null default 'RUNNING',
  created_at timestamptz not null default now(),
  cancelled_at timestamptz,
  constraint batch_id_stands_once_per_client unique (client_id, batch_id),
  constraint batch_state_is_known check (state in ('RUNNING', 'CANCELLED'))
);

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
  primary key (receipt_id, day),
  constraint receipt_status_is_known check (status in ('SUCCEEDED', 'FAILED', 'CANCELLED'))
) partition by range (day);
create index receipt_of_batch on tokenmill.receipt (batch_no, chunk) where batch_no is not null;

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
  primary key (outbox_id, day),
  constraint outbox_state_is_known check (state in ('NEW', 'SENT'))
) partition by range (day);
create index outbox_new on tokenmill.outbox (client_id, reply_to, outbox_id) where state = 'NEW';
create index outbox_of_receipt on tokenmill.outbox (receipt_id);

create table tokenmill.reply_queue (
  client_id text not null,
  reply_to text not null,
  created_at timestamptz not null default now(),
  primary key (client_id, reply_to)
);

-- Cards of these digits that were not known when asked for: what a guesser of PANs leaves behind.
create table tokenmill.guess (
  client_id text not null,
  token_scope uuid not null,
  digits text not null,
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
  run text not null,
  fingerprint bytea not null,
  chunk integer not null,
  row jsonb not null,
  created_at timestamptz not null default now(),
  primary key (run, fingerprint)
);

create table tokenmill.audit (
  audit_id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  actor text not null,
  action text not null,
  subject text not null,
  detail jsonb not null default '{}'
);
