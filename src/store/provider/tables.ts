// What networks and third parties have in the database.
import { ALL, type Tables } from '../tables.ts'

export const NETWORKS_TABLES: Tables = {
  sql: 'networks',
  rights: {
    scheme_intent: ALL,
    scheme_notice: ALL,
    scheme_rate: ALL,
    scheme_token: ALL,
    scheme_card: 'select, insert, delete',
  },
  indexes: [
    // Provisionings that no token's row has taken over (UNTAKEN in scheme-tokens.ts), oldest first.
    {
      name: 'scheme_token_untaken',
      on: `tokenmill.scheme_token (created_at)
  where not current
    and taken_at is null
    and retired_at is null
    and state not in ('DELETED', 'VOID')`,
    },
  ],
}
