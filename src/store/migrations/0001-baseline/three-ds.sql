-- 3-D Secure, and orders.

-- 3-D Secure: contracts, authentications, and the JWTs that browsers begin with. Card numbers are never here: a card is a
-- token or a keyed hash. What proves an outcome, or leads to a challenge, is sealed.

create table tokenmill.threeds_contract (
  contract_id uuid primary key,
  entity_id uuid not null,
  name text not null,
  key_sealed bytea not null,
  key_version smallint not null,
  directory_url text not null,
  acquirer_bin text not null,
  acquirer_merchant_id text not null,
  mcc text not null,
  merchant_country text not null,
  merchant_name text not null,
  requestor_url text not null,
  requestor_id text not null,
  requestor_name text not null,
  notification_url text not null,
  issuer text not null,
  org_unit_id text not null,
  created_at timestamptz not null default now(),
  -- The key of a 3-D Secure contract is replaced: the former one verifies JWTs until its time ends.
  former_key_sealed bytea,
  former_key_version smallint,
  former_until timestamptz,
  -- The code of the terms; the sealed keys are no part of it.
  mac bytea,
  mac_version smallint,
  constraint contract_mac_names_its_key check ((mac is null) = (mac_version is null)),
  constraint contract_name_stands_once_per_entity unique (entity_id, name),
  constraint former_contract_key_is_whole check (
    num_nonnulls(former_key_sealed, former_key_version, former_until) in (0, 3)
  )
);

create table tokenmill.authentication (
  authentication_id uuid primary key,
  transaction_id uuid not null,
  entity_id uuid not null,
  contract_id uuid not null references tokenmill.threeds_contract,
  client_id text collate "C" not null,
  idempotency_key text collate "C",
  request_digest bytea,
  jti text collate "C",
  token_id uuid,
  public_key_alias text collate "C",
  amount bigint not null,
  currency_code text collate "C" not null,
  message_category text collate "C" not null,
  network text collate "C" not null,
  state text collate "C" not null,
  pares_status text collate "C" generated always as (nullif(state, 'OPEN')) stored,
  threeds_version text collate "C",
  enrolled text collate "C",
  signature_verification text collate "C",
  eci_flag text collate "C",
  ds_transaction_id text collate "C",
  acs_transaction_id text collate "C",
  xid text collate "C",
  order_id text collate "C",
  acs_url text collate "C",
  error_no text collate "C",
  error_desc text collate "C",
  reason_code text collate "C",
  reason_desc text collate "C",
  status_reason text collate "C",
  cardholder_info text collate "C",
  card_brand text collate "C",
  network_score text collate "C",
  acs_rendering_type text collate "C",
  authentication_type text collate "C",
  challenge_required text collate "C",
  challenge_cancel text collate "C",
  sealed bytea,
  seal_version smallint,
  asked_until timestamptz not null,
  pending_until timestamptz not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  version integer not null,
  challenge_indicator text collate "C",
  digest_version smallint not null default 1,
  constraint transaction_belongs_to_one_authentication unique (transaction_id),
  constraint idempotency_key_stands_once_per_client unique (client_id, idempotency_key),
  constraint authentication_state_is_known check (state in ('OPEN', 'C', 'Y', 'A', 'N', 'U', 'R')),
  constraint sealed_names_its_key check ((sealed is null) = (seal_version is null)),
  constraint answered_has_an_eci check (state in ('OPEN', 'C') or eci_flag is not null),
  constraint idempotent_has_a_digest check ((idempotency_key is null) = (request_digest is null)),
  constraint nothing_is_sealed_before_an_answer check (state <> 'OPEN' or sealed is null)
);

-- One index for each field that a list is filtered or sorted by: a page is read off it from its newest end, within an
-- entity, whatever its value is worth. Texts of errors and of the issuer follow from numbers that have theirs.
create index authentication_by_creation on tokenmill.authentication (entity_id, created_at, authentication_id);

create index authentication_by_amount on tokenmill.authentication (entity_id, amount, created_at);

create index authentication_by_currency on tokenmill.authentication (entity_id, currency_code, created_at);

create index authentication_by_contract on tokenmill.authentication (entity_id, contract_id, created_at);

create index authentication_by_token on tokenmill.authentication (entity_id, token_id, created_at);

create index authentication_by_alias on tokenmill.authentication (entity_id, public_key_alias, created_at);

create index authentication_by_status on tokenmill.authentication (entity_id, pares_status, created_at);

create index authentication_by_version on tokenmill.authentication (entity_id, threeds_version, created_at);

create index authentication_by_enrolment on tokenmill.authentication (entity_id, enrolled, created_at);

create index authentication_by_signature on tokenmill.authentication (entity_id, signature_verification, created_at);

create index authentication_by_eci on tokenmill.authentication (entity_id, eci_flag, created_at);

create index authentication_by_ds on tokenmill.authentication (entity_id, ds_transaction_id, created_at);

create index authentication_by_acs on tokenmill.authentication (entity_id, acs_transaction_id, created_at);

create index authentication_by_xid on tokenmill.authentication (entity_id, xid, created_at);

create index authentication_by_order on tokenmill.authentication (entity_id, order_id, created_at);

create index authentication_by_url on tokenmill.authentication (entity_id, acs_url, created_at);

create index authentication_by_error on tokenmill.authentication (entity_id, error_no, created_at);

create index authentication_by_error_text on tokenmill.authentication (entity_id, error_desc, created_at);

create index authentication_by_reason on tokenmill.authentication (entity_id, reason_code, created_at);

create index authentication_by_reason_text on tokenmill.authentication (entity_id, reason_desc, created_at);

create index authentication_by_status_reason on tokenmill.authentication (entity_id, status_reason, created_at);

create index authentication_by_info on tokenmill.authentication (entity_id, cardholder_info, created_at);

create index authentication_by_brand on tokenmill.authentication (entity_id, card_brand, created_at);

create index authentication_by_score on tokenmill.authentication (entity_id, network_score, created_at);

create index authentication_by_rendering on tokenmill.authentication (entity_id, acs_rendering_type, created_at);

create index authentication_by_type on tokenmill.authentication (entity_id, authentication_type, created_at);

create index authentication_by_challenge on tokenmill.authentication (entity_id, challenge_required, created_at);

create index authentication_by_cancel on tokenmill.authentication (entity_id, challenge_cancel, created_at);

create index authentication_pending on tokenmill.authentication (pending_until) where state in ('OPEN', 'C');

create index authentication_age on tokenmill.authentication (created_at);

create table tokenmill.threeds_jwt (
  jti text collate "C" primary key,
  contract_id uuid not null references tokenmill.threeds_contract,
  authentication_id uuid,
  issued_at timestamptz not null,
  used_at timestamptz
);

create index threeds_jwt_age on tokenmill.threeds_jwt (issued_at);


grant select (contract_id, entity_id, name, directory_url, acquirer_bin, acquirer_merchant_id, mcc, merchant_country,
  merchant_name, requestor_url, requestor_id, requestor_name, notification_url, issuer, org_unit_id, created_at,
  former_until) on tokenmill.threeds_contract to tokenmill_reader;

grant select (authentication_id, transaction_id, entity_id, contract_id, client_id, token_id, public_key_alias,
  amount, currency_code, message_category, network, state, pares_status, threeds_version, enrolled,
  signature_verification, eci_flag, ds_transaction_id, acs_transaction_id, xid, order_id, acs_url, error_no,
  error_desc, reason_code, reason_desc, status_reason, cardholder_info, card_brand, network_score, acs_rendering_type,
  authentication_type, challenge_required, challenge_cancel, asked_until, pending_until, created_at, updated_at,
  version, challenge_indicator) on tokenmill.authentication to tokenmill_reader;

grant select on tokenmill.threeds_jwt to tokenmill_reader;
