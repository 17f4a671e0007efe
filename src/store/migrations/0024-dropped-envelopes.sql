-- Envelopes that workers dropped, by the client that they say they are from; '' where there is no such client. Nobody has
-- proved what they say. One row per client and reason, whoever writes to the queue.
create table tokenmill.dropped_envelope (
  claimed_client text not null,
  reason text not null,
  dropped bigint not null,
  -- The first and the last without a long pause between two.
  since timestamptz not null,
  last_at timestamptz not null,
  primary key (claimed_client, reason)
);

grant select on tokenmill.dropped_envelope to tokenmill_reader;
