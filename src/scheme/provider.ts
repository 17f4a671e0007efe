// What the product knows of a scheme-token network, or of a third party that makes reuse tokens: six calls, each
// repeatable under our id, and a closed set of answers. How they are spelt is its connector's affair; when they are made
// is the workers'.
import type { Secret } from '../secret.ts'

export const PROVIDER_STATES = ['INACTIVE', 'ACTIVE', 'SUSPENDED', 'DEACTIVATED'] as const
export type ProviderState = (typeof PROVIDER_STATES)[number]

/** A scheme token as its network knows it. */
export interface ProviderToken {
  /** The network's name of it, at most 64 characters; a third party's token itself, 14 to 255. */
  reference: string
  state: ProviderState
  /** Who suspended it: active again only when the last one lifts. */
  suspendedBy: readonly ('ISSUER' | 'TOKEN_REQUESTOR' | 'CARDHOLDER' | 'OTHER')[]
  /** The network token's number, where the network tells it to this requestor. */
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
 * How a call ended. `unknown`: it may have had its effect; ask `find` by the same id, never call blindly again.
 * `again`: it had none, or none that a repeat would add to, and may be repeated after `afterMs` where the network says so;
 * with `once` a second such answer is its last word.
 */
export type ProviderAnswer<T> =
  | { answer: 'done'; value: T }
  | { answer: 'refused'; reason: ProviderRefusal }
  | { answer: 'again'; once: boolean; afterMs?: number | undefined }
  | { answer: 'unknown' }

/** Stable words, also of `scheme_` reasons in src/errors.ts. */
export const PROVIDER_REFUSALS = [
  'card_ineligible',
  'card_declined',
  'token_unknown',
  'token_state',
  'request_invalid',
] as const
export type ProviderRefusal = (typeof PROVIDER_REFUSALS)[number]

export type Urgency = 'interactive' | 'bulk'

/** What a network needs that knows provisionings by their card only. */
export interface Sought {
  /** Absent where it was erased: then a network of that sort can't tell, and answers `unknown`. */
  card: ProvisionCard | undefined
  /** References of that card that are known to belong to other ids. */
  taken: readonly string[]
  /** ms since the epoch: what has been as it is for longer was not made by that id. */
  since?: number
}

export interface SchemeProvider {
  name: string
  /** `id`: ours, unique per provisioning. A repeat under the same id never makes a second token: the same is answered, or `unknown`. */
  provision(id: string, card: ProvisionCard, urgency: Urgency): Promise<ProviderAnswer<ProviderToken>>
  suspend(id: string, reference: string, urgency: Urgency): Promise<ProviderAnswer<ProviderToken>>
  resume(id: string, reference: string, urgency: Urgency): Promise<ProviderAnswer<ProviderToken>>
  delete(id: string, reference: string, urgency: Urgency): Promise<ProviderAnswer<ProviderToken>>
  get(id: string, reference: string, urgency: Urgency): Promise<ProviderAnswer<ProviderToken>>
  /** What became of the provisioning of that id; `done` with undefined: it has no effect and will have none. */
  find(id: string, sought: Sought, urgency: Urgency): Promise<ProviderAnswer<ProviderToken | undefined>>
  close(): Promise<void>
}
