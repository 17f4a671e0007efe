// Why a batch is stalled, as `batch show` says it, as far as the person may know it and it can be found in short time.
import type { SeenBatch } from '../../../src/store/console/seen-batches.ts'
import * as seenClients from '../../../src/store/console/seen-clients.ts'
import * as jobs from '../../../src/store/console/seen-jobs.ts'
import * as seenStall from '../../../src/store/console/seen-stall.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { type Sight, sightOf } from '../../../src/store/console/sight.ts'
import type { Db } from '../../../src/store/pool.ts'
import { explainStalls, type StallReader } from '../../operate/stalled-batches.ts'
import type { ConsoleDeps } from '../deps.ts'
import type { InTurn } from '../failed/turns.ts'

/** For how long failed chunks are looked for; and how long the queues may take to answer at all. In ms. */
const LOOK_MS = 150
const ANSWER_MS = 1_000

/** One sentence; undefined: too many look for failed chunks at once. */
export async function whyStalledOf(
  { store, queues, clock }: Pick<ConsoleDeps, 'store' | 'queues' | 'clock'>,
  { personId, entities }: Pick<LiveSession, 'personId' | 'entities'>,
  batch: SeenBatch,
  inTurn: InTurn,
): Promise<string | undefined> {
  const reader = readerOf(sightOf(entities), store)
  const explained = inTurn(personId, () =>
    explainStalls([batch], { reader, queues: async () => queues, now: clock(), lookMs: LOOK_MS }),
  )
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<'late'>(resolve => {
    timer = setTimeout(() => resolve('late'), ANSWER_MS)
  })
  const said = await Promise.race([explained, late]).finally(() => clearTimeout(timer))
  if (said === 'busy') return undefined
  if (said !== 'late') return said[0]?.why
  explained.catch(() => {})
  return 'the queue server does not answer'
}

function readerOf(sight: Sight, store: Db): StallReader {
  return {
    facts: batch => seenStall.findStallFacts(sight, store, batch),
    done: ids => jobs.listReceipts(sight, store, ids),
    // As on the page Failed: a copy in the queue is not verified, so it is shown by whose its client is.
    seesFailed: async ({ clientId }) => (await seenClients.find(sight, store, clientId)) !== undefined,
    seesQueues: sight.sees === 'all',
  }
}
