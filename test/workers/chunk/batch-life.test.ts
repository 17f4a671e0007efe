// The life of a batch through queue and workers: what its chunks may say of it, and how it ends.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Client } from '../../../producers/client.ts'
import { cancelBatch, pauseBatch, resumeBatch } from '../../../src/acts/batch.ts'
import { proveOperator, signAct } from '../../../src/acts/operator.ts'
import * as clients from '../../../src/store/access/clients.ts'
import type { Batch } from '../../../src/store/batch/batch-row.ts'
import { stateOf } from '../../../src/store/batch/batch-state.ts'
import * as batches from '../../../src/store/batch/batches.ts'
import { type FailedChunk, whyStalled } from '../../../src/store/batch/why-stalled.ts'
import { transactionOf } from '../../producers/ingest/sample.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'
import { until } from '../../support/until.ts'

const BY = { actor: { kind: 'machine', id: 'tester@here' } as const, reason: 'a test' }
const ROWS = 3

describe('a batch', () => {
  let database: FreshDatabase
  let installation: Installation
  let client: Client
  let made = 0
  beforeAll(async () => {
    database = await freshDatabase()
    installation = await openInstallation({
      name: 'postgres',
      prefix: '{batchlife}',
      redisUrls: undefined,
      databaseUrl: database.url,
    })
    await installation.startWorkers({ processes: 2, roles: ['bulk'] })
    client = await installation.connect()
  })
  afterAll(async () => {
    await installation?.close()
    await database?.drop()
  })

  const newBatch = () => `life-${made++}`
  const linesOf = (batchId: string, chunk: number) =>
    Array.from({ length: ROWS }, (_, index) => ({
      line: chunk * ROWS + index + 1,
      transaction: {
        ...transactionOf(index, { entity: ENTITY, seed: `${batchId}-${chunk}` }),
        // The last row of each chunk is refused.
        ...(index === ROWS - 1 && { currency: 'XAU' }),
      },
    }))
  const send = (batchId: string, chunk: number, says: Record<string, unknown> = {}) =>
    client.call(
      'transaction-batch',
      { batch_id: batchId, chunk, ...says, transactions: linesOf(batchId, chunk) },
      { jti: `${batchId}-${chunk}` },
    )
  const find = async (batchId: string): Promise<Batch> => {
    const batch = await batches.find(installation.vault.store, client.clientId, batchId)
    if (!batch) throw new Error(`no batch ${batchId}`)
    return batch
  }
  const state = async (batchId: string) => stateOf(await find(batchId), Date.now())
  const becomes = (batchId: string, wanted: string) =>
    until(async () => (await state(batchId)) === wanted, { what: `${batchId} ${wanted}` })
  const eventsOf = async (batchId: string) =>
    (
      await installation.vault.store.query<{ revision: number; data: Record<string, unknown> }>({
        text: 'select revision, data from tokenmill.event where subject = $1 order by revision',
        values: [batchId],
      })
    ).rows
  const codesOf = ({ error }: Awaited<ReturnType<typeof send>>) =>
    Object.entries(error?.details ?? {}).map(([field, { code }]) => `${field} ${code}`)

  it('whose chunks say its extent is RUNNING until all are there, then FINISHED with totals, reasons and one event', async () => {
    const id = newBatch()
    const extent = { chunks: 2, rows: 2 * ROWS, name: 'ledger.csv', sha256: 'a'.repeat(64) }
    await send(id, 1, { extent })
    expect(await state(id)).toBe('RUNNING')
    await send(id, 0, { extent })
    await becomes(id, 'FINISHED')
    const { counts, reasons, rowsDone, chunksDone, revision, extent: stored } = await find(id)
    expect({ rowsDone, chunksDone, revision, stored }).toEqual({
      rowsDone: 6,
      chunksDone: 2,
      revision: 1,
      stored: extent,
    })
    expect(counts).toMatchObject({ CREATED: 4, REJECTED: 2 })
    expect(reasons).toEqual({ REJECTED: { currency_unknown: 2 } })
    expect(await eventsOf(id)).toEqual([
      { revision: 1, data: expect.objectContaining({ batch_id: id, rows: 6, reasons, counts }) },
    ])
    expect(await send(id, 0)).toMatchObject({ status: 'SUCCEEDED', counts: { CREATED: 2, REJECTED: 1 } })
    expect(codesOf(await send(id, 2))).toEqual(['body.request.chunk batch_finished'])
    expect(await cancelBatch(installation.vault.store, await find(id), BY)).toEqual({ refused: 'finished' })
    expect(await eventsOf(id)).toHaveLength(1)
  })

  it('is OPEN until its highest chunk says that it is the last', async () => {
    const id = newBatch()
    await send(id, 0)
    expect(await state(id)).toBe('OPEN')
    await send(id, 1, { last: true })
    await becomes(id, 'FINISHED')
    expect((await find(id)).extent).toMatchObject({ chunks: 2, rows: null })
  })

  it('keeps its first extent, and refuses another and chunks outside of it without a trace', async () => {
    const id = newBatch()
    await send(id, 1, { extent: { chunks: 3, rows: 9 } })
    expect(codesOf(await send(id, 0, { extent: { chunks: 4, rows: 9 } }))).toEqual(['body.request.extent batch_extent'])
    expect(codesOf(await send(id, 0, { extent: { chunks: 3, rows: 8 } }))).toEqual(['body.request.extent batch_extent'])
    expect(codesOf(await send(id, 0, { last: true }))).toEqual(['body.request.last batch_extent'])
    expect(codesOf(await send(id, 3))).toEqual(['body.request.chunk batch_extent'])
    expect(codesOf(await send(id, 2, { extent: { chunks: 2, rows: 9 } }))).toEqual(['body.request.extent batch_extent'])
    for (const chunk of [0, 2]) expect(await send(id, chunk)).toMatchObject({ status: 'SUCCEEDED' })
    await becomes(id, 'FINISHED')
    const other = newBatch()
    await send(other, 5)
    expect(codesOf(await send(other, 1, { last: true }))).toEqual(['body.request.last batch_extent'])
    expect((await find(other)).extent).toBeNull()
  })

  it('goes on with chunks that say its extent, though its first ones did not: they are the same chunks', async () => {
    const id = newBatch()
    const first = await send(id, 0)
    const { store } = installation.vault
    await until(async () => (await find(id)).chunksDone === 1)
    await store.query({ text: `update tokenmill.batch set active_at = 'epoch' where batch_id = $1`, values: [id] })
    expect(await state(id)).toBe('ABANDONED')
    const extent = { chunks: 2, rows: 6 }
    const again = await send(id, 0, { extent })
    // It was sent in another envelope, and says more of the batch.
    const { attempt, envelope, answers } = again
    expect(again).toEqual({ ...first, attempt, envelope, answers })
    await send(id, 1, { extent })
    await becomes(id, 'FINISHED')
    expect(await find(id)).toMatchObject({ rowsDone: 6, reasons: { REJECTED: { currency_unknown: 2 } } })
  })

  it('that is paused has its chunks put back, answers what it had, and goes on when it is resumed', async () => {
    const id = newBatch()
    const extent = { chunks: 2, rows: 6 }
    await send(id, 0, { extent })
    const { store } = installation.vault
    expect(await pauseBatch(store, await find(id), BY)).toMatchObject({ done: { batchId: id } })
    expect(await pauseBatch(store, await find(id), BY)).toEqual({ refused: 'paused' })
    expect(await state(id)).toBe('PAUSED')
    const answer = send(id, 1, { extent })
    await until(async () => (await installation.queues.depth('transaction-batch')).delayed === 1)
    expect(await resumeBatch(store, await find(id), BY, Date.now())).toMatchObject({ done: { batchId: id } })
    expect(await answer).toMatchObject({ status: 'SUCCEEDED' })
    await becomes(id, 'FINISHED')
  })

  it('that is cancelled begins nothing more, and is never finished', async () => {
    const id = newBatch()
    const extent = { chunks: 2, rows: 6 }
    await send(id, 0, { extent })
    const cancelled = await cancelBatch(installation.vault.store, await find(id), BY)
    expect(cancelled).toMatchObject({ done: { rowsLeft: 3 } })
    expect((await send(id, 1, { extent })).counts).toMatchObject({ CANCELLED: 3, CREATED: 0 })
    await until(async () => (await find(id)).chunksDone === 2)
    expect(await state(id)).toBe('CANCELLED')
    expect((await find(id)).reasons).toMatchObject({ CANCELLED: { cancelled: 3 } })
    expect(await eventsOf(id)).toEqual([])
    const audited = await installation.vault.store.query({
      text: `select actor, action, detail->>'reason' as reason from tokenmill.audit where subject = $1`,
      values: [id],
    })
    expect(audited.rows).toEqual([{ actor: 'machine:tester@here', action: 'batch.cancel', reason: 'a test' }])
  })

  it('is PAUSED at its sender’s limit, and goes on with the first chunk of a run without one', async () => {
    const id = newBatch()
    const extent = { chunks: 2, rows: 6 }
    await send(id, 0, { extent, limit: 1 })
    await becomes(id, 'PAUSED')
    const verdict = await resumeBatch(installation.vault.store, await find(id), BY, Date.now())
    expect(verdict).toEqual({ refused: 'at_limit' })
    await send(id, 1, { extent })
    await becomes(id, 'FINISHED')
  })

  it('is paused by an operator who proves it: a client with the role ADMIN, who signed this very act', async () => {
    const id = newBatch()
    await send(id, 0)
    const { store } = installation.vault
    const deed = { action: 'batch.pause', subject: id }
    const signed = (credentials: Installation['credentials'], subject = id) =>
      signAct(
        { ...deed, subject, reason: undefined, audience: credentials.audience },
        credentials.signingKey,
        Date.now(),
      )
    const admin = await installation.addClient('admin', { roles: ['ADMIN'] })
    const prove = (proof: string) => proveOperator(store, proof, deed, Date.now())
    await expect(prove(signed(installation.credentials))).rejects.toThrow(/lacks the role ADMIN/)
    await expect(prove(signed(admin.credentials, 'another'))).rejects.toThrow(/another act/)
    const forged = { ...installation.credentials.signingKey, clientId: admin.credentials.signingKey.clientId }
    await expect(prove(signed({ ...admin.credentials, signingKey: forged }))).rejects.toThrow(/not its key/)
    const proof = signed(admin.credentials)
    const actor = await prove(proof)
    const { clientId: adminId, kid: key } = admin.credentials.signingKey
    expect(actor).toEqual({ kind: 'client', id: adminId, proof, key, unchecked: true })
    expect(await pauseBatch(store, await find(id), { actor, reason: undefined })).toMatchObject({ done: {} })
    await clients.revoke(store, actor.id)
    await expect(prove(proof)).rejects.toThrow(/revoked/)
    // The database's owner adds a role. A command that holds the keys finds that tokenmill didn't write the row.
    const minted = await installation.addClient('minted', { roles: ['TOKEN_READ'] })
    const { clientId } = minted.credentials.signingKey
    await store.query({
      text: `update tokenmill.client set roles = '{ADMIN}' where client_id = $1`,
      values: [clientId],
    })
    expect(await prove(signed(minted.credentials))).toMatchObject({ id: clientId, unchecked: true })
    const { ring } = installation.vault
    const check = (proof: string) => proveOperator(store, proof, deed, Date.now(), ring)
    await expect(check(signed(minted.credentials))).rejects.toThrow(/not written by tokenmill/)
    const second = await installation.addClient('second-admin', { roles: ['ADMIN'] })
    expect(await check(signed(second.credentials))).not.toHaveProperty('unchecked')
    await store.query({
      text: 'update tokenmill.client_key set mac = null, mac_version = null where client_id = $1',
      values: [second.credentials.signingKey.clientId],
    })
    await expect(check(signed(second.credentials))).rejects.toThrow(/not written by tokenmill/)
    const audited = await store.query({
      text: `select actor, detail->>'proof' as proof, detail->'unchecked' as unchecked from tokenmill.audit where subject = $1`,
      values: [id],
    })
    expect(audited.rows).toEqual([{ actor: `client:${actor.id}`, proof, unchecked: true }])
  })
})

const FAILED: FailedChunk = { id: 'f_1', fault: 'store_busy', whyNot: undefined }

it.each<[Partial<Parameters<typeof whyStalled>[0]>, RegExp]>([
  [{ isRevoked: true, queued: undefined }, /its client is revoked/],
  [{ workers: 2, unread: 0, queued: undefined }, /queue server does not answer/],
  [{ workers: 0, unread: 5, queued: 5 }, /nobody works/],
  [{ workers: 2, unread: 10_000, queued: 5 }, /held back: 10,000 or more answers/],
  [{ workers: 2, unread: 10_001, queued: 5 }, /held back: 10001 answers/],
  [{ workers: 2, unread: 5, queued: 5 }, /results unread: 5/],
  [{ workers: 2, unread: 0, queued: 0 }, /nobody sends/],
  [{ workers: 2, unread: 0, queued: 0, failed: 'more' }, /has 0 chunks; whether chunks of it failed is not known/],
  [{ workers: 2, unread: 0, queued: 7 }, /7 chunks are in the queue/],
  [
    { queued: 7, loaded: { host: 'vm', load: 4.25 } },
    /^the machine vm is overloaded: 4\.3 processes want each of its cores; its chunks wait or are being worked/,
  ],
  [{ queued: 7, loaded: { host: 'vm', load: 1.9 } }, /^its chunks wait/],
  [{ workers: 0, queued: 7, loaded: { host: 'vm', load: 9 } }, /^nobody works: .*vm is overloaded.* may only be late$/],
  [{ queued: 0, loaded: { host: 'vm', load: 3 } }, /^nobody sends: .*; the machine vm is overloaded: 3\.0/],
  [
    { failed: [FAILED] },
    /^the failed set has 1 copy that names it \(store_busy\); `tokenmill failed retry f_1` sends it again$/,
  ],
  [
    { queued: 7, failed: [FAILED, { ...FAILED, id: 'f_2', fault: 'defect' }] },
    /^the failed set has 2 copies that name it \(store_busy, defect\); `tokenmill failed retry f_1 f_2` sends them again$/,
  ],
  [{ failed: [1, 2, 3, 4].map(n => ({ ...FAILED, id: `f_${n}` })) }, /; `tokenmill failed list` shows them/],
  [{ failed: [{ ...FAILED, whyNot: 'its card data are gone' }] }, /can not be retried: its card data are gone$/],
])('a batch is said to be stalled for %o', (facts, why) => {
  expect(
    whyStalled({ isRevoked: false, workers: 2, unread: 0, queued: 0, failed: [], loaded: undefined, ...facts }),
  ).toMatch(why)
})
