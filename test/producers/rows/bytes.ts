// Byte streams for tests, cut at chosen places.

/** The bytes in pieces of the given sizes, repeated to the end. */
export async function* inPieces(bytes: Buffer | string, sizes: readonly number[] = [65_536]): AsyncGenerator<Buffer> {
  const whole = Buffer.from(bytes)
  let turn = 0
  for (let at = 0; at < whole.length; ) {
    const size = Math.max(1, sizes[turn++ % sizes.length] ?? 1)
    yield whole.subarray(at, at + size)
    at += size
  }
}

export async function collect<T>(parts: AsyncIterable<readonly T[]>): Promise<T[]> {
  const all: T[] = []
  for await (const part of parts) all.push(...part)
  return all
}

export async function concat(bytes: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = []
  for await (const piece of bytes) all.push(piece)
  return Buffer.concat(all)
}
