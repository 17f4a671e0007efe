-- People, their passkeys and their invites. Only acts write them: a worker's, after it checked who acts, and the commands of
-- an operator. A row that grants a right has a message authentication code, as a client's row has: whoever owns the database
-- can't make a person. A revoked or used row has none.
create table tokenmill.person (
  person_id uuid primary key,
  name text not null,
  roles text[] not null,
  -- The entities whose rows the person sees; null: all.
  entities uuid[],
  -- Of the embedded engine only: acts without a passkey.
  is_local boolean not null default false,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  mac bytea,
  mac_version smallint,
  constraint person_has_known_roles check (roles <@ array['VIEWER', 'OPERATOR', 'ADMIN'] and cardinality(roles) > 0),
  constraint person_has_no_empty_list_of_entities check (cardinality(entities) > 0),
  constraint person_mac_is_whole check ((mac is null) = (mac_version is null))
);
-- A revoked person's name may be given again.
create unique index person_name_stands_once on tokenmill.person (name) where revoked_at is null;

create table tokenmill.person_credential (
  -- As the authenticator gave it, base64url.
  credential_id text primary key,
  person_id uuid not null references tokenmill.person,
  public_jwk jsonb not null,
  alg text not null,
  -- The domain to which the passkey is bound.
  rp_id text not null,
  -- What a use of it changes; the code doesn't cover these two.
  sign_count bigint not null,
  last_used_at timestamptz,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  mac bytea,
  mac_version smallint,
  constraint credential_algorithm_is_known check (alg in ('ES256', 'EdDSA', 'RS256')),
  constraint credential_mac_is_whole check ((mac is null) = (mac_version is null))
);
create index credential_by_person on tokenmill.person_credential (person_id);

create table tokenmill.invite (
  invite_id uuid primary key,
  -- Both are derived from the secret in the link, which nobody keeps: SHA-256 of the value by which the console finds the
  -- invite, and the public half of the key that signs the enrolment.
  lookup_hash bytea not null,
  public_key bytea not null,
  name text not null,
  roles text[] not null,
  entities uuid[],
  -- The person who gets a further passkey; null: a new person.
  person_id uuid references tokenmill.person,
  invited_by text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  used_at timestamptz,
  mac bytea,
  mac_version smallint,
  constraint invite_lookup_is_hashed check (length(lookup_hash) = 32),
  constraint invite_lookup_stands_once unique (lookup_hash),
  constraint invite_key_is_ed25519 check (length(public_key) = 32),
  constraint invite_has_known_roles check (roles <@ array['VIEWER', 'OPERATOR', 'ADMIN'] and cardinality(roles) > 0),
  constraint invite_mac_is_whole check ((mac is null) = (mac_version is null))
);

-- Acts that were done or refused after their proof was verified: none counts twice. Retention removes them after an hour.
create table tokenmill.act_nonce (
  nonce text primary key,
  used_at timestamptz not null default now(),
  receipt_id uuid not null,
  -- The act's row in the audit; null: there is none.
  audit_id bigint,
  constraint act_has_one_receipt unique (receipt_id)
);
create index act_nonce_age on tokenmill.act_nonce (used_at);

-- Whose batch it is: the entity of its scope, or without one that of the envelope that began it. Null in rows of earlier
-- releases, and as soon as a chunk comes for another entity.
alter table tokenmill.batch add column entity_id uuid;

-- The console signs acts as a client of its own.
alter table tokenmill.client drop constraint client_id_has_its_form;
alter table tokenmill.client add constraint client_id_has_its_form
  check (client_id ~ '^(c[a-z0-9]{25}|console|gateway|scheduler|worker)$');

grant select (person_id, name, roles, entities, is_local, created_at, revoked_at, mac, mac_version) on tokenmill.person
  to tokenmill_reader;
grant select on tokenmill.person_credential to tokenmill_reader;
grant select (invite_id, name, roles, entities, person_id, invited_by, created_at, expires_at, used_at) on tokenmill.invite
  to tokenmill_reader;
