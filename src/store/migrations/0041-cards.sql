-- The directory of cards, so that a card may be known under several versions of the fingerprint key while it turns. It
-- takes the place of the unique fingerprint in a token's row.
create table tokenmill.card (
  -- The first 16 bytes of the keyed hash. The version isn't part of the key: a card is looked for under each one.
  fp uuid primary key,
  version smallint not null,
  token_id uuid not null
);

create table tokenmill.card_phase (
  one boolean primary key default true,
  -- Every transaction that writes cards reads it first, and keeps it as it is until its end.
  turn integer not null default 1,
  phase text not null default 'SINGLE',
  writes smallint[] not null,
  looks smallint[] not null,
  -- Workers of release 0.3 may run. They look for whole fingerprints.
  beside_older boolean not null,
  -- The directory is filled from the tokens in their order.
  is_filled boolean not null,
  filled_to uuid not null default '00000000-0000-0000-0000-000000000000',
  since timestamptz not null default now(),
  constraint there_is_one_card_phase check (one),
  constraint card_phase_is_known check (phase in ('SINGLE', 'BOTH', 'NEW')),
  constraint both_write_two_versions check (cardinality(writes) = case phase when 'BOTH' then 2 else 1 end),
  constraint card_phase_looks_where_it_writes check (looks @> writes)
);
insert into tokenmill.card_phase (writes, looks, beside_older, is_filled)
select array[key.version], array[key.version], old.is_here, not old.is_here
from (select coalesce(max(version), 1)::smallint as version from tokenmill.data_key
  where purpose = 'fingerprint' and state = 'ACTIVE') as key,
  (select exists(select from tokenmill.installation) as is_here) as old;
grant select (phase, writes, looks, since) on tokenmill.card_phase to tokenmill_reader;

create function tokenmill.short_fingerprint(whole bytea) returns uuid language sql immutable parallel safe as $$
  select encode(substring(whole for 16), 'hex')::uuid
$$;

-- A third party's provisioning has its card in a directory of its own, until the provisioning can't become a token.
create table tokenmill.scheme_card (
  fp uuid primary key,
  version smallint not null,
  provision_id uuid not null
);
alter table tokenmill.scheme_token
  add column cards uuid[],
  add constraint cards_are_kept_only_while_live check (
    cards is null or (third_party and state in ('PENDING', 'ACTIVE') and retired_at is null)
  ) not valid;

create function tokenmill.forget_scheme_cards() returns trigger language plpgsql as $$
begin
  delete from tokenmill.scheme_card
  where fp = any(coalesce(old.cards, array[tokenmill.short_fingerprint(old.fingerprint)]))
  and provision_id = old.provision_id;
  new.cards := null;
  return new;
end
$$;
-- Release 0.3 empties the whole fingerprint alone.
create trigger scheme_token_forgets_its_cards before update on tokenmill.scheme_token for each row
  when (
    (old.cards is not null or old.fingerprint is not null) and new.fingerprint is null
    and (new.cards is null or old.fingerprint is not null)
  )
  execute function tokenmill.forget_scheme_cards();

-- What follows is for the time beside workers of release 0.3, which know the whole fingerprint of a token's row only: their
-- writes reach the directory by triggers. A row that this release has written names its cards.
create function tokenmill.put_card(in_fp uuid, in_token uuid) returns void language plpgsql as $$
begin
  insert into tokenmill.card (fp, version, token_id) values (in_fp, 1, in_token) on conflict (fp) do nothing;
  if not found and not exists (select from tokenmill.card where fp = in_fp and token_id = in_token) then
    raise exception 'a card got its token meanwhile' using errcode = 'serialization_failure';
  end if;
end
$$;
create function tokenmill.follow_new_token() returns trigger language plpgsql as $$
begin
  perform tokenmill.put_card(tokenmill.short_fingerprint(new.fingerprint), new.token_id);
  return null;
end
$$;
create function tokenmill.forget_cards() returns trigger language plpgsql as $$
begin
  new.cards := null;
  return new;
end
$$;
create function tokenmill.follow_changed_token() returns trigger language plpgsql as $$
begin
  delete from tokenmill.card
  where fp = any(array_append(old.cards, tokenmill.short_fingerprint(old.fingerprint))) and token_id = old.token_id;
  if new.fingerprint is not null then
    perform tokenmill.put_card(tokenmill.short_fingerprint(new.fingerprint), new.token_id);
  end if;
  return null;
end
$$;
create function tokenmill.follow_new_scheme_token() returns trigger language plpgsql as $$
begin
  insert into tokenmill.scheme_card (fp, version, provision_id)
  values (tokenmill.short_fingerprint(new.fingerprint), 1, new.provision_id) on conflict (fp) do nothing;
  if not found and not exists (
    select from tokenmill.scheme_card
    where fp = tokenmill.short_fingerprint(new.fingerprint) and provision_id = new.provision_id
  ) then
    raise exception 'a card got its provisioning meanwhile' using errcode = 'serialization_failure';
  end if;
  return null;
end
$$;

-- Ends that time. Nobody reads a token until the transaction has ended.
create function tokenmill.forget_whole_fingerprints() returns void language plpgsql as $$
begin
  drop trigger if exists new_token_has_its_card on tokenmill.token;
  drop trigger if exists former_release_changes_a_card on tokenmill.token;
  drop trigger if exists former_release_changed_a_card on tokenmill.token;
  drop trigger if exists new_scheme_token_has_its_card on tokenmill.scheme_token;
  drop index tokenmill.one_provisioning_per_card;
  alter table tokenmill.token drop constraint one_live_token_per_card, drop constraint live_has_a_fingerprint;
end
$$;

do $$
begin
  if (select beside_older from tokenmill.card_phase) then
    create trigger new_scheme_token_has_its_card after insert on tokenmill.scheme_token for each row
      when (new.cards is null and new.fingerprint is not null) execute function tokenmill.follow_new_scheme_token();
  end if;
end
$$;

-- The version of the fingerprint key under which a dry run's cards are kept, whatever the key does meanwhile.
create unlogged table tokenmill.scratch_run (
  run text primary key,
  version smallint not null,
  created_at timestamptz not null default now()
);

-- Last: nobody reads a token from here to the end of the transaction.
alter table tokenmill.token
  add column cards uuid[],
  add constraint live_names_its_card check (status = 'DELETED' or fingerprint is not null or cards is not null) not valid,
  add constraint deleted_keeps_no_cards check (status <> 'DELETED' or cards is null or cards = '{}') not valid;
do $$
begin
  if (select beside_older from tokenmill.card_phase) then
    create trigger new_token_has_its_card after insert on tokenmill.token for each row
      when (new.cards is null and new.fingerprint is not null) execute function tokenmill.follow_new_token();
    create trigger former_release_changes_a_card before update on tokenmill.token for each row
      when (new.fingerprint is distinct from old.fingerprint and new.cards is not distinct from old.cards)
      execute function tokenmill.forget_cards();
    create trigger former_release_changed_a_card after update on tokenmill.token for each row
      when (old.fingerprint is not null and new.fingerprint is distinct from old.fingerprint and new.cards is null)
      execute function tokenmill.follow_changed_token();
  else
    perform tokenmill.forget_whole_fingerprints();
  end if;
end
$$;

revoke execute on function tokenmill.short_fingerprint(bytea), tokenmill.forget_scheme_cards(), tokenmill.put_card(uuid, uuid),
  tokenmill.follow_new_token(), tokenmill.forget_cards(), tokenmill.follow_changed_token(),
  tokenmill.follow_new_scheme_token(), tokenmill.forget_whole_fingerprints() from public;
