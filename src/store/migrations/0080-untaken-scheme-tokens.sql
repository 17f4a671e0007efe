-- A job may have a scheme token made for a card that its token will have only at the job's commit. Until then the row isn't
-- current. The index scheme_token_untaken (src/store/large-indexes.ts) finds such rows too, beside those of third parties.
drop index tokenmill.third_party_without_token;
