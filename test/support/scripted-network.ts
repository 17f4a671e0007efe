// A network for scheme tokens, in memory. A test tells it which calls to lose before or after their effect, or to
// refuse. It records the calls and what it made. Tests of the real messages use the simulator over HTTP.
import { createHash } from 'node:crypto'
import type {
  LookupKey,
  ProviderAnswer,
  ProviderRefusal,
  ProviderState,
  ProviderToken,
  ProvisionCard,
  SchemeProvider,
} from '../../src/scheme/provider.ts'
import { Secret } from '../../src/secret.ts'

/** What happens to one call. */
export type Mishap = 'none' | 'lost-before' | 'lost-after' | 'again' | 'again-once' | { refused: ProviderRefusal }

export interface NetworkToken {
  reference: string
  /** The id of the provisioning that made it. */
  id: string
  pan: string
  state: ProviderState
  suspendedBy: Set<'ISSUER' | 'TOKEN_REQUESTOR' | 'CARDHOLDER'>
  number: string
  expiryYear: number
}

export interface ScriptedNetwork {
  provider: SchemeProvider
  tokens: Map<string, NetworkToken>
  /** What happens to the next calls, in order; further calls get `otherwise`. */
  script: Mishap[]
  otherwise: () => Mishap
  /** LeasedUpdate before and after each call has its effect. */
  onCall: (name: string, moment: 'before' | 'after') => Promise<void> | void
  calls: string[]
  live(): NetworkToken[]
  /** Changes a token as the issuer or the cardholder would. */
  befall(reference: string, what: 'suspend' | 'resume' | 'delete' | 'expiry'): void
}

/**
 * `thirdParty`: makes a third party instead of a network. Its tokens are found by the id of the provisioning, and
 * `referenceOf` names them.
 */
export function openNetwork(thirdParty?: {
  name: string
  referenceOf(id: string, pan: string): string
}): ScriptedNetwork {
  const tokens = new Map<string, NetworkToken>()
  const byId = new Map<string, NetworkToken>()
  let made = 0

  async function call<T>(name: string, work: () => ProviderAnswer<T>, read = false): Promise<ProviderAnswer<T>> {
    network.calls.push(name)
    const mishap = network.script.shift() ?? network.otherwise()
    await network.onCall(name, 'before')
    if (mishap === 'again' || mishap === 'again-once') return { answer: 'again', once: mishap === 'again-once' }
    if (mishap === 'lost-before') return read ? { answer: 'again', once: false } : lost(name)
    if (typeof mishap === 'object' && !read) return { answer: 'refused', reason: mishap.refused }
    const answer = work()
    await network.onCall(name, 'after')
    return mishap === 'lost-after' ? (read ? { answer: 'again', once: false } : lost(name)) : answer
  }
  // Only a deletion may be repeated without asking.
  const lost = (name: string): ProviderAnswer<never> =>
    name === 'delete' ? { answer: 'again', once: false } : { answer: 'unknown' }

  function change(reference: string, work: (token: NetworkToken) => void): ProviderAnswer<ProviderToken> {
    const token = tokens.get(reference)
    if (!token) return { answer: 'refused', reason: 'token_unknown' }
    work(token)
    if (token.state !== 'DEACTIVATED' && token.state !== 'INACTIVE')
      token.state = token.suspendedBy.size > 0 ? 'SUSPENDED' : 'ACTIVE'
    return { answer: 'done', value: shownOf(token) }
  }

  const provider: SchemeProvider = {
    name: thirdParty?.name ?? 'mdes',
    provision: (id, card) =>
      call('provision', () => {
        const known = byId.get(id)
        if (known) return { answer: 'done', value: shownOf(known) }
        const reference = thirdParty?.referenceOf(id, card.pan.reveal())
        const same = tokens.get(reference ?? '')
        if (same && same.state !== 'DEACTIVATED') {
          byId.set(id, same)
          return { answer: 'done', value: shownOf(same) }
        }
        made += 1
        const token = { ...makeToken(id, card, made), ...(reference === undefined ? {} : { reference }) }
        tokens.set(token.reference, token)
        byId.set(id, token)
        return { answer: 'done', value: shownOf(token) }
      }),
    suspend: (_, reference) =>
      call('suspend', () => change(reference, token => token.suspendedBy.add('TOKEN_REQUESTOR'))),
    resume: (_, reference) =>
      call('resume', () => change(reference, token => token.suspendedBy.delete('TOKEN_REQUESTOR'))),
    delete: (_, reference) =>
      call('delete', () =>
        change(reference, token => {
          token.state = 'DEACTIVATED'
          token.suspendedBy.clear()
        }),
      ),
    get: (_, reference) => call('get', () => change(reference, () => {}), true),
    find: (id, key) => call('find', () => find(id, key), true),
    close: async () => {},
  }

  /** Finds as MDES does: the id shows whether a token was made, and the card which one it may be. */
  function find(id: string, { card, taken }: LookupKey): ProviderAnswer<ProviderToken | undefined> {
    const known = byId.get(id)
    if (!known || (thirdParty && known.state === 'DEACTIVATED')) return { answer: 'done', value: undefined }
    if (thirdParty) return { answer: 'done', value: shownOf(known) }
    if (!card) return { answer: 'unknown' }
    const [token] = [...tokens.values()]
      .filter(one => one.pan === card.pan.reveal() && one.state !== 'DEACTIVATED' && !taken.includes(one.reference))
      .sort((a, b) => (a.reference < b.reference ? -1 : 1))
    return { answer: 'done', value: token && shownOf(token) }
  }

  const network: ScriptedNetwork = {
    provider,
    tokens,
    script: [],
    otherwise: () => 'none',
    onCall: () => {},
    calls: [],
    live: () => [...tokens.values()].filter(({ state }) => state !== 'DEACTIVATED'),
    befall(reference, what) {
      const token = tokens.get(reference)
      if (!token || token.state === 'DEACTIVATED') return
      change(reference, () => {
        if (what === 'suspend') token.suspendedBy.add('ISSUER')
        if (what === 'resume') token.suspendedBy.delete('ISSUER')
        if (what === 'expiry') token.expiryYear += 1
        if (what === 'delete') {
          token.state = 'DEACTIVATED'
          token.suspendedBy.clear()
        }
      })
    },
  }
  return network
}

function makeToken(id: string, card: ProvisionCard, count: number): NetworkToken {
  const pan = card.pan.reveal()
  const reference = `REF${createHash('sha256').update(id).digest('hex').slice(0, 40)}`
  const number = `520473${String(count).padStart(10, '0')}`
  return { reference, id, pan, state: 'ACTIVE', suspendedBy: new Set(), number, expiryYear: 2032 }
}

function shownOf(token: NetworkToken): ProviderToken {
  const par = `5001${createHash('sha256').update(token.pan).digest('hex').slice(0, 25).toUpperCase()}`
  return {
    reference: token.reference,
    state: token.state,
    suspendedBy: [...token.suspendedBy],
    number: token.state === 'DEACTIVATED' ? undefined : new Secret(token.number),
    expiryMonth: 12,
    expiryYear: token.expiryYear,
    par,
  }
}
