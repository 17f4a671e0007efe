// `COPY … FROM STDIN` of a file, as fast as the server takes it: the limit that `ingest` is held against. The driver has
// the protocol's messages and no function for them.
import { createReadStream } from 'node:fs'
import pg from 'pg'

interface Wire {
  query(text: string): void
  sendCopyFromChunk(chunk: Buffer): void
  endCopyFrom(): void
  stream: NodeJS.WritableStream & { writableNeedDrain: boolean }
}

/** Seconds that it took, from the statement to its end. */
export async function copyFile(url: string, statement: string, file: string): Promise<number> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const began = performance.now()
  await new Promise<void>((resolve, reject) => {
    const feed = async (wire: Wire) => {
      for await (const chunk of createReadStream(file, { highWaterMark: 256 * 1024 })) {
        wire.sendCopyFromChunk(chunk as Buffer)
        if (wire.stream.writableNeedDrain) await new Promise(drained => wire.stream.once('drain', drained))
      }
      wire.endCopyFrom()
    }
    const copying = {
      submit: (wire: Wire) => wire.query(statement),
      handleCopyInResponse: (wire: Wire) => feed(wire).catch(reject),
      handleCommandComplete: () => {},
      handleReadyForQuery: () => resolve(),
      handleError: reject,
    }
    client.query(copying as unknown as pg.Submittable)
  })
  const seconds = (performance.now() - began) / 1000
  await client.end()
  return seconds
}
