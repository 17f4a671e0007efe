-- What a reversal puts back: a token's row as it was before an interactive job changed it, sealed. Kept for 24 hours,
-- erased with the card.
create table tokenmill.before_image (
  receipt_id uuid primary key,
  token_id uuid not null,
  sealed bytea not null,
  key_version smallint not null,
  created_at timestamptz not null default now()
);
create index before_image_of_token on tokenmill.before_image (token_id);
create index before_image_by_age on tokenmill.before_image (created_at);
