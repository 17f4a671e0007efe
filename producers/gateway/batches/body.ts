// The body of a batch as a stream: counted, bounded in size and in the time between two pieces, and hashed under a key
// while it passes. This file reads no rows.
import { createHmac, hkdfSync, type KeyObject } from 'node:crypto'
import { Declined, declineFor } from '../server/error-bodies.ts'

export interface Metered {
  bytes: AsyncIterable<Buffer>
  /** The keyed hash of `about` and all bytes; complete when all bytes have passed. */
  mac(): Buffer
}

export interface Meter {
  bytesMax: number
  /** The longest pause between two pieces, ms. */
  idleMsMax: number
  key: Buffer
}

/** The stream of a request. */
export interface Source extends AsyncIterable<Buffer> {
  destroy(error?: Error): unknown
}

/**
 * Derives a key that only gateways have. The body of a batch holds card numbers, of which there are so few that a plain
 * hash would reveal them (PCI DSS 3.5.1.1), as would a hash under a key that is stored beside it.
 */
export function bodyKeyOf(hashKey: KeyObject): Buffer {
  return Buffer.from(hkdfSync('sha256', hashKey, '', 'tokenmill batch body', 32))
}

/** Throws `Declined` for a body that is too long, or whose sender has gone silent or has hung up. */
export function meter(source: Source, about: string, { bytesMax, idleMsMax, key }: Meter): Metered {
  const mac = createHmac('sha256', key).update(about).update('\n')
  async function* pass(): AsyncGenerator<Buffer> {
    const pieces = source[Symbol.asyncIterator]()
    let bytes = 0
    for (;;) {
      const timer = setTimeout(() => source.destroy(new Error('the body stopped coming')), idleMsMax)
      const next = await pieces
        .next()
        .catch(() => undefined)
        .finally(() => clearTimeout(timer))
      if (next === undefined) throw new Declined(declineFor('body_broken', 'body'))
      if (next.done) return
      bytes += next.value.length
      if (bytes > bytesMax) throw new Declined(declineFor('body_too_large', 'body'))
      mac.update(next.value)
      yield next.value
    }
  }
  return { bytes: pass(), mac: () => mac.digest() }
}
