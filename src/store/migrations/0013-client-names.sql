-- What a client may name its work by. A name that could be a card number is refused (PCI DSS 3.5.1), unless the client is
-- known to name its work by long numbers; a job's own card is no name for anybody. A default that is a constant rewrites
-- no row.
alter table tokenmill.client
  add column names text not null default 'checked',
  add constraint names_is_a_rule check (names in ('checked', 'numeric'));
grant select (names) on tokenmill.client to tokenmill_reader;
