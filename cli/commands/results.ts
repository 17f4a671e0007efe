// `tokenmill results`: prints a client's results as they arrive, or publishes stored results again.
import { join } from 'node:path'
import { readClientFile } from '../../producers/client/client-file.ts'
import { connect } from '../../producers/client.ts'
import { resultsQueue } from '../../src/job/catalogue.ts'
import { untilSignal } from '../../src/lifetime.ts'
import type { Queues } from '../../src/queue/engine.ts'
import * as outbox from '../../src/store/job/outbox.ts'
import type { JsonOption } from '../command.ts'
import { openCommandStore, openQueues, openSession, withSession } from '../open/open.ts'
import { openProducer } from '../process/producer.ts'
import { print, printJsonLine, say, type Terminal } from '../terminal.ts'

/** So many rows of the outbox are read at once; and after so long it is said that this goes on, in ms. */
const PAGE = 20_000
const TELL_MS = 5_000

interface Options extends JsonOption {
  client?: string
  replyTo?: string
}

export async function follow(terminal: Terminal, options: Options): Promise<void> {
  const session = openSession(terminal)
  try {
    const { queues, credentials } = await openProducer(session, options.client, [])
    const client = await connect({
      queues,
      credentials,
      log: session.log,
      ...(options.replyTo === undefined ? {} : { replyTo: options.replyTo }),
    })
    session.lifetime.onClose('client', () => client.close())
    client.results(async delivery => {
      // A result is acknowledged only when the reader of standard output has taken its line.
      await printJsonLine(terminal, JSON.stringify(delivery))
    })
    const ended = untilSignal()
    say(terminal, 'tokenmill: following results; Ctrl-C ends it.')
    await ended
  } finally {
    await session.lifetime.close()
  }
}

export function replay(terminal: Terminal, options: Options & { since: number }): Promise<void> {
  return withSession(terminal, async session => {
    const { database, store } = await openCommandStore(session)
    const queues = await openQueues(session, database)
    const file = await readClientFile(options.client ?? join(session.config.dataDir, 'dev-client.json'))
    const wanted = { clientId: file.client_id, replyTo: options.replyTo ?? null, since: options.since }
    // A result that failed on its queue, as by an unknown key, is still there, and its id would be taken.
    await removeFailed(queues, resultsQueue(wanted.clientId, wanted.replyTo), options.since)
    let replayed = 0
    let told = performance.now()
    for (let after: number | undefined = 0; after !== undefined; ) {
      const page = await outbox.replay(store, wanted, { after, page: PAGE })
      replayed += page.replayed
      after = page.next
      if (after === undefined || performance.now() - told < TELL_MS) continue
      told = performance.now()
      say(terminal, `tokenmill: ${replayed} results so far; the outbox is still being read`)
    }
    print(terminal, options, { replayed }, `${replayed} results will be published again by the workers`)
  })
}

/** Removes those that came since `since` (ms since the epoch). */
async function removeFailed(queues: Queues, queue: string, since: number): Promise<void> {
  for (let start = 0; ; ) {
    const failed = await queues.list(queue, ['failed'], start, start + 99)
    if (failed.length === 0) return
    for (const { id, timestamp } of failed) if (timestamp < since || !(await queues.remove(queue, id))) start += 1
  }
}
