// The life of a batch against a sequential model: chunks, repeats, late and last chunks, pause, cancel, deeds side by side,
// crashes of workers and of the scheduler, failed rows decided anew. Row, receipts and events are compared after each.
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { cancelBatch, pauseBatch, resumeBatch } from '../../../src/acts/batch.ts'
import type { Result } from '../../../src/job/answer/result.ts'
import { Claims, sign } from '../../../src/job/envelope/envelope.ts'
import { jobId, receiptId } from '../../../src/job/envelope/ids.ts'
import * as batches from '../../../src/store/batch/batches.ts'
import { sumUnsettled } from '../../../workers/batch-progress.ts'
import { runJob } from '../../../workers/line/run-job.ts'
import { transactionOf } from '../../producers/ingest/sample.ts'
import { describeStore } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { volume } from '../../support/volume.ts'
import { openWorld, type World } from '../provider/bundle.ts'
import {
  type After,
  act,
  CHUNK_ROWS,
  type Counts,
  clean,
  type Deed,
  type Model,
  NOTHING,
  steps,
  told,
} from './batch-model.ts'

const RUNS = Number(process.env['BATCH_RUNS'] ?? volume(25, 60))
const BY = { actor: { kind: 'machine', id: 'model' } as const, reason: undefined }
const CHUNKS = 3

interface Step {
  deeds: [Deed] | [Deed, Deed]
  /** The process dies when the store is spoken to for the nth time. */
  dies: number | null
}

const says = fc.oneof(
  { weight: 6, arbitrary: fc.constant({ extent: { chunks: CHUNKS, rows: CHUNKS * CHUNK_ROWS } }) },
  { weight: 2, arbitrary: fc.constant({}) },
  { weight: 1, arbitrary: fc.constant({ last: true as const }) },
  { weight: 1, arbitrary: fc.constant({ extent: { chunks: CHUNKS - 1, rows: 4 } }) },
  {
    weight: 1,
    arbitrary: fc
      .integer({ min: 1, max: CHUNKS })
      .map(limit => ({ limit, extent: { chunks: CHUNKS, rows: CHUNKS * CHUNK_ROWS } })),
  },
)
const chunk = fc.oneof({ weight: 9, arbitrary: fc.nat(CHUNKS - 1) }, { weight: 1, arbitrary: fc.constant(CHUNKS) })
const deed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 9, arbitrary: fc.record({ do: fc.constant('send' as const), chunk, says, mended: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('sum' as const, 'sweep' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('pause' as const, 'resume' as const, 'resume' as const) }) },
  { weight: 1, arbitrary: fc.constant({ do: 'cancel' as const }) },
)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ deeds: fc.tuple(deed), dies: fc.option(fc.nat(25), { freq: 4, nil: null }) }) },
  { weight: 3, arbitrary: fc.record({ deeds: fc.tuple(deed, deed), dies: fc.constant(null) }) },
)

describeStore('the life of a batch', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
  })
  afterAll(() => installation?.close())

  it('is what some order of its deeds makes of it', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async given => {
        const world = await openWorld(installation)
        const batchId = `m-${randomUUID()}`
        let model = NOTHING
        for (const one of given) model = await play(world, batchId, model, one)
        // In the end a sweep sums what crashes left unsummed.
        model = await play(world, batchId, model, { deeds: [{ do: 'sweep' }], dies: null })
        expect(model.summed.chunks).toBe(model.exists ? Object.keys(model.chunks).length : 0)
      }),
      {
        numRuns: RUNS,
        includeErrorInReport: true,
        ...(process.env['BATCH_SEED'] && { seed: Number(process.env['BATCH_SEED']) }),
      },
    )
  })

  /** Does the deeds of a step, side by side, and finds the model that it made of the batch. */
  async function play(world: World, batchId: string, model: Model, { deeds, dies }: Step): Promise<Model> {
    if (dies !== null) world.dieAt(dies)
    const seen = await Promise.all(deeds.map(one => perform(world, batchId, one)))
    const died = world.isDead()
    if (dies !== null) world.revive()
    const found = await read(batchId)
    const possible = outcomesOf(model, deeds, died)
    const match = possible.find(after => {
      const isSame = JSON.stringify(shape(after.model)) === JSON.stringify(found)
      return isSame && (died || JSON.stringify(after.seen) === JSON.stringify(seen))
    })
    if (match) return match.model
    const told = possible.map(after => JSON.stringify({ found: shape(after.model), seen: after.seen }))
    throw new Error([JSON.stringify({ deeds, died }), JSON.stringify({ found, seen }), ...new Set(told)].join('\n  '))
  }

  async function perform(world: World, batchId: string, one: Deed): Promise<string> {
    const { store, ring } = world.deps
    if (one.do === 'send') return sendChunk(world, batchId, one)
    const batch = await batches.find(installation.vault.store, installation.credentials.signingKey.clientId, batchId)
    if (!batch) return 'none'
    if (one.do === 'sum' || one.do === 'sweep') {
      await installation.vault.store.query({
        text: `update tokenmill.batch set summed_at = 'epoch' where batch_no = $1`,
        values: [batch.batchNo],
      })
      const summing =
        one.do === 'sum'
          ? batches.sum(store, ring, batch.batchNo)
          : sumUnsettled({ store, ring, clock: Date.now, onUnproved: () => {} })
      return summing.then(
        () => 'summed',
        () => 'died',
      )
    }
    const acts = { pause: pauseBatch, resume: resumeBatch, cancel: cancelBatch }
    const verdict = await acts[one.do](store, batch, BY, Date.now()).catch(() => ({ refused: 'died' }))
    return 'refused' in verdict ? verdict.refused : 'done'
  }

  async function sendChunk(world: World, batchId: string, one: Extract<Deed, { do: 'send' }>): Promise<string> {
    const { signingKey, userId, entityId } = installation.credentials
    const jti = `${batchId}-${one.chunk}`
    const transactions = Array.from({ length: CHUNK_ROWS }, (_, index) => ({
      line: one.chunk * CHUNK_ROWS + index + 1,
      transaction: {
        ...transactionOf(index, { entity: ENTITY, seed: jti }),
        merchant_reference: index === 0 ? 'good' : 'POISON',
      },
    }))
    const claims = Claims.parse({
      iss: signingKey.clientId,
      aud: installation.session.config.audience,
      sub: userId,
      entity_id: entityId,
      jti,
      iat: Math.floor(Date.now() / 1000),
      kind: 'transaction-batch',
      roles: ['LEDGER_WRITE'],
      request: { batch_id: batchId, chunk: one.chunk, ...one.says, transactions },
    })
    const toldBefore = world.told.length
    const job = { id: jobId(signingKey.clientId, jti), data: { jws: sign(claims, signingKey) } }
    const deps: World['deps'] = {
      ...world.deps,
      inspect: ({ reference }) => {
        if (reference === 'POISON' && !one.mended) throw new Error('broken law: poison is never worked')
      },
    }
    const received = { ...job, attempt: 1, stalled: 0, exhausted: false, tied: false, enqueuedAt: Date.now() }
    let end = await runJob(received, new AbortController().signal, deps)
    // Given up, it found that a copy which was signed anew has ended meanwhile.
    if ('retryInMs' in end && !world.isDead()) end = await runJob(received, new AbortController().signal, deps)
    if ('deferMs' in end) return 'put off'
    const id = receiptId(signingKey.clientId, jti)
    const result = world.told
      .slice(toldBefore)
      .findLast((found): found is Result => found.type === 'result' && found.receipt_id === id)
    if (!result) return 'died'
    if (result.counts) return told(result.counts)
    return Object.values(result.error?.details ?? {})[0]?.code ?? 'given up'
  }

  /** What of the model the store shows. */
  async function read(batchId: string): Promise<unknown> {
    const { store } = installation.vault
    const { clientId } = installation.credentials.signingKey
    const row = await batches.find(store, clientId, batchId)
    const ask = async <R>(text: string, value: unknown) => (await store.query<R>({ text, values: [value] })).rows
    const receipts = await ask<{ chunk: number; counts: Record<string, number> }>(
      'select chunk, counts from tokenmill.receipt where batch_no = $1 order by chunk',
      row?.batchNo ?? 0,
    )
    const events = await ask<{ data: { counts: Record<string, number> } }>(
      'select data from tokenmill.event where subject = $1 order by revision',
      batchId,
    )
    return shape({
      exists: row !== undefined,
      extent: row?.extent ? { chunks: row.extent.chunks, rows: row.extent.rows } : null,
      limit: row?.limitChunks ?? null,
      paused: (row?.pausedAt ?? null) !== null,
      cancelled: (row?.cancelledAt ?? null) !== null,
      chunks: Object.fromEntries(receipts.map(({ chunk: no, counts }) => [no, clean(counts)])),
      summed: { chunks: row?.chunksDone ?? 0, counts: clean({ ...row?.counts }), revision: row?.revision ?? 0 },
      events: events.map(({ data }) => clean(data.counts)),
    })
  }
})

/** In one order of members. */
function shape(model: Model): unknown {
  const ordered = ({ CREATED = 0, FAILED = 0, CANCELLED = 0 }: Counts) => [CREATED, FAILED, CANCELLED]
  const { exists, extent, limit, paused, cancelled, chunks, summed, events } = model
  return {
    exists,
    extent,
    limit,
    paused,
    cancelled,
    chunks: Object.entries(chunks).map(([no, counts]) => [no, ordered(counts)]),
    summed: { ...summed, counts: ordered(summed.counts) },
    events: events.map(ordered),
  }
}

interface Outcome {
  model: Model
  seen: string[]
}

function outcomesOf(model: Model, deeds: Step['deeds'], died: boolean): Outcome[] {
  const [first, second] = deeds
  const alone = (after: After): Outcome => ({ model: after.model, seen: [after.seen] })
  if (!second) return died ? [{ model, seen: ['died'] }, ...steps(model, first).map(alone)] : [alone(act(model, first))]
  const both = (one: Deed, other: Deed, swap: boolean): Outcome[] =>
    // The one may have got some way before the other was done, and then be decided anew.
    [{ model, seen: '' }, ...steps(model, one)].flatMap(({ model: begun }) => {
      const others = act(begun, other)
      const told = (ones: After) => ({
        model: ones.model,
        seen: swap ? [others.seen, ones.seen] : [ones.seen, others.seen],
      })
      // A worker that looks for the bad row finds none once the other was done: it answers 500, and keeps nothing.
      const isGivenUp = one.do === 'send' && !one.mended
      const ones = [act(others.model, one), ...(isGivenUp ? [{ model: others.model, seen: 'given up' }] : [])]
      return ones.map(told)
    })
  // If two runs are under way at the same time, the last one that sends a chunk sets the limit, and each may send
  // several.
  const limits = deeds.flatMap(one => (one.do === 'send' ? [one.says.limit ?? null] : []))
  return [...both(first, second, false), ...both(second, first, true)].flatMap(outcome => [
    outcome,
    ...limits.map(limit => ({ ...outcome, model: { ...outcome.model, limit } })),
  ])
}
