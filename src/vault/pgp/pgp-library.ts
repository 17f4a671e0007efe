// Extends the OpenPGP library, once, at its first use: padded compression, and the names of ciphers that it lacks. It
// replaces a method of the library's packet class. package.json pins the exact version, and tests read real files of
// gpg and sq.
import { createInflate, createInflateRaw, type Inflate, type InflateRaw, inflateRawSync, inflateSync } from 'node:zlib'
import { CompressedDataPacket, type Config, enums } from 'openpgp'

/** RFC 5581. The library reports a cipher that has a name as unsupported, and one without a name as a wrong number. */
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

// Sequoia hides the length of a message by padding: the compressed packet goes on after the deflate data have ended.
// The library's own decompressor refuses those bytes as junk; zlib and gpg stop where the deflate data end.
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

/**
 * Decompresses `source`. It ends without an error only after `source` has ended, because the integrity of the message
 * is checked at the end of `source`.
 */
async function* inflatePieces(source: Pieces, inflater: Inflate | InflateRaw): AsyncGenerator<Uint8Array> {
  const reader = source.getReader()
  const fed = feed(reader, inflater)
  fed.catch(error => inflater.destroy(error))
  // Errors surface in the loop, or in `fed` once the data have ended.
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
    // Padding is read only because the integrity check covers it.
    if (isThrough || inflater.write(next.value)) continue
    await Promise.race([through, new Promise<void>(resolve => inflater.once('drain', resolve))])
  }
  inflater.end()
}
