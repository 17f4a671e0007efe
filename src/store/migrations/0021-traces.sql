-- The span in which a result was made that could not be published at once, where traces are on: the publishing that follows
-- has a link to it.
alter table tokenmill.outbox add column traceparent text;
