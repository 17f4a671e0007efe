// A provider: a scheme-token network, or a third party that makes reuse tokens. Six calls, each repeatable under the
// same id, and a closed set of answers. The connectors translate them; the workers decide when to make them.
import type { Secret } from '../secret.ts'

export const PROVIDER_STATES = ['INACTIVE', 'ACTIVE', 'SUSPENDED', 'DEACTIVATED'] as const
export type ProviderState = (typeof PROVIDER_STATES)[number]

/** A scheme token as its network knows it. */
export interface ProviderToken {
  /** A network's name of the token, at most 64 characters; of a third party the token itself, 14 to 255. */
  reference: string
  state: ProviderState
  /** The token is active again only when each of these has lifted its suspension. */
  suspendedBy: readonly ('ISSUER' | 'TOKEN_REQUESTOR' | 'CARDHOLDER' | 'OTHER')[]
  /** The network token's number, where the network tells this requestor. */
  number: Secret | undefined
  expiryMonth: number | undefined
  expiryYear: number | undefined
  /** 29 characters of 0-9A-Z. */
  par: string | undefined
}

export interface ProvisionCard {
  pan: Secret
  expiryMonth: number
  expiryYear: number
  cardHolderName: string | undefined
}

/**
 * How a call ended. `unknown`: the call may have had its effect; call `find` with the same id, and never repeat blindly.
 * `again`: the call had no effect, or a repeat adds none; it may be repeated, after `afterMs` where the network says so.
 * With `once`, a second such answer is final.
 */
export type ProviderAnswer<T> =
  | { answer: 'done'; value: T }
  | { answer: 'refused'; reason: ProviderRefusal }
  | { answer: 'again'; once: boolean; afterMs?: number | undefined }
  | { answer: 'unknown' }

/** Stable words; with `scheme_` in front they are reasons in src/errors.ts. */
export const PROVIDER_REFUSALS = [
  'card_ineligible',
  'card_declined',
  'token_unknown',
  'token_state',
  'request_invalid',
] as const
export type ProviderRefusal = (typeof PROVIDER_REFUSALS)[number]

export type Urgency = 'interactive' | 'bulk'

/** What `find` needs at a network that knows provisionings by their card only. */
export interface LookupKey {
  /** Absent where the card was erased: then the answer is `unknown`. */
  card: ProvisionCard | undefined
  /** References of the card's tokens that belong to other ids. */
  taken: readonly string[]
  /** ms since the epoch: a token whose state is older was not made under this id. */
  since?: number
}

export interface SchemeProvider {
  name: string
  /** `id`: unique per provisioning. A repeat under the same id never makes a second token: the answer is the same, or `unknown`. */
  provision(id: string, card: ProvisionCard, urgency: Urgency): Promise<ProviderAnswer<ProviderToken>>
  suspend(id: string, reference: string, urgency: Urgency): Promise<ProviderAnswer<ProviderToken>>
  resume(id: string, reference: string, urgency: Urgency): Promise<ProviderAnswer<ProviderToken>>
  delete(id: string, reference: string, urgency: Urgency): Promise<ProviderAnswer<ProviderToken>>
  get(id: string, reference: string, urgency: Urgency): Promise<ProviderAnswer<ProviderToken>>
  /** What became of the provisioning with this id; `done` with undefined: it has no effect and never will have one. */
  find(id: string, key: LookupKey, urgency: Urgency): Promise<ProviderAnswer<ProviderToken | undefined>>
  close(): Promise<void>
}
