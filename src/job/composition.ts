// The catalogue of the product: the entries of all kinds, of the core and of the features. Entries of processes hand it down.
import { catalogueOf } from './catalogue.ts'
import { CORE_KINDS } from './core-kinds.ts'
import type { KindEntry } from './kind-entry.ts'
import { reportKind } from './report.ts'
import { schemeTokenKind } from './scheme-token.ts'
import { actKind } from './system/act.ts'
import { manifestTotalKind } from './system/manifest-total.ts'
import { webhookKind } from './system/webhook.ts'
import { transactionBatchKind } from './transaction-batch.ts'

/** In the order in which documents and pages list them. */
export const KINDS = {
  'token-create': CORE_KINDS['token-create'],
  'token-update': CORE_KINDS['token-update'],
  'token-lifecycle': CORE_KINDS['token-lifecycle'],
  'scheme-token': schemeTokenKind,
  reference: CORE_KINDS.reference,
  'token-batch': CORE_KINDS['token-batch'],
  'transaction-batch': transactionBatchKind,
  report: reportKind,
  reversal: CORE_KINDS.reversal,
  webhook: webhookKind,
  'manifest-total': manifestTotalKind,
  act: actKind,
} as const satisfies Record<keyof typeof CORE_KINDS, KindEntry> & Record<string, KindEntry>

export type Kind = keyof typeof KINDS

export const CATALOGUE = catalogueOf(KINDS)
