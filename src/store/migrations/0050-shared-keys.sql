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

grant select on tokenmill.shared_key to tokenmill_gateway;
grant select (purpose, version, state) on tokenmill.data_key to tokenmill_gateway;
-- A gateway says which keys it holds, as the other roles do, so that none comes into use before it is there.
grant insert (keys), update (keys) on tokenmill.process to tokenmill_gateway;
