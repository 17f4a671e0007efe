-- Lists of batches by state, and a batch by its id alone: each was found by a walk through all batches.
create index batch_open on tokenmill.batch (batch_no) where cancelled_at is null and finished_at is null;
create index batch_cancelled on tokenmill.batch (batch_no) where cancelled_at is not null;
create index batch_of_id on tokenmill.batch (batch_id);
