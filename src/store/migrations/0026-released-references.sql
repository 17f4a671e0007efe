-- A release is found by the provider's id of the card, too, where the customer's isn't known. Whoever serves HTTP shows what
-- must travel with a card.
alter table tokenmill.released_reference add column card_hash bytea not null;
create index released_reference_of_card on tokenmill.released_reference (card_hash);
grant select (on_file) on tokenmill.source_reference to tokenmill_gateway;
-- The hashes are no reader's.
revoke select on tokenmill.released_reference from tokenmill_reader;
grant select (released_at, cause, receipt_id) on tokenmill.released_reference to tokenmill_reader;
