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
  constraint one_token_per_source_reference unique (token_scope, provider, provider_account, customer_id, card_id),
  constraint batch_line_names_its_batch check ((batch_no is null) = (batch_line is null))
);
create index source_reference_of_token on tokenmill.source_reference (token_id);
-- What a reversal takes back. Batches aren't reversed.
create index source_reference_of_receipt on tokenmill.source_reference (last_receipt) where batch_no is null;
-- To which token a reversal would give it back.
create index source_reference_of_former_token on tokenmill.source_reference ((before->>'tokenId')) where before is not null;

-- That there was one: a keyed hash of its ids, when it went and why.
create table tokenmill.released_reference (
  owner_hash bytea not null,
  released_at timestamptz not null,
  cause text not null,
  receipt_id uuid not null,
  primary key (owner_hash, receipt_id),
  constraint release_cause_is_known check (cause in ('RELEASED', 'TOKEN_DELETED'))
);

alter table tokenmill.scope add column keep_billing boolean not null default false;

grant select on tokenmill.released_reference to tokenmill_reader;
-- Neither names nor addresses.
grant select (reference_no, token_scope, provider, provider_account, customer_id, card_id, token_id, version, created_at, updated_at,
  last_receipt, batch_no, batch_line) on tokenmill.source_reference to tokenmill_reader;
