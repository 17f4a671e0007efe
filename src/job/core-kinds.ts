// The entries of the core's kinds. Each feature's kind has its entry in its own file; composition.ts joins them all.
import { renderPatch, renderPut } from '../token/render.ts'
import { RECORD_ROLES } from './choices.ts'
import { type KindEntry, kind } from './kind-entry.ts'
import { Reference } from './reference.ts'
import { fromOutcome, fromToken } from './stored-answer.ts'
import { Reversal } from './system/reversal.ts'
import { BATCH_ROLES, recordsInBlock, TokenBatch } from './token-batch.ts'
import { asksThirdParty, TokenCreate } from './token-create.ts'
import { retellLifecycle, TokenExpiry, TokenLifecycle } from './token-lifecycle.ts'
import { hasSchemeAction, TokenUpdate } from './token-update.ts'

export const CORE_KINDS = {
  'token-create': kind({
    request: TokenCreate,
    description: 'Creates a token of a card, or updates the one that the card has in its scope.',
    role: RECORD_ROLES['token-create'],
    urgent: true,
    systemClients: ['gateway'],
    asksProvider: asksThirdParty,
    retell: fromToken(renderPut),
    statusAt: 'operations',
  }),
  'token-update': kind({
    request: TokenUpdate,
    description: 'Changes the data of a token, or puts another card behind it.',
    role: RECORD_ROLES['token-update'],
    memberRoles: [{ role: 'SCHEME_TOKEN', member: 'scheme_token_action', asks: hasSchemeAction }],
    urgent: true,
    sequenced: true,
    systemClients: ['gateway'],
    asksProvider: hasSchemeAction,
    retell: fromToken(renderPatch),
    statusAt: 'operations',
  }),
  'token-lifecycle': kind({
    request: TokenLifecycle,
    // The scheduler asks for the expiry of tokens whose date has passed.
    requestFrom: { scheduler: TokenExpiry },
    description: 'Suspends, activates or deletes a token.',
    role: RECORD_ROLES['token-lifecycle'],
    urgent: true,
    sequenced: true,
    systemClients: ['gateway', 'scheduler'],
    retell: retellLifecycle,
    statusAt: 'operations',
  }),
  reference: kind({
    request: Reference,
    description: "Releases an owner of a token, who is named by a provider's ids.",
    role: RECORD_ROLES.reference,
    urgent: true,
    retell: { from: 'handler' },
  }),
  'token-batch': kind({
    request: TokenBatch,
    description: 'One chunk of a batch; its records travel in the block of the job.',
    role: null,
    memberRoles: BATCH_ROLES,
    bulk: true,
    systemClients: ['gateway'],
    hasBlock: true,
    recordsIn: recordsInBlock,
    retell: { from: 'outcomes', tells: 'all' },
    statusAt: 'batches',
  }),
  reversal: kind({
    request: Reversal,
    description: 'Undoes what one envelope did. System clients only.',
    role: null,
    urgent: true,
    systemClients: ['gateway', 'worker'],
    systemOnly: true,
    servesRevoked: true,
    retell: fromOutcome('reversal_status'),
  }),
} as const satisfies Record<string, KindEntry>
