// Which readers of results listen now, and whether they know the announced signing key. A reader that isn't connected
// can't be seen, nor whether one of several readers of the same queue knows the key.
import { resultsQueue } from '../../../src/job/catalogue.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import * as clients from '../../../src/store/access/clients.ts'
import * as signingKeyReaders from '../../../src/store/access/signing-key-readers.ts'
import * as replyQueues from '../../../src/store/job/reply-queues.ts'
import type { Db } from '../../../src/store/pool.ts'

export interface Readers {
  /** Results queues with one listener, which has said that it knows the key. */
  known: string[]
  /** Results queues with a listener that may not know the key. */
  unsure: string[]
  /** False if this user may not see who listens. */
  isSeen: boolean
}

/** Gateways, schedulers and workers are left out: they have the store and read unknown keys there. */
export async function findReaders(db: Db, queues: Pick<Queues, 'workersOfAll'>, kid: string): Promise<Readers> {
  const outside = (await clients.list(db)).filter(({ system }) => !system).map(({ clientId }) => clientId)
  const named = (await replyQueues.list(db)).filter(({ clientId }) => outside.includes(clientId))
  const names = [
    ...outside.map(clientId => resultsQueue(clientId)),
    ...named.map(({ clientId, replyTo }) => resultsQueue(clientId, replyTo)),
  ]
  const listening = names.length > 0 ? await queues.workersOfAll(names) : new Map<string, number>()
  const said = await signingKeyReaders.list(db, kid)
  const acknowledged = new Set(said.map(({ clientId, replyTo }) => resultsQueue(clientId, replyTo)))
  const live = names.filter(name => (listening?.get(name) ?? 0) > 0)
  const isKnown = (name: string) => acknowledged.has(name) && listening?.get(name) === 1
  return {
    known: live.filter(isKnown),
    unsure: live.filter(name => !isKnown(name)),
    isSeen: listening !== undefined,
  }
}

/** The answer for a person, with what can't be known. */
export function inWords({ known, unsure, isSeen }: Readers): string[] {
  const away =
    'Readers that are not connected cannot be asked. One with the client library learns the key from the next result.'
  if (!isSeen) return ['This user of the queue server may not see which readers are connected.', away]
  return [
    `${known.length} of ${known.length + unsure.length} connected readers of results know the key.`,
    ...unsure.map(name => `Perhaps not: ${name}`),
    away,
  ]
}
