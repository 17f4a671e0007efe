// The recorded beginning of what is asked of third parties: in one short transaction, under the lock of their receipt, each
// card either has its answer by what is known, or an intent on a leased row. No third party is spoken to here.
import { type Refusal, refuse } from '../../src/errors.ts'
import { provisionId, schemeIntentId } from '../../src/job/envelope/ids.ts'
import type { ProvisionCard } from '../../src/scheme/provider.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import { type Db, hold, LostRace } from '../../src/store/pool.ts'
import * as intents from '../../src/store/provider/scheme-intents.ts'
import type { NewScheme, StoredScheme } from '../../src/store/provider/scheme-row.ts'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import type { Deps } from '../deps.ts'
import { type Denial, THIRD_PARTY_REASONS } from './interpret-answer.ts'
import type { Lease } from './lease.ts'
import { pendingRow, type Wisher } from './record-intents.ts'

/** A card that is to have a token of a third party's. */
export interface CardWish {
  /** Of a chunk's record; 0 of a single job. */
  line: number
  /** Of the card under its contract. */
  fingerprint: Buffer
  /** Of the token, where it is to be made. */
  tokenId: string
  tokenScope: string
  bin: string
  card: ProvisionCard
  /** The third party's name. */
  provider: string
  /** What a refusal names. */
  field: string
}

/** A token of theirs that waits to be taken up under `tokenId`. */
export interface Provisioned {
  provisionId: string
  tokenId: string
  token: string
}

/** `known`: the card has got its token meanwhile. */
export type CardEnd = Provisioned | 'known' | Refusal

export interface Begun {
  wish: CardWish
  /** `busy`: somebody else is asking for it, for at most `ms` more. `lost`: somebody has just begun it. */
  is:
    | { as: 'ended'; end: CardEnd }
    | { as: 'busy'; ms: number }
    | { as: 'lost' }
    | { as: 'leased'; provisionId: string; intentId: string; wasAsked: boolean }
}

/** Under the lock of their receipt. Records what is to be asked for. */
export async function begin(
  db: Db,
  wisher: Wisher,
  wishes: readonly CardWish[],
  lease: Lease,
  deps: Pick<Deps, 'ring' | 'clock'>,
): Promise<Begun[]> {
  const { receiptId } = wisher
  await hold(db, receiptId)
  if (!wisher.mayHaveReceipt && (await receipts.find(db, receiptId)) !== undefined)
    throw new LostRace('the receipt was written meanwhile')
  const cards = wishes.map(({ fingerprint }) => fingerprint)
  const ids = wishes.map(({ line }) => schemeIntentId(receiptId, line))
  // Whoever makes a token takes its provisioning up first: the other way round one could be missed.
  const held = byCard(await storedSchemes.holdByFingerprints(db, cards))
  const known = new Set((await tokens.findByFingerprints(db, cards)).map(keyOf))
  const recorded = new Map((await intents.findByIds(db, ids)).map(intent => [intent.intentId, intent]))
  const now = deps.clock()
  const plans = wishes.map((wish, index) => {
    const intentId = ids[index] ?? ''
    const intent = recorded.get(intentId)
    return plan(wish, intentId, known.has(keyOf(wish)), held.get(keyOf(wish)), intent, wisher, now, deps)
  })
  if (await record(db, plans, wisher, lease, now)) return plans
  // Of two transactions that want one card the second waited for the first, and then made none.
  const made = new Set((await storedSchemes.holdByFingerprints(db, cards)).map(row => row.provisionId))
  return plans.map(({ wish, is }) => ({
    wish,
    is: is.as === 'leased' && !made.has(is.provisionId) ? { as: 'lost' } : is,
  }))
}

type Plan = Begun & { fresh?: NewScheme; confirms?: { intentId: string; provisionId: string } }

function plan(
  wish: CardWish,
  intentId: string,
  isKnown: boolean,
  row: StoredScheme | undefined,
  intent: intents.SchemeIntent | undefined,
  { receiptId, clientId }: Wisher,
  now: number,
  deps: Pick<Deps, 'ring' | 'clock'>,
): Plan {
  const ended = (end: CardEnd): Plan => ({ wish, is: { as: 'ended', end } })
  if (isKnown) return ended('known')
  if (intent?.state === 'REFUSED') return ended(refuse(THIRD_PARTY_REASONS[intent.refusal as Denial], wish.field))
  if (row?.lease && row.dueAt !== null && row.dueAt > now) return { wish, is: { as: 'busy', ms: row.dueAt - now } }
  if (row?.state === 'ACTIVE')
    // Another job's, perhaps, which hasn't come to its end: whoever is first takes it up.
    return { ...ended(provisionedOf(row)), confirms: { intentId, provisionId: row.provisionId } }
  const leased = (id: string, wasAsked: boolean): Begun['is'] => ({
    ...{ as: 'leased', provisionId: id, intentId, wasAsked },
  })
  if (row) return { wish, is: leased(row.provisionId, row.asked !== null) }
  const id = provisionId(receiptId, wish.tokenId, 0)
  const about = { provisionId: id, clientId, provider: wish.provider, background: false }
  const fresh = { ...pendingRow(wish, wish.card, about, deps), thirdParty: true, fingerprint: wish.fingerprint }
  return { wish, is: leased(id, false), fresh }
}

/** False where others were faster with one of the cards. */
async function record(
  db: Db,
  plans: readonly Plan[],
  { receiptId }: Wisher,
  lease: Lease,
  now: number,
): Promise<boolean> {
  const fresh = plans.flatMap(one => one.fresh ?? [])
  const made = await schemeTokens.insertAll(db, fresh.toSorted(byFingerprint))
  const deeds = plans.flatMap(({ wish, is }) => (is.as === 'leased' ? [{ wish, ...is }] : []))
  const asked = 'PROVISION' as const
  await schemeTokens.leaseAll(
    db,
    deeds.map(({ provisionId, intentId }) => ({ provisionId, asked, intentId })),
    lease.id,
    lease.until(),
  )
  const intended = (one: { intentId: string; provisionId: string; wish: CardWish }) => ({
    ...{ intentId: one.intentId, receiptId, tokenId: one.wish.tokenId, provisionId: one.provisionId, action: asked },
  })
  const confirmed = plans.flatMap(({ wish, confirms }) => (confirms ? [{ wish, ...confirms }] : []))
  await intents.intendAll(db, [...deeds, ...confirmed].map(intended), now)
  await intents.confirmAll(
    db,
    confirmed.map(({ intentId }) => intentId),
    now,
  )
  return made === fresh.length
}

export function provisionedOf({ provisionId, tokenId, reference }: StoredScheme): Provisioned {
  return { provisionId, tokenId, token: reference ?? '' }
}

const keyOf = ({ fingerprint }: { fingerprint: Buffer | null }) => fingerprint?.toString('latin1') ?? ''

function byCard(rows: readonly StoredScheme[]): Map<string, StoredScheme> {
  return new Map(rows.map(row => [keyOf(row), row]))
}

const NONE = Buffer.alloc(0)

/** Two transactions that want the same cards wait for each other in one order. */
function byFingerprint(a: NewScheme, b: NewScheme): number {
  return Buffer.compare(a.fingerprint ?? NONE, b.fingerprint ?? NONE)
}
