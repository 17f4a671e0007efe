// node list.mjs CARDS.ndjson: keeps the cards of a file as tokens, and goes on where it was stopped. A line:
// {"reference":"customer-1","card":{"cardNumber":"…","expiryMonth":12,"expiryYear":2031}}.
// Beside the file: CARDS.ndjson.results, a line for each card, and CARDS.ndjson.checkpoint, how far it has come.
import { createHash } from 'node:crypto'
import { createReadStream, existsSync, truncateSync, writeFileSync } from 'node:fs'
import { appendFile, readFile, rename } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { pipeline } from 'node:stream/promises'
import { open } from './client.mjs'

const [file] = process.argv.slice(2)
if (!file) {
  console.error('usage: node list.mjs CARDS.ndjson')
  process.exit(64)
}
const [results, marks] = [`${file}.results`, `${file}.checkpoint`]

async function* records() {
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY }))
    if (line !== '') yield JSON.parse(line)
}

/** The same file is the same list: its digest names the batch. */
async function nameOf() {
  const digest = createHash('sha256')
  await pipeline(createReadStream(file), digest)
  return `list-${digest.digest('hex').slice(0, 32)}`
}

// What was written after the last checkpoint is written again, so it is taken away.
const stored = existsSync(marks) ? JSON.parse(await readFile(marks, 'utf8')) : { bytes: 0 }
if (!existsSync(results)) writeFileSync(results, '')
truncateSync(results, stored.bytes)
let { bytes } = stored
let lines = ''
const counts = {}

const client = await open('list')
const batch = client.batch(
  {
    kind: 'token-create',
    batchId: await nameOf(),
    checkpoint: stored.checkpoint,
    async onCheckpoint(checkpoint) {
      await appendFile(results, lines)
      bytes += Buffer.byteLength(lines)
      lines = ''
      writeFileSync(`${marks}.new`, JSON.stringify({ bytes, checkpoint }))
      await rename(`${marks}.new`, marks)
      console.error(`${checkpoint.records} cards`)
    },
  },
  records(),
)
for await (const { record, result } of batch) {
  const { outcome, reuse_token: token, reason } = result
  counts[outcome] = (counts[outcome] ?? 0) + 1
  lines += `${JSON.stringify({ reference: record.reference, outcome, token, reason })}\n`
}
await client.close()
console.log(`done: ${JSON.stringify(counts)}; ${results}`)
