// Cases of lists that a program sends by the client library: (q) over the queues, (r) over HTTP. Both are compared with (a) of
// the same cards.
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { writeSample } from '../../bin/sample/cards.ts'
import { connect } from '../../clients/node/connect.ts'
import { connectHttp } from '../../clients/node/connect-http.ts'
import type { BatchOptions, BatchRecord, Ended } from '../../producers/batch/interface.ts'
import type { Installation } from '../../test/support/installation.ts'
import type { Line } from '../line.ts'
import { runMigrate, startBulkWorkers } from '../migrate.ts'
import { startGateway } from '../put.ts'
import { watchProcessor } from '../single/processor.ts'
import { type Asked, fileOf, onItsOwn } from './asked.ts'
import { besides } from './files.ts'

type Kind = 'token-create'
interface Opened {
  send(options: BatchOptions<Kind>, records: AsyncIterable<BatchRecord<Kind>>): AsyncIterable<Ended<BatchRecord<Kind>>>
  close(): unknown
}

/** (q). Redis only. */
export async function listOverQueues(asked: Asked): Promise<Line[]> {
  if (asked.engine !== 'redis') return []
  return sendList(asked, 'q: client.batch over the queues', async ({ env, clientFile }) => {
    const { REDIS_URL: redisUrl = '', TOKENMILL_PREFIX: prefix } = env
    const client = await connect({ redisUrl, clientFile, replyTo: 'list', ...(prefix && { prefix }) })
    return { send: client.batch, close: client.close }
  })
}

/** (r). */
export function listOverHttp(asked: Asked): Promise<Line[]> {
  return sendList(asked, 'r: client.batch over HTTP', async installation => {
    const baseUrl = await startGateway(installation)
    const client = await connectHttp({ baseUrl, clientFile: installation.clientFile })
    return { send: client.batch, close: client.close }
  })
}

async function sendList(
  asked: Asked,
  name: string,
  open: (installation: Installation) => Promise<Opened>,
): Promise<Line[]> {
  const { engine, rows } = asked
  const file = fileOf(asked, `list-${name.charAt(0)}.csv`)
  await writeSample(file, { rows, seed: 1, now: Date.now() })
  const migrated = await onItsOwn(asked, installation => runMigrate(installation, file))
  const line = await onItsOwn(asked, async installation => {
    await startBulkWorkers(installation)
    const { send, close } = await open(installation)
    const processor = await watchProcessor(installation)
    const began = performance.now()
    let ended = 0
    for await (const _ of send({ kind: 'token-create', batchId: 'list' }, recordsOf(file))) ended += 1
    if (ended !== rows) throw new Error(`${ended} of ${rows} records have a result`)
    const perSecond = (rows * 1000) / (performance.now() - began)
    await close()
    return { case: name, engine, rows, perSecond, processor: processor(rows) }
  })
  return [{ ...line, ...besides('a: migrate, whole file', line.perSecond, migrated) }]
}

/** The sample's fields hold no commas. */
async function* recordsOf(file: string): AsyncGenerator<BatchRecord<Kind>> {
  let head: string[] | undefined
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const cells = line.split(',')
    if (!head) head = cells
    else yield recordOf(Object.fromEntries(head.map((name, place) => [name, cells[place] ?? ''])))
  }
}

function recordOf({ reference, card_number, expiry_month, expiry_year, cardholder_name }: Record<string, string>) {
  return {
    ...(reference && { reference }),
    card: {
      cardNumber: card_number ?? '',
      ...(expiry_month && { expiryMonth: expiry_month, expiryYear: expiry_year ?? '' }),
      ...(cardholder_name && { cardholderName: cardholder_name }),
    },
  }
}
