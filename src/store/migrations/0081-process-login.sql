-- The database user of each process, because a user may have a limit of connections.
alter table tokenmill.process add column login name;
alter table tokenmill.process alter column login set default session_user;
grant select (connections, login) on tokenmill.process to tokenmill_console;
