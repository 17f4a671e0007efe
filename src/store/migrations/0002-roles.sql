-- Who may do what. The reader serves everything that only reads and never sees sealed cards, fingerprints or keys;
-- the queue role owns BullMQ's schema and nothing of ours.
do $$
begin
  -- Roles belong to the whole server: another database of it may have made them, or be making them now.
  perform pg_advisory_xact_lock(hashtextextended('tokenmill roles', 0));
  if not exists (select from pg_roles where rolname = 'tokenmill_reader') then
    create role tokenmill_reader nologin;
  end if;
  if not exists (select from pg_roles where rolname = 'tokenmill_queue') then
    create role tokenmill_queue nologin;
  end if;
  execute format('grant tokenmill_reader, tokenmill_queue to %I', current_user);
  execute format('grant create on database %I to tokenmill_queue', current_database());
end
$$;

revoke all on schema tokenmill from public;
alter default privileges in schema tokenmill revoke execute on functions from public;

grant usage on schema tokenmill to tokenmill_reader;
grant select on tokenmill.installation, tokenmill.client_key, tokenmill.scope, tokenmill.bin_range,
  tokenmill.sequence_mark, tokenmill.batch, tokenmill.receipt, tokenmill.outbox, tokenmill.reply_queue,
  tokenmill.dry_run to tokenmill_reader;
grant select (kid, alg, public_jwk, created_at) on tokenmill.signing_key to tokenmill_reader;
grant select (client_id, name, user_id, entities, roles, alg, system, created_at, revoked_at) on tokenmill.client to tokenmill_reader;
grant select (alias, entity_id, type, public_key, state, created_at, retired_at, destroyed_at) on tokenmill.capture_key to tokenmill_reader;
grant select (token_id, token_scope, status, suspended_reason, token_type, bin, last_four, expiry_month, expiry_year,
  card_holder_name, card_holder_email, brand, card_brand, bin_range, analytics_token, token_expiry_date, created_at,
  updated_at, version, last_receipt, batch_no) on tokenmill.token to tokenmill_reader;
