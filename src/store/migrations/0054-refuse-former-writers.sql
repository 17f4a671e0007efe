-- Once the time beside release 0.3 has ended, a write of a worker of that release would leave the directory of cards: a card
-- would get a second token, or none ever again. Such a write is refused. No write of this release meets the conditions: it
-- names the cards of every row that it inserts, and changes a whole fingerprint alone only by emptying it in a live row.
create function tokenmill.refuse_former_release() returns trigger language plpgsql as $$
begin
  raise exception 'a worker of release 0.3 wrote here, though the time beside that release has ended; stop that worker'
    using errcode = 'object_not_in_prerequisite_state';
end
$$;

create function tokenmill.guard_cards() returns void language plpgsql as $$
begin
  create trigger former_release_inserts_a_card before insert on tokenmill.token for each row
    when (new.cards is null and new.fingerprint is not null) execute function tokenmill.refuse_former_release();
  create trigger former_release_changes_a_card before update on tokenmill.token for each row
    when (
      new.fingerprint is distinct from old.fingerprint and new.cards is not distinct from old.cards
      and (new.fingerprint is not null or new.status = 'DELETED')
    )
    execute function tokenmill.refuse_former_release();
  create trigger former_release_inserts_a_card before insert on tokenmill.scheme_token for each row
    when (new.cards is null and new.fingerprint is not null) execute function tokenmill.refuse_former_release();
end
$$;

create or replace function tokenmill.forget_whole_fingerprints() returns void language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
  drop trigger if exists new_token_has_its_card on tokenmill.token;
  drop trigger if exists former_release_changes_a_card on tokenmill.token;
  drop trigger if exists former_release_changed_a_card on tokenmill.token;
  drop trigger if exists new_scheme_token_has_its_card on tokenmill.scheme_token;
  drop index tokenmill.one_provisioning_per_card;
  alter table tokenmill.token drop constraint one_live_token_per_card, drop constraint live_has_a_fingerprint;
  perform tokenmill.guard_cards();
end
$$;

-- Only an operator's command ends that time, as the database's owner.
revoke execute on function tokenmill.forget_whole_fingerprints() from tokenmill_worker;
revoke execute on function tokenmill.refuse_former_release(), tokenmill.guard_cards() from public;

do $$
begin
  if not (select beside_older from tokenmill.card_phase) then
    perform tokenmill.guard_cards();
  end if;
end
$$;
