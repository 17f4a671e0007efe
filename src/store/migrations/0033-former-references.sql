-- What a job replaced in a source reference is kept in its row for a day. Housekeeping finds the older rows.
create index source_reference_of_reversal on tokenmill.source_reference (updated_at) where before is not null;
