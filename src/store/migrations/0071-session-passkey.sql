-- The passkey with which a session began: when that is revoked, the session is over, whoever revoked it and when. Null where there
-- was none (the link of `start`), and for sessions of earlier releases. No foreign key: the console writes its sessions alone.
alter table tokenmill.session add column credential_id text;
