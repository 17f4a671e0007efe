// Opens what a sealed column holds and seals it under the active key: one function for each column of sealed-columns.ts.
import { assert, Fault, type FaultCode } from '../../src/errors.ts'
import { SEALED_COLUMNS, type SealedName } from '../../src/store/reseal/sealed-columns.ts'
import type { Resealed, SealedRow } from '../../src/store/reseal/sealed-rows.ts'
import { authenticationRow } from '../../src/store/three-ds/authentication-row.ts'
import { contractRow } from '../../src/store/three-ds/three-ds-contracts.ts'
import { captureHalfName, type PrivateHalves, signingHalfName } from '../../src/vault/private-half.ts'
import type { LiveRing } from '../../src/vault/ring/key-ring.ts'
import { roleKeyName } from '../../src/vault/ring/shared-keys.ts'

export interface VaultKeys {
  ring: LiveRing
  halves: PrivateHalves
}

interface Sealed {
  sealed: Buffer
  keyVersion: number | null
}

type SealAnew = (row: SealedRow, keys: VaultKeys) => Sealed | Promise<Sealed>

const SEAL_ANEW: Record<SealedName, SealAnew> = {
  'token.sealed': sealCard,
  'scheme_token.card': sealCard,
  'scheme_token.sealed': (row, { ring }) => {
    const place = { provisionId: row.key, tokenId: factOf(row, 'token_id') }
    return ring.sealNetworkToken(ring.openNetworkToken(row.sealed, versionOf(row), place), place)
  },
  'scheme_token.reference_sealed': (row, { ring }) => {
    const place = {
      provisionId: row.key,
      tokenId: factOf(row, 'token_id'),
      provider: factOf(row, 'provider'),
      reference: factOf(row, 'reference'),
    }
    ring.openReference(row.sealed, versionOf(row), place)
    return ring.sealReference(place)
  },
  'threeds_contract.key_sealed': (row, keys) => sealThreeDs(row, contractRow(row.key), keys),
  'threeds_contract.former_key_sealed': (row, keys) => sealThreeDs(row, contractRow(row.key), keys),
  'authentication.sealed': (row, keys) => sealThreeDs(row, authenticationOf(row), keys),
  'endpoint.sealed': sealWebhookSecret,
  'endpoint.former_sealed': sealWebhookSecret,
  'manifest_key.sealed': (row, { ring }) =>
    ring.sealTotalKey(ring.openTotalKey(row.sealed, versionOf(row), row.key), row.key),
  'capture_key.wrapped_private': (row, keys) =>
    sealHalf(row, captureHalfName(factOf(row, 'type'), factOf(row, 'alias')), keys),
  'signing_key.wrapped_private': (row, keys) => sealHalf(row, signingHalfName(row.key), keys),
  'role_key.sealed': (row, { ring }) =>
    ring.sealPrivateHalf(ring.openPrivateHalf(row.sealed, versionOf(row), roleKeyName(row.key)), roleKeyName(row.key)),
}

function sealCard(row: SealedRow, { ring }: VaultKeys): Sealed {
  const tokenScope = factOf(row, 'token_scope')
  return ring.seal(ring.open(row.sealed, versionOf(row), row.key, tokenScope), row.key, tokenScope)
}

function authenticationOf(row: SealedRow): string {
  return authenticationRow({
    authenticationId: row.key,
    entityId: factOf(row, 'entity_id'),
    contractId: factOf(row, 'contract_id'),
    clientId: factOf(row, 'client_id'),
  })
}

function sealThreeDs(row: SealedRow, name: string, { ring }: VaultKeys): Sealed {
  return ring.sealThreeDs(ring.openThreeDs(row.sealed, versionOf(row), name), name)
}

function sealWebhookSecret(row: SealedRow, { ring }: VaultKeys): Sealed {
  return ring.sealWebhookSecret(ring.openWebhookSecret(row.sealed, versionOf(row), row.key), row.key)
}

async function sealHalf(row: SealedRow, name: string, { halves }: VaultKeys): Promise<Sealed> {
  const opened = await halves.open({ wrappedPrivate: row.sealed, privateVersion: versionOf(row) }, name)
  const { wrappedPrivate, privateVersion } = await halves.seal(opened, name).catch((error: unknown) => {
    throw isKeyless(error) ? new NotReady('a key is not here', { cause: error }) : error
  })
  return { sealed: wrappedPrivate, keyVersion: privateVersion }
}

const isKeyless = (error: unknown) => error instanceof Fault && error.code === 'key_unavailable'

function versionOf({ version }: SealedRow): number {
  assert(version !== null, 'sealed bytes name the version of their key')
  return version
}

function factOf({ facts }: SealedRow, name: string): string {
  const fact = facts[name]
  assert(typeof fact === 'string', 'the catalogue names what a column needs')
  return fact
}

/** This process can't seal under the wanted version: it hasn't read that version yet, or has read a later one already. */
export class NotReady extends Error {
  override name = 'NotReady'
}

export interface SealedAnew {
  rows: Resealed[]
  failed: number
  /** The last row that can't be opened, as table and key. */
  failedRow: string | null
  /** The error with which that row failed. */
  failure: unknown
}

/**
 * Seals the rows of a set under `version`. Rows that can't be opened are counted. Throws `NotReady` if this process can't
 * seal under that version now.
 */
export async function sealSetAnew(
  name: SealedName,
  { rows, version }: { rows: readonly SealedRow[]; version: number },
  keys: VaultKeys,
): Promise<SealedAnew> {
  const anew: SealedAnew = { rows: [], failed: 0, failedRow: null, failure: undefined }
  for (const row of rows) {
    const fresh = await attempt(name, row, keys)
    if (fresh instanceof Fault) {
      if (!isRowsFault(name, row, fresh, keys)) throw new NotReady('a key is not here', { cause: fresh })
      anew.failed += 1
      anew.failedRow = `${SEALED_COLUMNS[name].table} ${row.key}`
      anew.failure = fresh
      continue
    }
    if (fresh.keyVersion !== version) throw new NotReady('another version seals here')
    anew.rows.push({ key: row.key, former: row.sealed, fresh: fresh.sealed })
  }
  return anew
}

/**
 * The faults of bytes that don't open, and of a key that isn't here. Other faults come from the store, an HSM or KMS.
 */
const OF_KEY_OR_BYTES: readonly FaultCode[] = ['defect', 'key_unavailable']

/** The row sealed anew, or the fault by which it can't be. */
async function attempt(name: SealedName, row: SealedRow, keys: VaultKeys): Promise<Sealed | Fault> {
  try {
    return await SEAL_ANEW[name](row, keys)
  } catch (error) {
    if (error instanceof Fault && OF_KEY_OR_BYTES.includes(error.code)) return error
    throw error
  }
}

/** True if the row can't be opened; false if this process lacks the key to seal it. */
function isRowsFault(name: SealedName, { version }: SealedRow, { code }: Fault, { ring }: VaultKeys): boolean {
  const { purpose } = SEALED_COLUMNS[name]
  // `sealHalf` throws `NotReady` itself if this process can't seal.
  if (code !== 'key_unavailable' || purpose === 'private-half') return true
  return !ring.names().includes(`${purpose}/${version}`)
}
