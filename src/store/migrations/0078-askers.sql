-- Who asked for the effect of a receipt that a reversal could undo: each envelope, and whether its sender gave it up. Null while
-- only the envelope that took effect has asked.
alter table tokenmill.receipt add column askers jsonb;

-- The envelope that a result answers: nobody else takes it for an answer. Null for events.
alter table tokenmill.outbox add column envelope_digest bytea;
