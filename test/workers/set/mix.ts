// Mixes of jobs that come to the same cards, tokens and owners, and the jobs' requests.
import fc from 'fast-check'
import { panOf } from '../../../bin/sample/pan.ts'
import { tokenBatch } from '../../../producers/token-batch.ts'
import type { RecordKind } from '../../../src/job/catalogue.ts'
import * as guesses from '../../../src/store/token/guesses.ts'
import { passesLuhn } from '../../../src/token/pan.ts'
import type { Installation } from '../../support/installation.ts'
import { CONTRACT, type Job, type JobOptions, type World } from '../provider/bundle.ts'

const CARDS = 8
export const TOKENS = 8
/** The first owners get other tokens; the others are only released, so none of them comes back. */
export const OWNERS = { moved: 3, released: 3 } as const
/** Before a mix begins, so many misses are left for the digits of its guesses. */
const GUESSES_LEFT = 2
export const GUESSES_MAX = 6

const card = fc.nat(CARDS - 1)
const token = fc.nat(TOKENS - 1)
const month = fc.integer({ min: 1, max: 4 })
const owner = fc.nat(OWNERS.moved - 1)
const action = fc.constantFrom('SUSPEND' as const, 'SUSPEND' as const, 'ACTIVATE' as const, 'ACTIVATE' as const)
const some = (list: fc.Arbitrary<number>) => fc.uniqueArray(list, { minLength: 2, maxLength: 5 })

/** Cards, tokens and owners by number. */
const asks = {
  create: fc.record({ card, month, owner: fc.option(owner, { nil: undefined, freq: 4 }) }),
  guess: fc.constant({}),
  name: fc.record({ token, name: fc.constantFrom('ANNA', 'BEN "Ö" \\', '{,}') }),
  relink: fc.record({ token }),
  own: fc.record({ token, owner }),
  lifecycle: fc.record({ token, action }),
  delete: fc.record({ token }),
  release: fc.record({
    owner: fc.integer({ min: OWNERS.moved, max: OWNERS.moved + OWNERS.released - 1 }),
    orphan: fc.constantFrom('keep', 'suspend', 'delete'),
  }),
  scheme: fc.record({ action: fc.constantFrom('ACTIVATE', 'SUSPEND') }),
  thirdParty: fc.record({ card: fc.nat(1) }),
  reverse: fc.record({ earlier: fc.nat(7) }),
  chunk: fc.record({ cards: some(card), month }),
  chunkOfChanges: fc.record({ tokens: some(token), action }),
}
type Asks = { [K in keyof typeof asks]: (typeof asks)[K] extends fc.Arbitrary<infer T> ? T : never }
export type Ask = { [K in keyof Asks]: Asks[K] & { is: K } }[keyof Asks]

/** How often each ask comes. */
const WEIGHTS = {
  create: 6,
  guess: 3,
  name: 4,
  relink: 2,
  own: 2,
  lifecycle: 5,
  delete: 1,
  release: 2,
  scheme: 1,
  thirdParty: 1,
  reverse: 3,
  chunk: 1,
  chunkOfChanges: 1,
} as const satisfies Record<keyof Asks, number>

/** A job, and how often it is delivered. */
export interface AnyJob {
  deliveries: number
  sequence: number | undefined
  ask: Ask
}
export const anyMix: fc.Arbitrary<AnyJob[]> = fc.array(
  fc.record({
    deliveries: fc.integer({ min: 1, max: 2 }),
    sequence: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
    ask: fc.oneof(
      ...(Object.keys(asks) as (keyof Asks)[]).map(is => ({
        weight: WEIGHTS[is],
        arbitrary: (asks[is] as fc.Arbitrary<object>).map(ask => ({ ...ask, is }) as Ask),
      })),
    ),
  }),
  { minLength: 16, maxLength: 48, size: 'max' },
)

/** Which jobs a set may write: all of them, only those that are refused, or none. */
export const IN_SETS = {
  create: 'all',
  guess: 'all',
  name: 'all',
  own: 'all',
  lifecycle: 'all',
  relink: 'refused',
  delete: 'refused',
  release: 'none',
  scheme: 'none',
  thirdParty: 'none',
  reverse: 'none',
  chunk: 'none',
  chunkOfChanges: 'none',
} as const satisfies Record<keyof Asks, 'all' | 'refused' | 'none'>

/** Cards of which the same digits are shown, others in each mix. */
const guessedCards = (no: number) =>
  Array.from({ length: 1_000 }, (_, index) => `41111187${String(index).padStart(4, '0')}${4000 + no}`).filter(
    passesLuhn,
  )
export const guessedDigits = (no: number) => `41111187${4000 + no}`
export const ownerOf = (no: number, number: number) => ({ provider: 'p', card_id: `card_${no}_${number}` })

/** Makes the tokens and owners of a mix, one by one, and then the jobs. */
export async function prepareMix(
  { installation, world }: { installation: Installation; world: World },
  mix: readonly AnyJob[],
  no: number,
): Promise<Job[]> {
  const { store } = installation.vault
  const { clientId } = installation.credentials.signingKey
  const scope = { token_scope: installation.scope }
  const pan = (index: number) => panOf(no * 1000 + index, 41)
  const sealed = (number: string, expiryMonth: number) => world.cardOf(number, { expiryMonth, expiryYear: 2031 })
  const made: Job[] = []
  const make = async (index: number, more: object = {}) => {
    const request = { ...scope, ...(await sealed(pan(index), 12)), ...more }
    const one = world.job('token-create', request, { jti: `mix-${no}-token-${index - 50}` })
    made.push(one)
    return String((await world.run(one)).record?.['reuse_token'])
  }
  const ids: string[] = []
  for (let index = 0; index < TOKENS; index += 1)
    ids.push(
      await make(50 + index, index < OWNERS.moved + OWNERS.released ? { on_file: ownerOf(no, index) } : undefined),
    )
  const guess = { clientId, tokenScope: installation.scope, digits: guessedDigits(no) }
  await guesses.addAll(store, Array(GUESSES_MAX - GUESSES_LEFT).fill(guess))
  const numbers = guessedCards(no)
  const jobs: Job[] = []
  const job = (kind: Parameters<World['job']>[0], request: Record<string, unknown>, options: JobOptions = {}) =>
    world.job(kind, request, { jti: `mix-${no}-${jobs.length}`, ...options })
  async function chunk(recordKind: RecordKind, requests: readonly object[]): Promise<Job> {
    const captureKey = installation.credentials.captureKeys.jwe
    if (!captureKey) throw new Error('these credentials hold no JWE key')
    const batchId = `f-mix-${no}-${jobs.length}`
    const acceptedAt = Math.floor(Date.now() / 1000) - 1
    const plan = { batchId, recordKind, tokenScope: installation.scope, acceptedAt, captureKey }
    const lines = requests.map((request, index) => JSON.stringify({ line: index + 2, request }))
    const ask = await tokenBatch(clientId, plan, { lines, number: 0 })
    if ('refused' in ask) throw new Error(`refused: ${ask.reason}`)
    return job('token-batch', ask.request as Record<string, unknown>, { jti: ask.jti, block: ask.block })
  }
  async function jobOf(ask: Ask, index: number, options: JobOptions): Promise<Job> {
    const id = 'token' in ask ? ids[ask.token] : undefined
    const onFile = 'owner' in ask && ask.owner !== undefined ? { on_file: ownerOf(no, ask.owner) } : {}
    switch (ask.is) {
      case 'create':
        return job('token-create', { ...scope, ...(await sealed(pan(ask.card), ask.month)), ...onFile })
      case 'guess':
        return job('token-create', { ...scope, ...(await sealed(numbers[index] ?? '', 12)) })
      case 'thirdParty': {
        const theirs = {
          reuse_token_type: 'THIRD_PARTY_1',
          reuse_token_details: { expiry_month: 7, expiry_year: 2033 },
          token_context: { payment_provider_contract: CONTRACT },
        }
        return job('token-create', { ...scope, ...theirs, ...(await sealed(pan(40 + ask.card), 12)) })
      }
      case 'name':
        return job('token-update', { id, card_holder_name: ask.name }, options)
      case 'relink':
        return job('token-update', { id, ...(await sealed(pan(100 + index), 7)) }, options)
      case 'own':
        return job('token-update', { id, ...onFile }, options)
      case 'lifecycle':
        return job('token-lifecycle', { id, action: ask.action }, options)
      case 'delete':
        return job('token-lifecycle', { id, action: 'DELETE' }, options)
      case 'release':
        return job('reference', {
          ...scope,
          ...ownerOf(no, ask.owner),
          action: 'RELEASE',
          on_orphan: ask.orphan,
        })
      // A token of its own: the calls for one token at a network may have another order than the receipts of their jobs.
      case 'scheme':
        return job('scheme-token', { id: await make(200 + index), action: ask.action })
      case 'reverse': {
        const reversible = jobs.filter((_, at) => !UNREVERSED.has(mix[at]?.ask.is ?? 'chunk'))
        const all = [...made.slice(0, TOKENS), ...reversible]
        const { receiptId, envelope } = all.at(-1 - ask.earlier) ?? {}
        return job('reversal', { receipt_id: receiptId, envelope }, { bySystem: true })
      }
      case 'chunk':
        return chunk(
          'token-create',
          ask.cards.map(index => ({
            card: { cardNumber: pan(index), expiryMonth: ask.month, expiryYear: 2031 },
          })),
        )
      case 'chunkOfChanges':
        return chunk(
          'token-lifecycle',
          ask.tokens.map(index => ({ id: ids[index], action: ask.action })),
        )
    }
  }
  for (const [index, { ask, sequence }] of mix.entries())
    jobs.push(await jobOf(ask, index, sequence === undefined ? {} : { sequence }))
  return jobs
}

/** Their calls of providers would be undone, which takes further jobs. */
const UNREVERSED: ReadonlySet<Ask['is']> = new Set([
  'scheme',
  'thirdParty',
  'reverse',
  'chunk',
  'chunkOfChanges',
  'release',
])
