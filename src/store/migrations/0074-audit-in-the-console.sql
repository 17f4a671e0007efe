-- What the page Audit shows. The console reads a row whole but for its code, for which it has no key. Its indexes are built beside
-- running jobs (src/store/large-indexes.ts), because an audit may have millions of rows.
grant select (at, actor, action, subject, detail, host, outcome, entity_id, hash) on tokenmill.audit to tokenmill_console;

-- Where the newest segment went, as the worker says that sent it: a URL without its user and query, or the worker's host if no
-- AUDIT_URL was set. Null: none was sent yet. place_segment: which one that was; a worker of an earlier release sends segments and
-- leaves these as they are.
alter table tokenmill.audit_chain add column place text, add column is_outside boolean, add column place_segment bigint;
grant select (seq, segment, cut_seq, unsent_from, sent_at, away_since, place, is_outside, place_segment) on tokenmill.audit_chain to tokenmill_console;
