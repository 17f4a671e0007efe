// Writes new cards into the vault's tables with the product's code, in chunks and without files and queues: for benches of a
// store that grows. It isn't the bare loop, which stays as it was (bench/bare.ts).

import { randomBytes } from 'node:crypto'
import { panOf } from '../../bin/sample/pan.ts'
import { openRingNow } from '../../cli/open/key-ring.ts'
import { Secret } from '../../src/secret.ts'
import { openStore } from '../../src/store/pool.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { detectBrand, shownBin } from '../../src/token/brand.ts'
import type { Installation } from '../../test/support/installation.ts'
import { timeOf, tokenIdAt } from '../../workers/card/seal-row.ts'

const CHUNK = 500
const NONCE_BYTES = 12
/** Chunks in progress at once: enough that neither this process nor PostgreSQL waits for the other. */
const IN_FLIGHT = 4

/** `from`: the first of the cards. */
export async function insertCards(
  installation: Installation,
  rows: number,
  from: number,
): Promise<{ rows: number; seconds: number; perSecond: number }> {
  const { vault, scope, session } = installation
  const store = openStore(vault.database.url, { log: session.log, connectionsMax: IN_FLIGHT })
  const pans = Array.from({ length: rows }, (_, index) => new Secret(panOf(from + index, 1)))
  // A ring whose seals aren't counted, because no other process uses its keys.
  const ring = await openRingNow(vault.keks, vault.store, vault.lives)
  const began = performance.now()
  let next = 0
  const work = async () => {
    for (let start = next; start < rows; start = next) {
      next += CHUNK
      const chunk = pans.slice(start, start + CHUNK)
      const nonces = randomBytes(NONCE_BYTES * chunk.length)
      const random = randomBytes(10 * chunk.length).toString('hex')
      const now = Date.now()
      const time = timeOf(now)
      const made = chunk.map((pan, index): StoredToken => {
        const digits = pan.reveal()
        const tokenId = tokenIdAt(time, random, index * 20)
        const { sealed, keyVersion } = ring.seal(
          pan,
          tokenId,
          scope,
          nonces.subarray(index * NONCE_BYTES, (index + 1) * NONCE_BYTES),
        )
        const link = ring.fingerprints(pan, scope)
        return {
          tokenId,
          tokenScope: scope,
          status: 'ACTIVE',
          suspendedReason: null,
          tokenType: 'REUSE',
          cards: link.kept,
          link,
          sealed,
          sealVersion: keyVersion,
          bin: shownBin(digits, 8),
          lastFour: digits.slice(-4),
          expiryMonth: 12,
          expiryYear: 2030,
          cardHolderName: 'ANNA MEYER',
          cardHolderEmail: null,
          cardSequence: null,
          startMonth: null,
          startYear: null,
          brand: detectBrand(digits) ?? null,
          cardBrand: null,
          binRange: null,
          analyticsToken: null,
          thirdParty: null,
          tokenExpiryDate: null,
          createdAt: now,
          updatedAt: now,
          version: 1,
          lastReceipt: null,
          mark: null,
          givenAt: null,
        }
      })
      await tokens.findByCards(
        store,
        made.flatMap(row => row.cards),
      )
      await store.transaction(db => tokens.insertAll(db, made))
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, work))
  const seconds = (performance.now() - began) / 1000
  await store.close()
  return { rows, seconds, perSecond: rows / seconds }
}
