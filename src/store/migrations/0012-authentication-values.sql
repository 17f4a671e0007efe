-- An authentication value comes with any outcome: which ones is the network's affair. What the merchant wished for decides
-- with Cartes Bancaires who bears a fraud.

-- Not validated: every row of before holds it by the narrower rule that it takes the place of.
alter table tokenmill.authentication
  drop constraint only_proofs_and_challenges_are_sealed,
  add constraint nothing_is_sealed_before_an_answer check (state <> 'OPEN' or sealed is null) not valid,
  add column challenge_indicator text collate "C";

grant select (challenge_indicator) on tokenmill.authentication to tokenmill_reader;
