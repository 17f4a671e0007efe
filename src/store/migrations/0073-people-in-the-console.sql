-- The page People: who may use the console, who is invited, and what one person did. The console still writes none of these tables.
grant select (is_local, created_at) on tokenmill.person to tokenmill_console;
grant select (last_used_at) on tokenmill.person_credential to tokenmill_console;
grant select (roles, entities, issuer, subject, invited_by, created_at) on tokenmill.invite to tokenmill_console;
grant select (at, actor, action, subject, outcome) on tokenmill.audit to tokenmill_console;

create index person_by_end on tokenmill.person (revoked_at desc, person_id) where revoked_at is not null;
create index invite_open on tokenmill.invite (expires_at, invite_id) where used_at is null;
