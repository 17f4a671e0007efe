// One question to a network about a leased row, answered as plainly as can be: where the outcome of a provisioning
// isn't known, the network is asked by our id what became of it, never called blindly again. Nothing is written here.
import { assert } from '../../src/errors.ts'
import type {
  ProviderAnswer,
  ProviderRefusal,
  ProviderToken,
  SchemeProvider,
  Urgency,
} from '../../src/scheme/provider.ts'
import type { StoredScheme } from '../../src/store/provider/scheme-row.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { SchemeCall } from '../../src/token/scheme.ts'
import type { Deps } from '../deps.ts'
import { openSealedCard } from './pending-card.ts'

export type Call = SchemeCall | 'DELETE' | 'GET'

/** `nothing`: the provisioning had no effect, and may be asked for again. `lost`: nobody can tell yet. */
export type Came =
  | { came: 'token'; token: ProviderToken }
  | { came: 'refused'; reason: ProviderRefusal }
  /** A third party named a token that is another provisioning's, and stays so. */
  | { came: 'taken' }
  /** The same, and that one is being deleted there. */
  | { came: 'leaving' }
  | { came: 'lost'; afterMs: number | undefined }
  /**
   * `vanished`: the network knows of the call, or never got it, and has no living token of it. `once`: what it says twice
   * is its last word.
   */
  | { came: 'nothing'; afterMs: number | undefined; vanished?: true; once?: boolean }

/** References of one card that belong to others: more than any card has. */
const TAKEN_MAX = 50

/** A network's clock and ours may be so far apart. */
const CLOCKS_MS = 3_600_000

/** A network that was set up when a row was made may not be any more. */
const ABSENT_MS = 60_000

export function providerOf({ outside }: Pick<Deps, 'outside'>, name: string): SchemeProvider | undefined {
  return outside?.schemes.named(name)
}

export async function ask(row: StoredScheme, call: Call, urgency: Urgency, deps: Deps): Promise<Came> {
  const came = await put(row, call, urgency, deps)
  deps.metrics.schemeCalls.inc({ call, answer: came.came })
  return came
}

async function put(row: StoredScheme, call: Call, urgency: Urgency, deps: Deps): Promise<Came> {
  const provider = providerOf(deps, row.provider)
  if (!provider) return { came: 'nothing', afterMs: ABSENT_MS }
  if (call === 'PROVISION') {
    const card = openSealedCard(row, deps.ring)
    assert(card, 'a provisioning keeps its card until it is settled')
    const answer = await provider.provision(row.provisionId, card, urgency)
    return answer.answer === 'unknown' ? findOutNow(row, urgency, deps) : unlessTaken(row, plain(answer), deps)
  }
  const { reference, provisionId } = row
  assert(reference !== null, 'a token at the network has its reference')
  switch (call) {
    case 'SUSPEND':
      return plain(await provider.suspend(provisionId, reference, urgency))
    case 'RESUME':
      return plain(await provider.resume(provisionId, reference, urgency))
    case 'DELETE':
      return plain(await provider.delete(provisionId, reference, urgency))
    case 'GET':
      return plain(await provider.get(provisionId, reference, urgency))
  }
}

function plain(answer: ProviderAnswer<ProviderToken>): Came {
  switch (answer.answer) {
    case 'done':
      return { came: 'token', token: answer.value }
    case 'refused':
      return { came: 'refused', reason: answer.reason }
    case 'again':
      return { came: 'nothing', afterMs: answer.afterMs, once: answer.once }
    case 'unknown':
      return { came: 'lost', afterMs: undefined }
  }
}

/**
 * A third party that doesn't know of a call whose answer was just lost may still be at it. A network that may be is asked
 * again under the same id, under which it never makes two.
 */
async function findOutNow(row: StoredScheme, urgency: Urgency, deps: Deps): Promise<Came> {
  const found = await findOut(row, urgency, deps)
  return row.thirdParty && found.came === 'nothing' ? { came: 'lost', afterMs: undefined } : found
}

/** What became of a provisioning whose call was, or may have been, made. */
export async function findOut(row: StoredScheme, urgency: Urgency, deps: Deps): Promise<Came> {
  const provider = providerOf(deps, row.provider)
  if (!provider) return { came: 'lost', afterMs: ABSENT_MS }
  const card = openSealedCard(row, deps.ring)
  const taken: string[] = []
  while (taken.length < TAKEN_MAX) {
    // A token of an earlier system's for the same card, or from before a restore, is not ours to take.
    const answer = await provider.find(row.provisionId, { card, taken, since: row.createdAt - CLOCKS_MS }, urgency)
    if (answer.answer === 'refused') return { came: 'refused', reason: answer.reason }
    if (answer.answer !== 'done')
      return { came: 'lost', afterMs: answer.answer === 'again' ? answer.afterMs : undefined }
    if (answer.value === undefined) return { came: 'nothing', afterMs: undefined, vanished: true }
    if (row.thirdParty) return unlessTaken(row, { came: 'token', token: answer.value }, deps)
    // A network that knows provisionings by their card only may mean another one's of that card.
    const { reference } = answer.value
    const [holder] = await storedSchemes.findByReferences(deps.store, row.provider, [reference])
    if (!holder || holder.provisionId === row.provisionId) return { came: 'token', token: answer.value }
    taken.push(reference)
  }
  return { came: 'lost', afterMs: undefined }
}

/** A third party that has but one token for a card names it under each of our ids. */
async function unlessTaken(row: StoredScheme, came: Came, { store }: Pick<Deps, 'store'>): Promise<Came> {
  if (!row.thirdParty || came.came !== 'token') return came
  const named = await storedSchemes.findByReferences(store, row.provider, [came.token.reference])
  const holder = named.find(({ provisionId }) => provisionId !== row.provisionId)
  if (!holder) return came
  return { came: holder.retiredAt === null ? 'taken' : 'leaving' }
}
