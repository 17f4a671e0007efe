// The recorded beginning of what jobs ask of a network: in one short transaction, under the lock of their receipt, each
// wish is either settled by what is known, or recorded as an intent on a leased row. No network is spoken to here.
import { type Refusal, refuse } from '../../src/errors.ts'
import { provisionId, schemeIntentId } from '../../src/job/envelope/ids.ts'
import type { ProvisionCard } from '../../src/scheme/provider.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import { type Db, hold, LostRace } from '../../src/store/pool.ts'
import type { SchemeIntent } from '../../src/store/provider/scheme-intents.ts'
import * as intents from '../../src/store/provider/scheme-intents.ts'
import type { NewScheme, StoredScheme } from '../../src/store/provider/scheme-row.ts'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { type SchemeAction, type SchemeCall, stepOf } from '../../src/token/scheme.ts'
import type { Deps } from '../deps.ts'
import { providerOf } from './call-provider.ts'
import { type Denial, SCHEME_REASONS } from './interpret-answer.ts'
import type { Lease } from './lease.ts'
import { sealCard, storedCard } from './pending-card.ts'

/** What one job, or one record of a chunk, wants of a token's scheme token. */
export interface Wish {
  /** Of a chunk's record; 0 of a single job. */
  line: number
  token: StoredToken
  scope: Scope
  /** `DELETE` is recorded, and asked for by the loop. */
  action: SchemeAction
  /** The field that a refusal names. */
  field: string
}

/** Whose wishes they are. */
export interface Wisher {
  receiptId: string
  clientId: string
  /** A chunk whose receipt has failed records is done again. */
  mayHaveReceipt: boolean
}

export type Begun =
  | { begun: 'settled'; wish: Wish; acted: Acted }
  /** `call`: undefined where it must be found out first what became of another's call. */
  | { begun: 'leased'; wish: Wish; call: SchemeCall | undefined; provision: string; intentId: string }
  /** Somebody else is asking the network about it, for at most `ms` more. */
  | { begun: 'busy'; wish: Wish; ms: number }

/** `changed`: something was done; `same`: it was so already. */
export type Acted = 'changed' | 'same' | Refusal

/** Wishes for tokens that are all different. Throws `LostRace` where a token isn't any more what its wish was made for. */
export async function begin(
  db: Db,
  wisher: Wisher,
  wishes: readonly Wish[],
  lease: Lease,
  deps: Deps,
): Promise<Begun[]> {
  const ids = wishes.map(({ token }) => token.tokenId)
  await hold(db, wisher.receiptId)
  if (!wisher.mayHaveReceipt && (await receipts.find(db, wisher.receiptId)) !== undefined)
    throw new LostRace('the receipt was written meanwhile')
  // First, and alone: of two jobs that ask for the same token the second sees what the first has recorded.
  const standing = await tokens.holdAll(db, ids)
  const [held, known, counts] = await Promise.all([
    storedSchemes.holdCurrent(db, ids),
    intents.findByIds(
      db,
      wishes.map(({ line }) => schemeIntentId(wisher.receiptId, line)),
    ),
    storedSchemes.countOf(db, ids),
  ])
  for (const { token } of wishes) {
    const now = standing.get(token.tokenId)
    if (!now || now.status === 'DELETED' || !isSame(now.fingerprint, token.fingerprint))
      throw new LostRace('a token was changed meanwhile')
  }
  const rows = new Map(held.map(row => [row.tokenId, row]))
  const intended = new Map(known.map(intent => [intent.intentId, intent]))
  const plans = wishes.map(wish =>
    plan(
      wish,
      { row: rows.get(wish.token.tokenId), count: counts.get(wish.token.tokenId) ?? 0, intended },
      wisher,
      deps,
    ),
  )
  await record(db, plans, wisher, lease, deps)
  return plans.map(({ begun }) => begun)
}

interface Plan {
  begun: Begun
  /** To be made. */
  fresh?: NewScheme
  /** The intent is this job's, and its row says that it was done. */
  confirms?: string
  abandons?: string
  /** The provisioning that this wish relies on as it is. */
  builds?: string
  retires?: { intentId: string; provisionId: string }
  asked?: SchemeCall
}

/** What is stored about a wish's token. */
interface Known {
  row: StoredScheme | undefined
  /** Provisionings of the token, past ones as well. */
  count: number
  /** The intents of the same job, by id. */
  intended: ReadonlyMap<string, SchemeIntent>
}

function plan(wish: Wish, { row, count, intended }: Known, wisher: Wisher, deps: Deps): Plan {
  const intentId = schemeIntentId(wisher.receiptId, wish.line)
  const intent = intended.get(intentId)
  const begun = intent?.state === 'INTENDED' ? intentId : undefined
  // What an earlier attempt intended has come to nothing, or it would be the row's.
  const settled = (acted: Acted): Plan => ({
    begun: { begun: 'settled', wish, acted },
    ...(begun && acted !== 'changed' ? { abandons: begun } : {}),
  })
  if (intent?.state === 'DONE') return settled('changed')
  if (intent?.state === 'REFUSED') return settled(refuse(SCHEME_REASONS[intent.refusal as Denial], wish.field))
  const now = deps.clock()
  if (row?.lease && row.dueAt !== null && row.dueAt > now)
    return { begun: { begun: 'busy', wish, ms: row.dueAt - now } }
  const leased = (call: SchemeCall | undefined, provision: string): Begun => ({
    begun: 'leased',
    wish,
    call,
    provision,
    intentId,
  })
  if (row?.asked) return { begun: leased(undefined, row.provisionId), asked: row.asked }
  return planStep(wish, row, { intentId, begun, count, settled, leased }, wisher, deps)
}

/** What a plan of this wish may be. */
interface Choices {
  intentId: string
  /** The intent, where an earlier attempt recorded it and it is still open. */
  begun: string | undefined
  /** Provisionings of the token, past ones as well. */
  count: number
  settled(acted: Acted): Plan
  leased(call: SchemeCall, provision: string): Begun
}

/** What the token's state says of a wish that nothing stands in the way of. */
function planStep(
  wish: Wish,
  row: StoredScheme | undefined,
  { intentId, begun, count, settled, leased }: Choices,
  wisher: Wisher,
  deps: Deps,
): Plan {
  const step = stepOf(row, wish.action)
  switch (step) {
    case 'stays': {
      if (begun && row?.lastIntent === begun) return { ...settled('changed'), confirms: begun }
      // Whoever is told that it stands has built on it: what made it so isn't taken back any more.
      return row && row.retiredAt === null ? { ...settled('same'), builds: row.provisionId } : settled('same')
    }
    case 'absent':
      return settled(refuse('scheme_token_absent', wish.field))
    case 'retire':
      return row ? { ...settled('changed'), retires: { intentId, provisionId: row.provisionId } } : settled('same')
    case 'SUSPEND':
    case 'RESUME':
      if (!row || !providerOf(deps, row.provider)) return settled(refuse('scheme_action_unavailable', wish.field))
      return { begun: leased(step, row.provisionId), asked: step }
    case 'PROVISION': {
      if (row?.state === 'PENDING' && row.retiredAt === null)
        return { begun: leased(step, row.provisionId), asked: step }
      const fresh = freshOf(wish, provisionId(wisher.receiptId, wish.token.tokenId, count), wisher, deps)
      if ('refused' in fresh) return settled(fresh)
      return { begun: leased(step, fresh.provisionId), asked: step, fresh }
    }
  }
}

function freshOf(wish: Wish, id: string, { clientId }: Wisher, deps: Deps): NewScheme | Refusal {
  const { token, field } = wish
  const network = deps.outside?.schemes.network(token.brand ?? '')
  if (!network) return refuse('scheme_action_unavailable', field)
  if (token.sealed === null) return refuse('not_applicable', field)
  const card = storedCard(token, deps.ring)
  if (!card) return refuse('field_required', 'body.expiry_year')
  return pendingRow(token, card, { provisionId: id, clientId, provider: network.name, background: false }, deps)
}

/** The row of a provisioning that is yet to be asked for. */
export function pendingRow(
  token: Pick<StoredToken, 'tokenId' | 'tokenScope'>,
  card: ProvisionCard,
  about: Pick<NewScheme, 'provisionId' | 'clientId' | 'provider' | 'background'>,
  { ring, clock }: Pick<Deps, 'ring' | 'clock'>,
): NewScheme {
  const { tokenId, tokenScope } = token
  const now = clock()
  const sealed = sealCard(card, { provisionId: about.provisionId, tokenScope }, ring)
  return { tokenId, tokenScope, ...about, ...sealed, dueAt: about.background ? now : null, createdAt: now }
}

async function record(
  db: Db,
  plans: readonly Plan[],
  { receiptId }: Wisher,
  lease: Lease,
  { clock }: Pick<Deps, 'clock'>,
): Promise<void> {
  const now = clock()
  const fresh = plans.flatMap(one => one.fresh ?? [])
  const leased = plans.flatMap(({ begun, asked }) => (begun.begun === 'leased' && asked ? [{ ...begun, asked }] : []))
  await schemeTokens.displace(
    db,
    fresh.map(({ tokenId }) => tokenId),
  )
  await schemeTokens.insertAll(db, fresh)
  // A question about somebody else's call is no deed of ours.
  const [deeds, questions] = [leased.filter(({ call }) => call), leased.filter(({ call }) => !call)]
  await schemeTokens.leaseAll(
    db,
    deeds.map(({ provision, asked, intentId }) => ({ provisionId: provision, asked, intentId })),
    lease.id,
    lease.until(),
  )
  await schemeTokens.take(
    db,
    questions.map(({ provision }) => provision),
    lease.id,
    now,
    lease.until(),
  )
  await intents.intendAll(
    db,
    deeds.map(({ wish, provision, asked, intentId }) => ({
      ...{ intentId, receiptId, tokenId: wish.token.tokenId, provisionId: provision, action: asked },
    })),
    now,
  )
  const ends = plans.flatMap(({ begun, retires }) =>
    retires ? [{ ...retires, receiptId, tokenId: begun.wish.token.tokenId, action: 'DELETE' as const }] : [],
  )
  await intents.intendAll(db, ends, now)
  await schemeTokens.retireOf(
    db,
    ends.map(({ tokenId }) => tokenId),
    now,
  )
  await intents.confirmAll(
    db,
    [...plans.flatMap(({ confirms }) => confirms ?? []), ...ends.map(({ intentId }) => intentId)],
    now,
  )
  await intents.abandon(
    db,
    plans.flatMap(({ abandons }) => abandons ?? []),
    now,
  )
  await schemeTokens.buildOn(
    db,
    plans.flatMap(({ builds }) => builds ?? []),
  )
}

function isSame(one: Buffer | null, other: Buffer | null): boolean {
  return one === null || other === null ? one === other : one.equals(other)
}
