// Opens a sample of one column, as the code that reads the column does. What was opened is dropped at once.
import { Fault } from '../../../src/errors.ts'
import { Secret } from '../../../src/secret.ts'
import type { Db } from '../../../src/store/pool.ts'
import { type SampledName, type SampledRow, sample, sampleVersion } from '../../../src/store/sealed-sample.ts'
import { authenticationRow } from '../../../src/store/three-ds/authentication-row.ts'
import { contractRow } from '../../../src/store/three-ds/three-ds-contracts.ts'
import type { KeyRing } from '../../../src/vault/ring/key-ring.ts'
import { roleKeyName } from '../../../src/vault/ring/shared-keys.ts'

/** What became of one column's rows under one version. */
export interface Opened {
  /** The column, as `token.sealed`. */
  name: string
  version: number
  sampled: number
  failed: number
  /** The first rows that didn't open; of cards the ids of their tokens. */
  names: string[]
}

/** Rows of each column, spread over the versions. */
const ROWS_MAX = 1_000
const NAMES_MAX = 100

type Open = (row: SampledRow, ring: KeyRing) => unknown

const OPEN: Record<SampledName, Open> = {
  'token.sealed': (row, ring) => matchCard(ring.open(row.sealed, row.version, row.key, scopeOf(row)), row),
  'scheme_token.card': (row, ring) => ring.open(row.sealed, row.version, row.key, scopeOf(row)),
  'scheme_token.sealed': (row, ring) => ring.openNetworkToken(row.sealed, row.version, row.key),
  'before_image.sealed': (row, ring) => ring.openBeforeImage(row.sealed, row.version, row.key),
  'authentication.sealed': (row, ring) => ring.openThreeDs(row.sealed, row.version, authenticationRow(row.key)),
  'threeds_contract.key_sealed': (row, ring) => ring.openThreeDs(row.sealed, row.version, contractRow(row.key)),
  'threeds_contract.former_key_sealed': (row, ring) => ring.openThreeDs(row.sealed, row.version, contractRow(row.key)),
  'endpoint.sealed': (row, ring) => ring.openWebhookSecret(row.sealed, row.version, row.key),
  'endpoint.former_sealed': (row, ring) => ring.openWebhookSecret(row.sealed, row.version, row.key),
  'manifest_key.sealed': (row, ring) => ring.openTotalKey(row.sealed, row.version, row.key),
  'role_key.sealed': (row, ring) => ring.openPrivateHalf(row.sealed, row.version, roleKeyName(row.key)),
}

/** `known`: the versions that the purpose has, or had. */
export async function openSample(
  db: Db,
  ring: KeyRing,
  name: SampledName,
  known: readonly number[],
): Promise<Opened[]> {
  const perVersion = Math.floor(ROWS_MAX / Math.max(1, known.length))
  const rows = await sample(db, name, perVersion)
  for (const version of known)
    if (!rows.some(row => row.version === version)) rows.push(...(await sampleVersion(db, name, version, perVersion)))
  const byVersion = [...Map.groupBy(rows, ({ version }) => version)].sort(([a], [b]) => a - b)
  return byVersion.map(([version, some]) => {
    const failed = some.filter(row => !opens(row, ring, OPEN[name]))
    const names = failed.slice(0, NAMES_MAX).map(({ key }) => key)
    return { name, version, sampled: some.length, failed: failed.length, names }
  })
}

function opens(row: SampledRow, ring: KeyRing, open: Open): boolean {
  try {
    const plain = open(row, ring)
    if (Buffer.isBuffer(plain)) plain.fill(0)
    if (plain instanceof Secret && Buffer.isBuffer(plain.reveal())) (plain as Secret<Buffer>).reveal().fill(0)
    return true
  } catch (error) {
    if (error instanceof Fault) return false
    throw error
  }
}

/** Throws `Fault('defect')` if the number isn't the one whose ends the row shows. */
function matchCard(pan: Secret, { facts }: SampledRow): void {
  const number = pan.reveal()
  const isSame = number.startsWith(facts['bin'] ?? '') && number.endsWith(facts['last_four'] ?? '')
  if (!/^\d{12,19}$/.test(number) || !isSame) throw new Fault('defect')
}

function scopeOf({ facts }: SampledRow): string {
  return facts['token_scope'] ?? ''
}
