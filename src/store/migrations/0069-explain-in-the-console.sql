-- Whose job it was: the entity of the verified envelope. Null in rows of earlier releases, and of a job that was cancelled
-- before a worker saw its envelope. Neither column has a default, so no row is rewritten.
alter table tokenmill.receipt add column entity_id uuid;

-- Whose batch an act was about. What people see must not be moved by somebody who writes the table alone: the row's hash
-- covers `detail`, and the column says what `detail` says. Rows of earlier releases are not read for it.
alter table tokenmill.audit add column entity_id uuid;
alter table tokenmill.audit add constraint audit_entity_is_that_of_its_detail
  check (entity_id is null or (detail->>'entity_id') is not distinct from entity_id::text) not valid;
grant insert (entity_id) on tokenmill.audit to tokenmill_gateway;

-- What the console shows of one job. It reads references, which the sender chose and which may be personal data, and no column of
-- a card.
grant select (receipt_id, entity_id, client_id, iss, kind, jti, reply_to, reference, status, code, outcome, refusal, token_id,
  revision, reversal, attempt, accepted_at) on tokenmill.receipt to tokenmill_console;
grant select (receipt_id, day) on tokenmill.receipt_key to tokenmill_console;
grant select (outbox_id, client_id, reply_to, result_id, receipt_id, revision, state, created_at) on tokenmill.outbox
  to tokenmill_console;
-- The text of an answer without a receipt, or of an event, may hold the first and last digits of a card. The console sees of
-- an answer which job it is about and why that was refused, and nothing else of the text.
create view tokenmill.told_reason with (security_barrier) as
select outbox_id, receipt_id, body::json->>'jti' as jti, (body::json->>'code')::int as code, body::json#>'{error,details}' as details
from tokenmill.outbox where body is not null and result_id is distinct from receipt_id;
grant select on tokenmill.told_reason to tokenmill_console;
grant select (receipt_id, client_id, entity_id, kind, job_id, state, accepted_at, expires_at, completed_at)
  on tokenmill.operation to tokenmill_console;
grant select (receipt_id, action, state, refusal, reversal, created_at, updated_at) on tokenmill.scheme_intent
  to tokenmill_console;
grant select (token_id, token_scope, token_type, third_party_type, status, suspended_reason, created_at, updated_at, last_receipt)
  on tokenmill.token to tokenmill_console;
grant select (token_scope, entity_id) on tokenmill.scope to tokenmill_console;
-- Whether a job without a receipt can be shown to people for some entities: only if all of its client's are among them.
grant select (entities) on tokenmill.client to tokenmill_console;
