-- The owners of a token are read page by page, oldest first.
create index source_reference_of_token_by_age on tokenmill.source_reference (token_id, reference_no);
drop index tokenmill.source_reference_of_token;
