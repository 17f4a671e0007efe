-- When, by which input and in which line of it the fields of a card were given, and for whom the card is on file. Null until a
-- batch that compares these times touches the row, or the token gets another number.
alter table tokenmill.token add column given_at jsonb;
alter table tokenmill.source_reference add column given_at jsonb;
