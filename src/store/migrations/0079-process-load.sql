-- How many processes want each core of a worker's host, as its last heartbeat says: an overloaded host is why a batch stands still.
alter table tokenmill.process add column load real;
grant select (load) on tokenmill.process to tokenmill_reader;
grant select (load) on tokenmill.process to tokenmill_console;
