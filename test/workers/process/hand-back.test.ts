// The jobs of a process that ended are handed back once, as soon as the queue server takes them.
import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { Fault } from '../../../src/errors.ts'
import { openLog } from '../../../src/log.ts'
import { type EndedProcess, openHandBack } from '../../../workers/process/hand-back.ts'
import { until } from '../../support/until.ts'

/** A queue server that is away for the first `failures` calls. */
function serverAwayFor(failures: number, againMs: readonly number[] = []) {
  const calls: string[] = []
  const seen = { connections: 0, calls }
  const handBack = async (queue: string, processId: string) => {
    calls.push(`${processId} ${queue}`)
    return 1
  }
  const handing = openHandBack({
    log: openLog('silent'),
    retryMs: 1,
    againMs,
    async withQueues(work) {
      seen.connections += 1
      await pause(0)
      if (seen.connections <= failures) throw new Fault('queue_away')
      return work({ handBack })
    },
  })
  return { seen, handing }
}

const ended = (processId: string): EndedProcess => ({ processId, kinds: ['token-batch', 'transaction-batch'] })

it('the jobs of all kinds of a process are handed back', async () => {
  const { seen, handing } = serverAwayFor(0)
  handing.begin(ended('p1'))
  await handing.close()
  expect(seen).toEqual({ connections: 1, calls: ['p1 token-batch', 'p1 transaction-batch'] })
})

it('processes that ended together share a connection, and each is handed back once though the server was away', async () => {
  const { seen, handing } = serverAwayFor(3)
  handing.begin(ended('p1'))
  handing.begin(ended('p2'))
  await until(() => seen.calls.length === 4)
  handing.begin(ended('p3'))
  await until(() => seen.calls.length === 6)
  await handing.close()
  const each = ['p1', 'p2', 'p3'].flatMap(id => [`${id} token-batch`, `${id} transaction-batch`])
  expect(seen).toEqual({ connections: 5, calls: each })
})

it('a queue server that stays away is given up: the locks run out', async () => {
  const { seen, handing } = serverAwayFor(Number.POSITIVE_INFINITY)
  handing.begin(ended('p1'))
  await until(() => seen.connections === 60)
  await handing.close()
  expect(seen).toEqual({ connections: 60, calls: [] })
})

it('a supervisor that closes tries no further', async () => {
  const { seen, handing } = serverAwayFor(Number.POSITIVE_INFINITY)
  handing.begin(ended('p1'))
  await handing.close()
  expect(seen.connections).toBe(1)
})

it('looks again after it has handed back, for what the process had sent before its end', async () => {
  const { seen, handing } = serverAwayFor(1, [1, 1])
  handing.begin(ended('p1'))
  await until(() => seen.calls.length === 6)
  await handing.close()
  expect(seen.calls).toEqual(Array(3).fill(['p1 token-batch', 'p1 transaction-batch']).flat())
})
