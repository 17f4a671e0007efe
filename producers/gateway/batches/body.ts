// The body of a batch as a stream. It is counted, limited in size and in the pause between two pieces, and hashed with
// a key while it passes. Rows are read elsewhere.
import { createHmac } from 'node:crypto'
import { failureFor } from '../../../src/job/problem.ts'
import type { CurrentKey } from '../../../src/vault/ring/held-keys.ts'
import { Declined } from '../error-bodies.ts'

export interface Metered {
  bytes: AsyncIterable<Buffer>
  /**
   * The keyed hashes of `about` and of all bytes, by the version of their key. Call it once, after the last byte has passed.
   */
  macs(): ReadonlyMap<number, Buffer>
}

export interface Meter {
  bytesMax: number
  /** The longest pause between two pieces, ms. */
  idleMsMax: number
  /**
   * Every version of the key of bodies. The body holds card numbers. These are so few that a plain hash would reveal them
   * (PCI DSS 3.5.1.1), and so would a keyed hash whose key is stored beside it. The same body may have come before, under
   * another version than the one in use.
   */
  keys: readonly CurrentKey[]
}

/** The stream of a request. */
export interface Source extends AsyncIterable<Buffer> {
  destroy(error?: Error): unknown
}

/**
 * Wraps the body. The stream throws `Declined` if the body is too long, or if its sender has stopped sending or hung
 * up.
 */
export function meter(source: Source, about: string, { bytesMax, idleMsMax, keys }: Meter): Metered {
  const macs = keys.map(({ key, version }) => {
    return { version, mac: createHmac('sha256', key).update(about).update('\n') }
  })
  async function* pass(): AsyncGenerator<Buffer> {
    const pieces = source[Symbol.asyncIterator]()
    let bytes = 0
    for (;;) {
      const timer = setTimeout(() => source.destroy(new Error('the body stopped coming')), idleMsMax)
      const next = await pieces
        .next()
        .catch(() => undefined)
        .finally(() => clearTimeout(timer))
      if (next === undefined) throw new Declined(failureFor('body_broken', 'body'))
      if (next.done) return
      bytes += next.value.length
      if (bytes > bytesMax) throw new Declined(failureFor('body_too_large', 'body'))
      for (const { mac } of macs) mac.update(next.value)
      yield next.value
    }
  }
  return { bytes: pass(), macs: () => new Map(macs.map(({ version, mac }) => [version, mac.digest()])) }
}
