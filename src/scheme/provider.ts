// The interface of a provider: a scheme-token network, or a third party that makes reuse tokens. It has six calls, each
// repeatable with the same id, and a closed set of answers. Connectors implement it; the workers decide when to call.
import type { Secret } from '../secret.ts'

export const PROVIDER_STATES = ['INACTIVE', 'ACTIVE', 'SUSPENDED', 'DEACTIVATED'] as const
export type ProviderState = (typeof PROVIDER_STATES)[number]

/** A scheme token as its network knows it. */
export interface ProviderToken {
  /**
   * For a network: its reference of the token, at most 64 characters. For a third party: the token itself, 14 to 255
   * characters.
   */
  reference: string
  state: ProviderState
  /** Who has suspended the token. It is active again only when all of them have lifted their suspension. */
  suspendedBy: readonly ('ISSUER' | 'TOKEN_REQUESTOR' | 'CARDHOLDER' | 'OTHER')[]
  /** The number of the network token; undefined unless the network tells this requestor. */
  number: Secret | undefined
  expiryMonth: number | undefined
  expiryYear: number | undefined
  /** 29 characters of 0-9 and A-Z. */
  par: string | undefined
}

export interface ProvisionCard {
  pan: Secret
  expiryMonth: number
  expiryYear: number
  cardHolderName: string | undefined
}

/**
 * How a call ended. `unknown`: the call may have had its effect; call `find` with the same id before any repeat.
 * `again`: the call had no effect, or a repeat does no harm; repeat it, after `afterMs` if the network says so. With
 * `once`, a second such answer is final.
 */
export type ProviderAnswer<T> =
  | { answer: 'done'; value: T }
  | { answer: 'refused'; reason: ProviderRefusal }
  | { answer: 'again'; once: boolean; afterMs?: number | undefined }
  | { answer: 'unknown' }

/** Reasons with which a provider refuses. With `scheme_` in front they are the reasons in src/errors.ts. */
export const PROVIDER_REFUSALS = [
  'card_ineligible',
  'card_declined',
  'token_unknown',
  'token_state',
  'request_invalid',
] as const
export type ProviderRefusal = (typeof PROVIDER_REFUSALS)[number]

export type Urgency = 'interactive' | 'bulk'

/** The key that `find` needs at a network that looks up provisionings only by their card. */
export interface LookupKey {
  /** Undefined if the card was erased: then the answer is `unknown`. */
  card: ProvisionCard | undefined
  /** References of the card's tokens that belong to other provisioning ids. */
  taken: readonly string[]
  /** ms since the epoch. A token whose state is older was not made with this id. */
  since?: number
}

export interface SchemeProvider {
  name: string
  /**
   * Makes a token. `id` is unique per provisioning. A repeat with the same id never makes a second token: it gets the
   * same answer, or `unknown`.
   */
  provision(id: string, card: ProvisionCard, urgency: Urgency): Promise<ProviderAnswer<ProviderToken>>
  suspend(id: string, reference: string, urgency: Urgency): Promise<ProviderAnswer<ProviderToken>>
  resume(id: string, reference: string, urgency: Urgency): Promise<ProviderAnswer<ProviderToken>>
  delete(id: string, reference: string, urgency: Urgency): Promise<ProviderAnswer<ProviderToken>>
  get(id: string, reference: string, urgency: Urgency): Promise<ProviderAnswer<ProviderToken>>
  /**
   * Finds the token of the provisioning with this id. `done` with undefined: there is no token, and there never will be
   * one.
   */
  find(id: string, key: LookupKey, urgency: Urgency): Promise<ProviderAnswer<ProviderToken | undefined>>
  close(): Promise<void>
}
