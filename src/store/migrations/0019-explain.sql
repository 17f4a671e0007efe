-- By what a person on call asks for a single job: its reference, or the token that it was about. Chunks' receipts have
-- neither.
create index receipt_of_reference on tokenmill.receipt (reference) where reference is not null and batch_no is null;
create index receipt_of_token on tokenmill.receipt (token_id) where token_id is not null and batch_no is null;
