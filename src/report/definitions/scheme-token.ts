// SCHEME_TOKEN_REPORT: the present state of an entity's tokens at the card networks, by scope, provider and status: how
// many have a scheme token, how many wait or were refused, how many were not reconciled with the network lately, and
// how many deletions are unconfirmed.
import { z } from 'zod'
import { column, type Definition, planner } from '../definition.ts'

export const schemeToken: Definition = {
  title: 'Scheme token report',
  query: 'scheme-token',
  plan: planner(z.strictObject({}), () => ({
    period: undefined,
    notes: [
      'Tokens that are not deleted, by the status of their scheme token; NONE have none. Waiting: something is still to be asked of the network.',
      'Unchecked: not held against the network for 48 hours. Open deletions: not yet confirmed by the network, those of deleted tokens included.',
    ],
  })),
  columns: [
    column('tokenScope', 'Token scope', 'text', 36, 46),
    column('provider', 'Provider', 'text', 16),
    column('schemeStatus', 'Status', 'text', 14, 19),
    column('tokens', 'Tokens', 'count', 12),
    column('waiting', 'Waiting', 'count', 10, 11),
    column('refused', 'Refused', 'count', 10, 11),
    column('unchecked', 'Unchecked', 'count', 10, 14),
    column('openDeletions', 'Open deletions', 'count', 14, 18),
  ],
  group: ['tokenScope'],
  groupLabel: 'Token scope',
  rules: [],
  landscape: false,
  chart: { label: 'Tokens by status', by: row => row['schemeStatus'] ?? '', of: 'tokens' },
}
