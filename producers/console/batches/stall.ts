// Why a batch is stalled, as `batch show` says it, as far as the person may know it and it can be found in short time.
import { describeError } from '../../../src/logger.ts'
import * as seenClients from '../../../src/store/access/seen-clients.ts'
import * as seenStall from '../../../src/store/batch/stall.ts'
import type { SeenBatch } from '../../../src/store/console/batches.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import * as jobs from '../../../src/store/explain/jobs.ts'
import type { Db } from '../../../src/store/pool.ts'
import { type Sight, sightOf } from '../../../src/store/sight.ts'
import { explainStalls, type StallReader, within } from '../../operate/stalled-batches.ts'
import type { ConsoleDeps } from '../deps.ts'
import type { InTurn } from '../failed/turns.ts'

/** For how long failed chunks are looked for; and how long the queue server may take to answer at all. In ms. */
const LOOK_MS = 150
const ANSWER_MS = 1_000
/** After so long, with the wait for the others' looks, the page goes without a cause. */
const WHOLE_MS = 2_000

/** One sentence; undefined: it was not found in time, or too many look for failed chunks at once. */
export async function whyStalledOf(
  { store, queues, clock, log }: Pick<ConsoleDeps, 'store' | 'queues' | 'clock' | 'log'>,
  { personId, entities }: Pick<LiveSession, 'personId' | 'entities'>,
  batch: SeenBatch,
  inTurn: InTurn,
): Promise<string | undefined> {
  const reader = readerOf(sightOf(entities), store)
  const times = { now: clock(), lookMs: LOOK_MS, answerMs: ANSWER_MS }
  const explained = inTurn(personId, () => explainStalls([batch], { reader, queues: async () => queues, ...times }))
  const said = await within(WHOLE_MS, explained).catch(error => {
    log.warn({ error: describeError(error) }, 'why a batch is stalled was not found')
    return undefined
  })
  return said === 'busy' ? undefined : said?.[0]?.why
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
