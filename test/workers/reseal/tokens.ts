// Tokens for the tests of re-encryption: stored directly, because thousands of jobs would take longer than what is
// tested.
import { Secret } from '../../../src/secret.ts'
import type { Db } from '../../../src/store/pool.ts'
import * as tokens from '../../../src/store/token/tokens.ts'
import { SEALS } from '../../../src/vault/ring/held-keys.ts'
import type { KeyRing, LiveRing } from '../../../src/vault/ring/key-ring.ts'
import { timeOf, tokenIdAt } from '../../../workers/card/seal-row.ts'
import { testPan } from '../../support/test-pan.ts'

/** Inserts `count` tokens of the test cards from `from` on. Returns their ids. */
export async function insertTokens(
  db: Db,
  ring: LiveRing,
  tokenScope: string,
  count: number,
  from = 0,
): Promise<string[]> {
  const rows: tokens.StoredToken[] = []
  for (let index = 0; index < count; index++) {
    if (index % (SEALS.first / 2) === 0) await ring.reserve('seal')
    rows.push(rowOf(ring, tokenScope, from + index))
  }
  await tokens.insertAll(db, rows)
  return rows.map(({ tokenId }) => tokenId)
}

function rowOf(ring: KeyRing, tokenScope: string, index: number): tokens.StoredToken {
  const pan = new Secret(testPan(index))
  const tokenId = tokenIdAt(timeOf(Date.now()), index.toString(16).padStart(32, '0'), 13)
  const { sealed, keyVersion } = ring.seal(pan, tokenId, tokenScope)
  const link = ring.fingerprints(pan, tokenScope)
  const now = Date.now()
  return {
    tokenId,
    tokenScope,
    status: 'ACTIVE',
    suspendedReason: null,
    tokenType: 'REUSE',
    sealed,
    cards: link.kept,
    link,
    sealVersion: keyVersion,
    bin: '41111100',
    lastFour: testPan(index).slice(-4),
    expiryMonth: 12,
    expiryYear: 2031,
    cardHolderName: null,
    cardHolderEmail: null,
    cardSequence: null,
    startMonth: null,
    startYear: null,
    brand: 'VISA',
    cardBrand: null,
    binRange: null,
    analyticsToken: ring.analyticsToken(pan, tokenScope),
    thirdParty: null,
    tokenExpiryDate: null,
    createdAt: now,
    updatedAt: now,
    version: 1,
    lastReceipt: null,
    mark: null,
    givenAt: null,
  }
}

/** Opens every sealed token. Returns how many, by the version of their key. Throws if one doesn't open. */
export async function openAll(db: Db, ring: KeyRing): Promise<Record<number, number>> {
  const { rows } = await db.query<{ token_id: string; token_scope: string; sealed: Buffer; seal_version: number }>({
    text: 'select token_id, token_scope, sealed, seal_version from tokenmill.token where sealed is not null',
  })
  const counts: Record<number, number> = {}
  for (const row of rows) {
    ring.open(row.sealed, row.seal_version, row.token_id, row.token_scope)
    counts[row.seal_version] = (counts[row.seal_version] ?? 0) + 1
  }
  return counts
}
