-- Who asked for the effect of a receipt that a reversal could undo: each envelope, and whether its sender gave it up. Null while
-- only the envelope that took effect has asked.
alter table tokenmill.receipt add column askers jsonb;

-- A keyed hash of a request with what its card says in place of the encrypted card: the same card, encrypted again, is the same
-- request. Null if the request has no card, or if the card wasn't opened. It is under the version `digest_version`.
alter table tokenmill.receipt add column content_digest bytea;

-- The envelope that a result answers: nobody else takes it for an answer. Null for events.
alter table tokenmill.outbox add column envelope_digest bytea;
