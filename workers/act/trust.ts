// What the acts of people are checked against.
import type { RelyingParty } from '../../src/vault/passkey/relying-party.ts'
import type { Deps } from '../deps.ts'

/** It comes from this worker's own settings and store, and never from the console. */
export interface ConsoleTrust extends RelyingParty {
  installationId: string
  /** The store is the embedded PostgreSQL: its local person acts without a passkey. */
  isEmbedded: boolean
}

export interface ActDeps extends Deps {
  console: ConsoleTrust
}
