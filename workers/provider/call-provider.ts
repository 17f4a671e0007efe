// Calls a provider about one leased row. If the answer to a provisioning was lost, it asks the provider for the result
// by our id. It writes nothing; interpret-answer.ts decides what an answer means for the row.
import { assert, toFault } from '../../src/errors.ts'
import type {
  ProviderAnswer,
  ProviderRefusal,
  ProviderToken,
  SchemeProvider,
  Urgency,
} from '../../src/scheme/provider.ts'
import { isReferenceProved, type StoredScheme } from '../../src/store/provider/scheme-row.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { SchemeCall } from '../../src/token/scheme.ts'
import type { SpanName } from '../../src/trace/attributes.ts'
import { within } from '../../src/trace/tracer.ts'
import type { ProviderDeps } from './deps.ts'
import { openSealedCard } from './pending-card.ts'

export type Call = SchemeCall | 'DELETE' | 'GET'

export type CallAnswer =
  | { answer: 'token'; token: ProviderToken }
  | { answer: 'refused'; reason: ProviderRefusal }
  /** A third party named the token of another provisioning. `isRetired`: that token is being deleted there. */
  | { answer: 'duplicate'; isRetired: boolean }
  /** Nothing was called: tokenmill did not write the row's reference, or somebody changed it. */
  | { answer: 'unproved' }
  /** The call may have had its effect. */
  | { answer: 'unknown'; afterMs: number | undefined }
  /**
   * The call had no effect and may be repeated. `isAbsent`: the provider was asked by our id and has no live token for
   * it. `isFinalTwice`: a second such answer is final.
   */
  | { answer: 'no-effect'; afterMs: number | undefined; isAbsent?: true; isFinalTwice?: boolean }

/** More references than a card can have at a network. */
const REFERENCES_MAX = 50

/** By how much a network's clock and ours are assumed to differ at most. */
const SKEW_MS = 3_600_000

/** How long to wait before a row is tried again whose provider isn't set up any more. */
const NOT_SET_UP_MS = 60_000

export function providerOf({ providers }: Pick<ProviderDeps, 'providers'>, name: string): SchemeProvider | undefined {
  return providers?.schemes.named(name)
}

export async function callProvider(
  row: StoredScheme,
  call: Call,
  urgency: Urgency,
  deps: ProviderDeps,
): Promise<CallAnswer> {
  const answer = await seen('call provider', row, call, deps, () => send(row, call, urgency, deps))
  deps.metrics.schemeCalls.inc({ call, answer: labelOf(answer) })
  return answer
}

/** Makes a call within a span. A job's call belongs to the job's trace; a call of the loop has a trace of its own. */
async function seen(
  name: SpanName,
  { provider }: StoredScheme,
  call: Call | 'FIND',
  { span: jobSpan, tracer }: ProviderDeps,
  ask: () => Promise<CallAnswer>,
): Promise<CallAnswer> {
  if (!tracer) return ask()
  // A third party's name also contains the merchant's contract, which is left out.
  const [service = provider] = provider.split(' ')
  const options = { kind: 'client', attributes: { 'provider.name': service, 'provider.call': call } } as const
  const span = jobSpan?.child(name, options) ?? tracer.start(name, options)
  const told = async () => {
    const answer = await ask()
    span.set({ 'provider.answer': answer.answer })
    return answer
  }
  return within(span, told, error => toFault(error).code)
}

/** The label in the metric. It has other words than `CallAnswer`, because dashboards use the older ones. */
function labelOf(answer: CallAnswer): string {
  if (answer.answer === 'duplicate') return answer.isRetired ? 'leaving' : 'taken'
  return LABELS[answer.answer]
}

const LABELS = {
  token: 'token',
  refused: 'refused',
  unproved: 'unproved',
  unknown: 'lost',
  'no-effect': 'nothing',
} as const satisfies Record<Exclude<CallAnswer['answer'], 'duplicate'>, string>

async function send(row: StoredScheme, call: Call, urgency: Urgency, deps: ProviderDeps): Promise<CallAnswer> {
  const provider = providerOf(deps, row.provider)
  if (!provider) return { answer: 'no-effect', afterMs: NOT_SET_UP_MS }
  if (call === 'PROVISION') {
    const card = openSealedCard(row, deps.ring)
    assert(card, 'a provisioning keeps its card until its outcome is known')
    const answer = await provider.provision(row.provisionId, card, urgency)
    return answer.answer === 'unknown'
      ? findAfterLostAnswer(row, urgency, deps)
      : unlessDuplicate(row, read(answer), deps)
  }
  const { reference, provisionId } = row
  assert(reference !== null, 'a token at the network has its reference')
  if (!isReferenceProved(row, deps.ring)) {
    deps.onUnproved('scheme_token', provisionId)
    return { answer: 'unproved' }
  }
  switch (call) {
    case 'SUSPEND':
      return read(await provider.suspend(provisionId, reference, urgency))
    case 'RESUME':
      return read(await provider.resume(provisionId, reference, urgency))
    case 'DELETE':
      return read(await provider.delete(provisionId, reference, urgency))
    case 'GET':
      return read(await provider.get(provisionId, reference, urgency))
  }
}

function read(answer: ProviderAnswer<ProviderToken>): CallAnswer {
  switch (answer.answer) {
    case 'done':
      return { answer: 'token', token: answer.value }
    case 'refused':
      return { answer: 'refused', reason: answer.reason }
    case 'again':
      return { answer: 'no-effect', afterMs: answer.afterMs, isFinalTwice: answer.once }
    case 'unknown':
      return { answer: 'unknown', afterMs: undefined }
  }
}

/**
 * Asks for the result of a call whose answer was lost. If a third party doesn't know the id, it may still be working on
 * the call, so that counts as unknown. A network may be too, but it is called again with the same id, for which it
 * never makes a second token.
 */
async function findAfterLostAnswer(row: StoredScheme, urgency: Urgency, deps: ProviderDeps): Promise<CallAnswer> {
  const found = await findProvisioned(row, urgency, deps)
  return row.thirdParty && found.answer === 'no-effect' ? { answer: 'unknown', afterMs: undefined } : found
}

/** Asks for the result of a provisioning that was, or may have been, called for. */
export function findProvisioned(row: StoredScheme, urgency: Urgency, deps: ProviderDeps): Promise<CallAnswer> {
  return seen('find at provider', row, 'FIND', deps, () => find(row, urgency, deps))
}

async function find(row: StoredScheme, urgency: Urgency, deps: ProviderDeps): Promise<CallAnswer> {
  const provider = providerOf(deps, row.provider)
  if (!provider) return { answer: 'unknown', afterMs: NOT_SET_UP_MS }
  const card = openSealedCard(row, deps.ring)
  const taken: string[] = []
  while (taken.length < REFERENCES_MAX) {
    // Tokens of the same card that are older than the row, from an earlier system or from before a restore, don't
    // belong to this provisioning.
    const since = row.createdAt - SKEW_MS
    const answer = await provider.find(row.provisionId, { card, taken, since }, urgency)
    // A refused search says nothing about the token: taken as a refused provisioning it would leave one that nobody knows.
    if (answer.answer === 'refused')
      deps.log.warn({ provider: row.provider, reason: answer.reason }, 'a search for a provisioned token was refused')
    if (answer.answer !== 'done')
      return { answer: 'unknown', afterMs: answer.answer === 'again' ? answer.afterMs : undefined }
    if (answer.value === undefined) return { answer: 'no-effect', afterMs: undefined, isAbsent: true }
    if (row.thirdParty) return unlessDuplicate(row, { answer: 'token', token: answer.value }, deps)
    // A network that finds provisionings only by card may return the token of another provisioning of that card.
    const { reference } = answer.value
    const [holder] = await storedSchemes.findByReferences(deps.store, row.provider, [reference])
    if (!holder || holder.provisionId === row.provisionId) return { answer: 'token', token: answer.value }
    taken.push(reference)
  }
  return { answer: 'unknown', afterMs: undefined }
}

/**
 * Checks that a third party's token isn't another provisioning's: a third party with one token per card returns that
 * token for each of our ids.
 */
async function unlessDuplicate(
  row: StoredScheme,
  answer: CallAnswer,
  { store }: Pick<ProviderDeps, 'store'>,
): Promise<CallAnswer> {
  if (!row.thirdParty || answer.answer !== 'token') return answer
  const named = await storedSchemes.findByReferences(store, row.provider, [answer.token.reference])
  const holder = named.find(({ provisionId }) => provisionId !== row.provisionId)
  return holder ? { answer: 'duplicate', isRetired: holder.retiredAt !== null } : answer
}
