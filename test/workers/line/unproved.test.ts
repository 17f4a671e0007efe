// What the owner of the database changes in receipts and in the outbox is told to nobody: neither signed, nor answered, nor done.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { askReceipts } from '../../../producers/operate/checks/receipts.ts'
import { openInbox } from '../../../producers/results.ts'
import { confirmReceipt } from '../../../src/acts/receipts.ts'
import { resultId } from '../../../src/job/envelope/ids.ts'
import { pageOf } from '../../../src/metrics.ts'
import * as batches from '../../../src/store/batch/batches.ts'
import * as events from '../../../src/store/event/events.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { until } from '../../support/until.ts'
import { type OnFileWorld, openOnFile } from '../on-file-bundle.ts'

const BY = { actor: { kind: 'machine', id: 'test' }, reason: 'compared with the client' } as const

describeOnRedis('the owner of the database', engine => {
  let installation: Installation
  let onFile: OnFileWorld
  beforeAll(async () => {
    installation = await openInstallation(engine)
    onFile = await openOnFile(installation)
  })
  afterAll(() => installation?.close())

  const query = async <R>(text: string, values: unknown[] = []) =>
    (await installation.vault.store.query<R>({ text, values })).rows
  const create = async (jti: string, pan: number) => {
    const { world, scope } = onFile
    const told = world.told.length
    const job = world.job('token-create', { token_scope: scope, ...(await world.cardOf(testPan(pan))) }, { jti })
    await world.run(job)
    return { ...job, answers: world.told.slice(told) }
  }
  const UNPROVED = [{ code: 500, error: { details: { 'body.jti': { code: 'receipt_unproved' } } } }]

  it('can’t have a repeat answered with the token of another job; an operator says which decision stands', async () => {
    const { vault } = installation
    const mine = await create('mine', 11)
    const theirs = await create('theirs', 12)
    const tokenOf = 'select token_id from tokenmill.receipt where receipt_id = $1'
    const [former] = await query<{ token_id: string }>(tokenOf, [mine.receiptId])
    await query(`update tokenmill.receipt set token_id = (${tokenOf}) where receipt_id = $2`, [
      theirs.receiptId,
      mine.receiptId,
    ])
    expect((await create('mine', 11)).answers).toMatchObject(UNPROVED)
    // It blocks its job for good, and nothing is undone by it.
    expect((await create('mine', 11)).answers).toMatchObject(UNPROVED)
    expect(await onFile.reverse(mine)).toMatchObject({
      details: { 'body.receipt_id': { code: 'receipt_unproved' } },
    })
    await query('update tokenmill.receipt set token_id = $2 where receipt_id = $1', [mine.receiptId, former?.token_id])
    expect((await create('mine', 11)).answers).toMatchObject([{ code: 200 }])
    // Another outcome, which the operator takes for right.
    await query(`update tokenmill.receipt set outcome = 'UPDATED' where receipt_id = $1`, [mine.receiptId])
    expect((await create('mine', 11)).answers).toMatchObject(UNPROVED)
    expect(await confirmReceipt(vault.store, vault.ring, mine.receiptId, BY)).toMatchObject({
      done: { outcome: 'UPDATED' },
    })
    expect((await create('mine', 11)).answers).toMatchObject([{ code: 200 }])
    expect(await confirmReceipt(vault.store, vault.ring, mine.receiptId, BY)).toEqual({ refused: 'proved' })
    expect(await confirmReceipt(vault.store, vault.ring, randomUUID(), BY)).toEqual({ refused: 'unknown' })
  })

  it('can’t take a receipt’s code away, or have another row’s code believed', async () => {
    const [one, other] = [await create('coded', 13), await create('other', 14)]
    await query('update tokenmill.receipt set mac = null, mac_version = null where receipt_id = $1', [one.receiptId])
    expect((await create('coded', 13)).answers).toMatchObject(UNPROVED)
    await query(
      `update tokenmill.receipt as r
set mac = o.mac, mac_version = o.mac_version
from tokenmill.receipt as o
where r.receipt_id = $1 and o.receipt_id = $2`,
      [one.receiptId, other.receiptId],
    )
    expect((await create('coded', 13)).answers).toMatchObject(UNPROVED)
  })

  it('can’t have a chunk answered with other outcomes, or its failed records done', async () => {
    const { world } = onFile
    const send = async () => {
      const told = world.told.length
      const requests = [await world.cardOf(testPan(15)), await world.cardOf(testPan(16))]
      const job = await onFile.chunkJob(requests, { batchId: 'b-changed', references: ['a', 'b'] })
      await world.run(job)
      return { ...job, answers: world.told.slice(told) }
    }
    const { receiptId } = await send()
    const counted = () => query(`select count(*)::int as n from tokenmill.token`)
    const before = await counted()
    for (const change of [
      `outcomes = replace(outcomes, 'CREATED', 'UPDATED') || ' '`,
      'failed_records = 1',
      `counts = counts || '{"CREATED": 3}'`,
    ]) {
      const [row] = await query<Record<string, unknown>>(
        'select outcomes, failed_records, counts from tokenmill.receipt where receipt_id = $1',
        [receiptId],
      )
      await query(`update tokenmill.receipt set ${change} where receipt_id = $1`, [receiptId])
      expect((await send()).answers, change).toMatchObject(UNPROVED)
      await query(
        'update tokenmill.receipt set outcomes = $2, failed_records = $3, counts = $4 where receipt_id = $1',
        [receiptId, row?.['outcomes'], row?.['failed_records'], JSON.stringify(row?.['counts'])],
      )
      expect((await send()).answers, change).toMatchObject([{ revision: 1 }])
    }
    expect(await counted()).toEqual(before)
  })

  it('is found out by doctor, which looks at a sample of receipts and results', async () => {
    const { store, ring } = installation.vault
    const { receiptId } = await create('sampled', 19)
    const set = (code: number) =>
      query('update tokenmill.receipt set code = $2 where receipt_id = $1', [receiptId, code])
    const ask = () => askReceipts({ store: async () => store, ring: async () => ring })
    await set(201)
    const { state, says } = await ask()
    expect(state).toBe('critical')
    expect(says).toContain(`receipt ${receiptId}`)
    await set(200)
    expect((await ask()).says).not.toContain(receiptId)
    await events.insertAll(store, ring, [
      {
        type: 'batch.finished',
        clientId: installation.credentials.signingKey.clientId,
        subject: 'sampled',
        revision: 1,
        data: {},
      },
    ])
    expect((await ask()).says).not.toContain('event')
    await query(`update tokenmill.event set data = '{"rows": 1}' where subject = 'sampled'`, [])
    expect(await ask()).toMatchObject({ state: 'critical', says: expect.stringMatching(/event \d+/) })
    await query(`delete from tokenmill.event where subject = 'sampled'`, [])
    expect(await askReceipts({ store: async () => store, ring: undefined })).toMatchObject({ state: 'unknown' })
  })

  it('can’t have other counts told at the end of a batch: it doesn’t end', async () => {
    const { store, ring } = installation.vault
    const { clientId } = installation.credentials.signingKey
    const requests = [await onFile.world.cardOf(testPan(18))]
    const { receiptId } = await onFile.chunkJob(requests, { batchId: 'b-ended', references: ['a'] }).then(async job => {
      await onFile.world.run(job)
      return job
    })
    const batch = (await batches.find(store, clientId, 'b-ended')) ?? expect.fail('the chunk opened it')
    await batches.setExtent(store, batch.batchNo, { chunks: 1, rows: 1, name: null, sha256: null })
    const set = (n: number) =>
      query(
        `update tokenmill.receipt set counts = counts || jsonb_build_object('CREATED', $2::int) where receipt_id = $1`,
        [receiptId, n],
      )
    const sum = async () => {
      await query(`update tokenmill.batch set summed_at = 'epoch' where batch_no = $1`, [batch.batchNo])
      return batches.sum(store, ring, batch.batchNo)
    }
    await set(5)
    expect(await sum()).toEqual({ unproved: [receiptId] })
    expect(await batches.find(store, clientId, 'b-ended')).toMatchObject({ finishedAt: null })
    await set(1)
    expect(await sum()).toMatchObject({ finished: { counts: { CREATED: 1 }, rowsDone: 1, chunksDone: 1 } })
  })

  it('can’t have a text signed for a client, a result told to another client, or one that answers another request', async () => {
    const { queues, credentials } = installation
    const { clientId } = credentials.signingKey
    const found: string[] = []
    const inbox = openInbox(
      queues,
      { clientId, replyTo: 'told', keys: credentials.installationKeys },
      async ({ result_id: id }) => {
        found.push(id)
        return 'taken'
      },
      { concurrency: 1, log: installation.session.log },
    )
    await inbox.ready
    const one = await create('pointed', 17)
    const last = one.answers[0]?.result_id
    const insert = (columns: string, values: unknown[]) =>
      query(
        `insert into tokenmill.outbox (day, reply_to, created_at, client_id, receipt_id, revision, ${columns})
values (current_date, 'told', now() - interval '1 minute', $1, $2, $3, ${values.map((_, n) => `$${n + 4}`).join(', ')})`,
        [clientId, one.receiptId, 1, ...values],
      )
    await insert('result_id, body', [randomUUID(), JSON.stringify({ type: 'result', status: 'SUCCEEDED' })])
    await insert('answers', [Buffer.alloc(32)])
    await query(
      `insert into tokenmill.outbox (day, client_id, reply_to, receipt_id, revision, envelope_digest, answers, mac, mac_version, created_at)
select day, 'another', 'told', receipt_id, revision, envelope_digest, answers, mac, mac_version, now() - interval '1 minute'
from tokenmill.outbox
where receipt_id = $1 and mac is not null
limit 1`,
      [one.receiptId],
    )
    const workers = await installation.openWorkers({ roles: ['interactive'] })
    const states = async () =>
      (
        await query<{ state: string; n: number }>(
          `select state, count(*)::int as n from tokenmill.outbox where reply_to = 'told' group by state`,
        )
      ).map(({ state, n }) => `${state} ${n}`)
    await until(async () => (await states()).join() === 'UNPROVED 3')
    const page = await pageOf(await workers.snapshots())
    expect(/^tokenmill_unproved_rows_total\{.*kind="outbox".*\} (\d+)$/m.exec(page)?.[1]).toBe('3')
    // What tokenmill wrote is told.
    await query(
      `update tokenmill.outbox set state = 'NEW', created_at = now() - interval '1 minute' where receipt_id = $1 and reply_to is null`,
      [one.receiptId],
    )
    await until(
      async () =>
        (await query(`select 1 from tokenmill.outbox where receipt_id = $1 and state = 'NEW'`, [one.receiptId]))
          .length === 0,
    )
    expect(last).toBe(resultId(one.receiptId, 1))
    expect(found).toEqual([])
    await inbox.close(1_000)
    await workers.close()
  })
})
