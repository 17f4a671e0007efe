-- The id of a card comes first: it tells owners apart at once. Behind the scope and the provider, which most rows share, each
-- step down the index compared four equal columns.
alter table tokenmill.source_reference
  drop constraint one_token_per_source_reference,
  add constraint one_token_per_source_reference unique (card_id, customer_id, provider_account, provider, token_scope);
