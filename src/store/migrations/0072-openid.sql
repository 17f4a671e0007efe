-- Sign-in by OpenID: which account at a provider is whose. Only acts write it: a worker's and the commands of an operator. A row
-- has a message authentication code, as a passkey's has. An identity signs in; it signs no act.
create table tokenmill.person_identity (
  identity_id uuid primary key,
  person_id uuid not null references tokenmill.person,
  -- The provider and the account there, exactly as the provider writes them in an ID token.
  issuer text not null,
  subject text not null,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  mac bytea,
  mac_version smallint,
  constraint identity_issuer_is_a_url check (issuer ~ '^https?://' and length(issuer) <= 300),
  constraint identity_subject_is_short check (length(subject) between 1 and 255),
  constraint identity_mac_is_whole check ((mac is null) = (mac_version is null))
);
-- One account is one person's. One that was disconnected may be connected again.
create unique index identity_is_one_persons on tokenmill.person_identity (issuer, subject) where revoked_at is null;
create index identity_by_person on tokenmill.person_identity (person_id);

-- The identity that the person of an invite gets with the passkey.
alter table tokenmill.invite add column issuer text;
alter table tokenmill.invite add column subject text;
alter table tokenmill.invite add constraint invite_identity_is_whole check ((issuer is null) = (subject is null));

-- The identity with which a session began: when it is disconnected, the session is over.
alter table tokenmill.session add column identity_id uuid;

-- A person who is on the way to a provider and back. The console writes it, and uses each row once.
create table tokenmill.openid_flow (
  -- SHA-256 of the state, which the provider hands back.
  state_hash bytea primary key,
  -- SHA-256 of the cookie of the browser that began.
  browser_hash bytea not null,
  nonce text not null,
  -- Of PKCE (RFC 7636).
  verifier text not null,
  purpose text not null,
  -- The session that connects an identity; null at a sign-in.
  session_hash bytea,
  -- The page to which a sign-in leads.
  destination text not null,
  -- What the provider said, for the person to confirm.
  subject text,
  expires_at timestamptz not null,
  used_at timestamptz,
  constraint flow_hashes_are_sha256 check (length(state_hash) = 32 and length(browser_hash) = 32),
  constraint flow_purpose_is_known check (purpose in ('sign-in', 'connect')),
  constraint only_a_session_connects check ((purpose = 'connect') = (session_hash is not null)),
  constraint only_a_used_flow_has_a_subject check (subject is null or (used_at is not null and purpose = 'connect'))
);
create index openid_flow_end on tokenmill.openid_flow (expires_at);
create index openid_flow_by_session on tokenmill.openid_flow (session_hash) where session_hash is not null;

grant select, insert, update, delete on tokenmill.openid_flow to tokenmill_console;
-- Workers check the codes of these rows before a code matters; the console can't, as with passkeys.
grant select (identity_id, person_id, issuer, subject, created_at, revoked_at) on tokenmill.person_identity to tokenmill_console;
grant select (identity_id, person_id, issuer, created_at, revoked_at) on tokenmill.person_identity to tokenmill_reader;
