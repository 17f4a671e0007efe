// A batch's body as a stream: counted, bounded in size and in the time between two pieces, and hashed under a key while
// it passes. It reads no rows.
import { createHmac, hkdfSync, type KeyObject } from 'node:crypto'
import { Declined, declineFor } from '../server/error-bodies.ts'

export interface Metered {
  bytes: AsyncIterable<Buffer>
  /** Keyed hash of `about` and all bytes; once they have passed. */
  mac(): Buffer
}

export interface Meter {
  bytesMax: number
  /** Between two pieces, ms. */
  idleMsMax: number
  key: Buffer
}

/** The stream of a request. */
export interface Source extends AsyncIterable<Buffer> {
  destroy(error?: Error): unknown
}

/**
 * A key that only gateways have. The body of a batch holds card numbers, of which there are so few that a plain hash
 * would give them away (PCI DSS 3.5.1.1), and so would one under a key that lies beside it in the store.
 */
export function bodyKeyOf(hashKey: KeyObject): Buffer {
  return Buffer.from(hkdfSync('sha256', hashKey, '', 'tokenmill batch body', 32))
}

/** Throws `Declined` for a body that is too long, or whose sender has gone silent or away. */
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
