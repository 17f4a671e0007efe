-- Third parties' reuse tokens. The token's row says whose it is and what it is called; the provisioning at the third
-- party is a row like a scheme token's, so that the same steps make it, undo it and delete it. What exists has none of
-- this: no constraint needs a look at it.
alter table tokenmill.scheme_token
  -- Makes a reuse token; else a scheme token.
  add column third_party boolean not null default false,
  -- Of the card under its contract, while it may come to a token: of several jobs one asks for it.
  add column fingerprint bytea,
  -- When a token took it up.
  add column taken_at timestamptz,
  add constraint third_party_is_no_scheme_token check (not third_party or not current) not valid,
  add constraint fingerprint_is_kept_only_while_live check (
    fingerprint is null or (third_party and state in ('PENDING', 'ACTIVE') and retired_at is null)
  ) not valid,
  add constraint third_party_is_live_or_nothing check (not third_party or state in ('PENDING', 'ACTIVE', 'VOID')) not valid;
create unique index one_provisioning_per_card on tokenmill.scheme_token (fingerprint) where fingerprint is not null;
create index third_party_without_token on tokenmill.scheme_token (created_at)
  where third_party and taken_at is null and retired_at is null and state in ('PENDING', 'ACTIVE');
-- Not unique: two entities' tokens may be called the same.
create index third_party_by_name on tokenmill.scheme_token (reference) where third_party and state = 'ACTIVE';
grant select (third_party, taken_at) on tokenmill.scheme_token to tokenmill_reader;

-- Last: nobody reads a token from here to the end of the transaction.
alter table tokenmill.token
  add column third_party_type text,
  add column third_party_token text,
  add constraint third_party_token_names_its_type
    check ((third_party_type is null) = (third_party_token is null)) not valid,
  add constraint third_party_keeps_the_card check (third_party_type is null or sealed is null) not valid;
grant select (third_party_type, third_party_token) on tokenmill.token to tokenmill_reader;
