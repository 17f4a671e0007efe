// Extends the OpenPGP library, once, at its first use: padded compression, and the names of ciphers that it lacks. It
// replaces a method of the library's own packet class; package.json fixes the exact version, and tests read real files
// of gpg and sq.
import { createInflate, createInflateRaw, type Inflate, type InflateRaw, inflateRawSync, inflateSync } from 'node:zlib'
import { CompressedDataPacket, type Config, enums } from 'openpgp'

/** RFC 5581. The library reports a cipher with a name as unsupported, and one without a name as a wrong number. */
Object.assign(enums.symmetric, { camellia128: 11, camellia192: 12, camellia256: 13 })

interface Pieces {
  getReader(): Pick<ReadableStreamDefaultReader<Uint8Array>, 'read' | 'cancel'>
}

interface CompressedPacket {
  algorithm: number
  compressed: Uint8Array | Pieces
  decompress(config: Config): Promise<void>
}

const INFLATE = new Map<number, { whole: typeof inflateSync; stream: () => Inflate | InflateRaw }>([
  [enums.compression.zip, { whole: inflateRawSync, stream: createInflateRaw }],
  [enums.compression.zlib, { whole: inflateSync, stream: createInflate }],
])

// Sequoia hides the length of a message in a compressed packet whose deflate data end before the packet does. The
// library's own decompressor refuses what follows as junk; zlib's way, and gpg's, is to end where the data end.
const packet = CompressedDataPacket.prototype as unknown as CompressedPacket
const decompress = packet.decompress
packet.decompress = async function (this: CompressedPacket, config: Config) {
  const inflate = INFLATE.get(this.algorithm)
  if (inflate) {
    const { compressed } = this
    this.compressed =
      compressed instanceof ReadableStream
        ? ReadableStream.from<Uint8Array>(inflatePieces(compressed, inflate.stream()))
        : inflate.whole(await wholeOf(compressed), boundOf(config))
    this.algorithm = enums.compression.uncompressed
  }
  return decompress.call(this, config)
}

function boundOf({ maxDecompressedMessageSize: most }: Config): { maxOutputLength?: number } {
  return Number.isFinite(most) ? { maxOutputLength: most } : {}
}

async function wholeOf(compressed: Uint8Array | Pieces): Promise<Uint8Array> {
  if (compressed instanceof Uint8Array) return compressed
  const pieces: Uint8Array[] = []
  const reader = compressed.getReader()
  for (let next = await reader.read(); !next.done; next = await reader.read()) pieces.push(next.value)
  return Buffer.concat(pieces)
}

/** Ends without an error only after `source` has: its own end is where the integrity of a message shows. */
async function* inflatePieces(source: Pieces, inflater: Inflate | InflateRaw): AsyncGenerator<Uint8Array> {
  const reader = source.getReader()
  const fed = feed(reader, inflater)
  fed.catch(error => inflater.destroy(error))
  // What is wrong arrives at the loop, or, once the data have ended, with `fed`.
  inflater.on('error', () => {})
  try {
    yield* inflater as AsyncIterable<Uint8Array>
    await fed
  } finally {
    inflater.destroy()
    await reader.cancel().catch(() => {})
  }
}

async function feed(reader: ReturnType<Pieces['getReader']>, inflater: Inflate | InflateRaw): Promise<void> {
  let isThrough = false
  const through = new Promise<void>(resolve => {
    for (const event of ['end', 'close']) inflater.once(event, resolve)
  }).then(() => {
    isThrough = true
  })
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    // Padding: read for the integrity of the message, and for nothing else.
    if (isThrough || inflater.write(next.value)) continue
    await Promise.race([through, new Promise<void>(resolve => inflater.once('drain', resolve))])
  }
  inflater.end()
}
