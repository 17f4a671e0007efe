-- The owners of a token are read page by page, oldest first.
create index source_reference_of_token_by_age on tokenmill.source_reference (token_id, reference_no);
drop index tokenmill.source_reference_of_token;

-- One job can release an owner twice: a chunk that is worked again finds the owner added again.
alter table tokenmill.released_reference add column reference_no bigint not null default 0;
alter table tokenmill.released_reference drop constraint released_reference_pkey;
alter table tokenmill.released_reference
  add constraint released_reference_pkey primary key (owner_hash, receipt_id, reference_no);
