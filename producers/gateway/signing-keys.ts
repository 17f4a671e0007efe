// The signing keys of the installation that a gateway believes: those of its file, and those that one of them announced in
// a signed statement. A gateway has no key to check the code of a row, so a row of the database alone proves nothing; of
// the database it takes the statements, each of which proves itself.
import type { Clock } from '../../src/clock.ts'
import type { Logger } from '../../src/logger.ts'
import { every } from '../../src/recurring.ts'
import * as signingKeys from '../../src/store/access/signing-keys.ts'
import type { Store } from '../../src/store/pool.ts'
import { importPublicJwk, type Jwk } from '../../src/vault/client-key.ts'
import type { UngrantedCounter } from '../../src/vault/ring/ungranted.ts'
import type { TrustedKeys as ClientKeys } from '../client/trusted-keys.ts'
import type { TrustedKeys } from '../results.ts'

/** Results by unknown keys, forged ones too, cause no more than one reading in this time. */
const READ_MS = 1_000
const LOOK_MS = 5_000

export interface SigningKeys extends Required<TrustedKeys> {
  /** The rows of the keys that are believed, newest first, with their public halves as they are believed. */
  list(): Promise<signingKeys.PublicSigningKey[]>
  /** Why no result can be believed; empty if one of the stored keys is believed. */
  reasons(): string[]
  stop(): Promise<void>
}

interface Opened {
  /** The keys of the gateway's file, with what it has learned. */
  trusted: Pick<ClientKeys, 'keys' | 'renew'>
  store: Store
  /** Counts the rows that aren't believed, each once. */
  ungranted: UngrantedCounter
  clock: Clock
  log: Logger
}

export async function openSigningKeys({ trusted, store, ungranted, clock, log }: Opened): Promise<SigningKeys> {
  const { keys } = trusted
  const told = new Set<string>()
  let readAt = Number.NEGATIVE_INFINITY
  let isLost = false

  function believed(row: signingKeys.PublicSigningKey): signingKeys.PublicSigningKey[] {
    const known = keys.get(row.kid)
    if (known && isHalf(row.publicJwk, known)) {
      const publicJwk = { ...known.publicKey.export({ format: 'jwk' }), kid: row.kid, alg: known.alg, use: 'sig' }
      return [{ ...row, publicJwk }]
    }
    if (!told.has(row.kid)) {
      told.add(row.kid)
      ungranted.inc({ kind: 'signing-key' })
      log.error(
        { kind: 'signing-key', id: row.kid },
        'a signing key in the database is neither in this gateway’s file nor announced by a key that is: it is ignored',
      )
    }
    return []
  }
  async function list(): Promise<signingKeys.PublicSigningKey[]> {
    readAt = clock()
    const rows = await signingKeys.findPublic(store)
    await trusted.renew(rows.flatMap(({ statement }) => statement ?? []).reverse())
    const found = rows.flatMap(believed)
    isLost = found.length === 0
    return found
  }
  await list()
  const stop = every(LOOK_MS, list, { log })
  return {
    keys,
    async renew(newKeys) {
      await trusted.renew(newKeys)
      if (clock() - readAt >= READ_MS) await list()
    },
    list,
    reasons: () =>
      isLost
        ? [
            'no signing key in the database is believed here: copy system/gateway-keys.jwk anew from the host of `tokenmill schema upgrade`, and restart this process',
          ]
        : [],
    stop,
  }
}

type Known = ClientKeys['keys'] extends ReadonlyMap<string, infer Key> ? Key : never

function isHalf(jwk: Jwk, { alg, publicKey }: Known): boolean {
  try {
    const half = importPublicJwk(jwk)
    return half.alg === alg && half.key.equals(publicKey)
  } catch {
    return false
  }
}
