-- What people did to a batch, and their notes on it: what the page of the batch shows of the audit. Of a row's detail the view has the
-- reason alone: the rest holds proofs. Rows of refused acts don't say whose batch it was, so they are left out.
create view tokenmill.batch_act with (security_barrier) as
select audit_id, at, actor, action, subject as batch_id, detail->>'client_id' as client_id, detail->>'reason' as reason
from tokenmill.audit
where action in ('batch.pause', 'batch.resume', 'batch.cancel', 'batch.note') and outcome = 'done';
create index audit_of_batch on tokenmill.audit (subject, audit_id)
  where action in ('batch.pause', 'batch.resume', 'batch.cancel', 'batch.note') and outcome = 'done';
grant select on tokenmill.batch_act to tokenmill_console;
