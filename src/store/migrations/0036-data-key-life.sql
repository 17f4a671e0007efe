-- The life of a data key: when it came into use, when another key took its place, and how many seals processes have
-- reserved under it. Seals from before this migration aren't counted.
alter table tokenmill.data_key
  add column seals bigint not null default 0,
  add column activated_at timestamptz,
  add column retired_at timestamptz;
update tokenmill.data_key set activated_at = created_at where state <> 'PENDING';
update tokenmill.data_key set retired_at = now() where state not in ('PENDING', 'ACTIVE');
-- Random nonces are safe for 2^32 seals under one key (NIST SP 800-38D, 8.3).
alter table tokenmill.data_key
  add constraint data_key_has_nonces_left check (seals between 0 and 4294967296),
  add constraint pending_data_key_is_unused check (state <> 'PENDING' or activated_at is null),
  add constraint active_data_key_has_a_beginning check (state <> 'ACTIVE' or activated_at is not null);
create unique index one_active_data_key_per_purpose on tokenmill.data_key (purpose) where state = 'ACTIVE';
create unique index one_pending_data_key_per_purpose on tokenmill.data_key (purpose) where state = 'PENDING';
