// Copies a file into a table by `COPY … FROM STDIN`, as fast as the server can: the reference with which `ingest` is
// compared. The driver has the protocol's messages but no function for COPY.
import { createReadStream } from 'node:fs'
import pg from 'pg'

interface Wire {
  query(text: string): void
  sendCopyFromChunk(chunk: Buffer): void
  endCopyFrom(): void
  stream: NodeJS.WritableStream & { writableNeedDrain: boolean }
}

/** Returns how many seconds the statement took. */
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
