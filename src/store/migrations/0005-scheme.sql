-- Scheme tokens, their intents, third-party tokens.
select 1;
