// The signing keys of the installation that a role without a key of the vault believes: those of its host's file, and those
// that one of them announced in a signed statement. Such a role can't check the code of a row, so a row of the database
// alone proves nothing; of the database it takes the statements, each of which proves itself.
import type { Clock } from '../src/clock.ts'
import type { Algorithm } from '../src/job/envelope/signature.ts'
import type { Logger } from '../src/logger.ts'
import { every } from '../src/recurring.ts'
import { importPublicJwk, type Jwk } from '../src/vault/client-key.ts'
import type { UngrantedCounter } from '../src/vault/ring/ungranted.ts'
import type { TrustedKeys as ClientKeys } from './client/trusted-keys.ts'
import type { TrustedKeys } from './results.ts'

/** Results by unknown keys, forged ones too, cause no more than one reading in this time. */
const READ_MS = 1_000
const LOOK_MS = 5_000

interface StoredKey {
  kid: string
  alg: Algorithm
  publicJwk: Jwk
  statement: string | null
}

export interface SigningKeys<Row extends StoredKey = StoredKey> extends Required<TrustedKeys> {
  /** The rows of the keys that are believed, newest first, with their public halves as they are believed. */
  list(): Promise<Row[]>
  /** Why no result can be believed; empty if one of the stored keys is believed. */
  reasons(): string[]
  stop(): Promise<void>
}

interface Opened<Row> {
  /** The keys of the host's file, with what was learned. */
  trusted: Pick<ClientKeys, 'keys' | 'renew'>
  /** The rows of the database, newest first. */
  find(): Promise<Row[]>
  /** Counts the rows that aren't believed, each once. */
  ungranted: UngrantedCounter
  clock: Clock
  log: Logger
}

export async function openSigningKeys<Row extends StoredKey>({
  trusted,
  find,
  ungranted,
  clock,
  log,
}: Opened<Row>): Promise<SigningKeys<Row>> {
  const { keys } = trusted
  const told = new Set<string>()
  let readAt = Number.NEGATIVE_INFINITY
  let isLost = false

  function believed(row: Row): Row[] {
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
        'a signing key in the database is neither in this host’s file nor announced by a key that is: it is ignored',
      )
    }
    return []
  }
  async function list(): Promise<Row[]> {
    readAt = clock()
    const rows = await find()
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
            'no signing key in the database is believed here: copy system/installation-keys.json anew from the host of `tokenmill schema upgrade`, and restart this process',
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
