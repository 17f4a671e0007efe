-- A confirmation is used once, also where whoever owns the database puts its row back: its code covers the time of use, and
-- the head of the audit at which it was confirmed. Its use is a numbered row behind that head.
alter table tokenmill.confirmation
  add column audit_seq bigint,
  add column audit_hash bytea,
  add constraint confirmed_act_names_the_audit check (num_nonnulls(confirmed_at, audit_seq, audit_hash) in (0, 3)) not valid;
