// A migration whose every job is in the queue twice, under two ids, as a repeated send, a lost acknowledgement or an
// attacker could cause.
import { PassThrough } from 'node:stream'
import { expect } from 'vitest'
import { migrate } from '../../producers/migrate/run.ts'
import { systemClock } from '../../src/clock.ts'
import type { Queues } from '../../src/queue/engine.ts'
import type { Chaos } from './bundle.ts'
import { type CardFile, CHUNK } from './migration.ts'

/** Returns the run's summary, with the names of the command's summary. */
export async function deliverTwice(
  { installation }: Chaos,
  { path, scope, rows }: CardFile,
): Promise<Record<string, unknown>> {
  let doubled = 0
  const queues: Queues = {
    ...installation.queues,
    async add(queue, job) {
      const copy = { ...job, id: `copy_${job.id}` }
      // The copy comes first for every second job.
      for (const one of doubled++ % 2 === 0 ? [job, copy] : [copy, job]) await installation.queues.add(queue, one)
    },
  }
  const { credentials, session } = installation
  const decided = {
    recordKind: 'token-create',
    onConflict: 'update',
    onExpired: 'import',
    ignoreUnknown: false,
  } as const
  const { counts, ...summary } = await migrate(
    { ...decided, file: path, scope, echo: [], dryRun: false, chunk: CHUNK, inFlight: 16, again: false },
    {
      queues,
      credentials,
      log: session.log,
      clock: systemClock,
      stream: new PassThrough() as unknown as NodeJS.WriteStream,
      stop: new AbortController().signal,
    },
  )
  expect(doubled).toBe(rows / CHUNK)
  return { ...summary, ...Object.fromEntries(Object.entries(counts).map(([name, n]) => [name.toLowerCase(), n])) }
}
