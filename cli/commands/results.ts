// `tokenmill results`: prints a client's results as they arrive, or publishes stored results again.
import { once } from 'node:events'
import { join } from 'node:path'
import { connect } from '../../producers/client.ts'
import { readClientFile } from '../../producers/client-file.ts'
import { untilSignal } from '../../src/lifetime.ts'
import * as outbox from '../../src/store/job/outbox.ts'
import type { JsonOption } from '../command.ts'
import { openCommandStore, openSession, withSession } from '../open/open.ts'
import { openProducer } from '../open/producer.ts'
import { print, say, type Terminal } from '../terminal.ts'

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
      if (!terminal.stdout.write(`${JSON.stringify(delivery)}\n`)) await once(terminal.stdout, 'drain')
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
    const { store } = await openCommandStore(session)
    const file = await readClientFile(options.client ?? join(session.config.dataDir, 'dev-client.json'))
    const replayed = await outbox.replay(store, file.client_id, options.replyTo ?? null, options.since)
    print(terminal, options, { replayed }, `${replayed} results will be published again by the workers`)
  })
}
