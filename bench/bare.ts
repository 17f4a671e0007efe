// Case (d), the reference of (a): makes fingerprints, encrypts the cards and writes their rows directly into the same
// PostgreSQL, in chunks. There is no file, no queue, no receipt and no results file. This file and those in bench/bare are a
// copy of what commit 55c0cab did, so that the reference stays the same while the product changes: they import nothing of
// the product, and nobody mends or speeds them up.
import { randomBytes } from 'node:crypto'
import type { Installation } from '../test/support/installation.ts'
import { detectBrand, panOf, shownBin } from './bare/cards.ts'
import { type BareToken, makeTable, openPool, writeChunk } from './bare/rows.ts'
import { NONCE_BYTES, openKeys, timeOf, tokenIdAt } from './bare/seal.ts'
import { type ProcessorTime, watchProcessor } from './single/processor.ts'

const CHUNK = 500
/** Chunks in progress at once: enough that neither this process nor PostgreSQL waits for the other. */
const IN_FLIGHT = 4

export interface BareRun {
  rows: number
  seconds: number
  perSecond: number
  /** Per card; `bench` is the loop. */
  processor: ProcessorTime
}

/** Makes its table anew in the installation's database. */
export async function runBare(installation: Installation, rows: number): Promise<BareRun> {
  const { vault, scope } = installation
  const pool = openPool(vault.database.url, IN_FLIGHT)
  await makeTable(pool)
  const keys = openKeys()
  const pans = Array.from({ length: rows }, (_, index) => panOf(index, 1))
  const processor = await watchProcessor(installation)
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
      const made = chunk.map((pan, index): BareToken => {
        const tokenId = tokenIdAt(time, random, index * 20)
        const nonce = nonces.subarray(index * NONCE_BYTES, (index + 1) * NONCE_BYTES)
        return {
          tokenId,
          tokenScope: scope,
          fingerprint: keys.fingerprint(pan, scope),
          sealed: keys.seal(pan, tokenId, scope, nonce),
          bin: shownBin(pan),
          lastFour: pan.slice(-4),
          brand: detectBrand(pan) ?? null,
          createdAt: now,
        }
      })
      await writeChunk(pool, made)
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, work))
  const seconds = (performance.now() - began) / 1000
  const used = processor(rows)
  await pool.end()
  return { rows, seconds, perSecond: rows / seconds, processor: used }
}
