-- What the page Installation shows, and wall displays.

-- A wall display: a link that shows figures of the page Now on a screen in a room, until it is revoked. Commands write it. It has
-- no message authentication code: whoever reads the row is the console, which holds no key and couldn't check one, and whoever can
-- write the row can read all that a display shows.
create table tokenmill.display (
  display_id uuid primary key,
  -- For those who list and revoke it; the display doesn't show it.
  name text not null,
  -- The entities about whose batches it tells; null: the whole installation.
  entities uuid[],
  -- SHA-256 of the value in the link, which nobody keeps but the display's browser, as its cookie.
  link_hash bytea not null,
  made_by text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  revoked_at timestamptz,
  constraint display_link_is_hashed check (length(link_hash) = 32),
  constraint display_link_stands_once unique (link_hash),
  constraint display_has_no_empty_list_of_entities check (cardinality(entities) > 0),
  -- No browser keeps a cookie for longer.
  constraint display_lasts_400_days_at_most check (expires_at <= created_at + interval '400 days')
);
-- A revoked display's name may be given again.
create unique index display_name_stands_once on tokenmill.display (name) where revoked_at is null;

grant select on tokenmill.display to tokenmill_console;
grant select (display_id, name, entities, made_by, created_at, expires_at, revoked_at) on tokenmill.display to tokenmill_reader;

-- The two orders of the lists of clients and of scopes, and the one of capture keys.
create index client_by_age on tokenmill.client (created_at, client_id);
create index client_by_name on tokenmill.client (name, client_id);
create index scope_by_age on tokenmill.scope (created_at, token_scope);
create index scope_by_entity on tokenmill.scope (entity_id, token_scope);
create index capture_key_by_age on tokenmill.capture_key (created_at, key_id);

-- No key is among it, wrapped or not, and no public half.
grant select (roles, alg, names, created_at) on tokenmill.client to tokenmill_console;
grant select (client_id, kid, alg, state, valid_until, created_at) on tokenmill.client_key to tokenmill_console;
grant select (par, network_tokens, requestor, bin_digits, auto_provision, keep_billing, created_at) on tokenmill.scope to tokenmill_console;
grant select (purpose, version, state, kek_id, seals, created_at, activated_at, retired_at, compromised_at, compromise_ended_at)
  on tokenmill.data_key to tokenmill_console;
grant select (kek_id, state, created_at, retired_at) on tokenmill.kek to tokenmill_console;
grant select (kid, role, created_at, forgotten_at) on tokenmill.role_key to tokenmill_console;
grant select (kid, purpose, version) on tokenmill.shared_key to tokenmill_console;
grant select (key_id, alias, number, entity_id, type, state, created_at, retired_at, destroyed_at, last_used_at) on tokenmill.capture_key
  to tokenmill_console;
grant select (purpose, version, state, pass_found, pass_done, pass_scanned, rows_expected, started_at, clean_at) on tokenmill.reseal
  to tokenmill_console;
grant select (provider, process, given, granted, rate, slowed_by, slowed_at, renewed_at) on tokenmill.scheme_rate to tokenmill_console;
grant select (keys) on tokenmill.process to tokenmill_console;
