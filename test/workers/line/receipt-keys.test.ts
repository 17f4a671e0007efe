// Repeats of jobs of every kind that a client sends, while `schema upgrade` writes the keys of their receipts: each
// gets the same answer, and none takes effect again.
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { tokenBatch } from '../../../producers/token-batch.ts'
import type { Result } from '../../../src/job/result.ts'
import * as receiptKeys from '../../../src/store/job/receipt-keys.ts'
import type { Store } from '../../../src/store/pool.ts'
import { upgradeSchema } from '../../../src/store/schema-upgrade.ts'
import { transactionOf } from '../../producers/ingest/sample.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'

type Job = (jti: string) => Promise<Result>

const MIGRATION = new URL('../../../src/store/migrations/0062-receipt-keys.sql', import.meta.url)

describeOnRedis('repeats of every kind', engine => {
  let installation: Installation
  let store: Store
  beforeAll(async () => {
    installation = await openInstallation(engine)
    store = installation.vault.store
    await installation.startWorkers({ processes: 2 })
  })
  afterAll(() => installation?.close())

  const count = async (of: string) =>
    (await store.query<{ n: number }>({ text: `select count(*) as n from ${of}` })).rows[0]?.n
  /** The parts of an answer that must not change; the token is shown as it is now. */
  const actedOn = ({ code, status, receipt_id, revision, record, records, error }: Result) => ({
    ...{ code, status, receipt_id, revision, error },
    subject: [record?.['reuse_token'], record?.['reportUid']],
    outcomes: records?.map(({ line, outcome }) => [line, outcome]),
  })

  /** Changes the store to the state after the migrations from release 0.3, in which no receipt has a key. */
  async function forgetKeys(): Promise<void> {
    for (const text of [
      'drop table tokenmill.receipt_key, tokenmill.receipt_fill',
      'drop function tokenmill.follow_receipt, tokenmill.follow_answer, tokenmill.follow_receipts_no_more, tokenmill.refuse_receipt_without_key cascade',
      // Not by the upgrade, which would run the later migrations again, too.
      await readFile(MIGRATION, 'utf8'),
    ])
      await store.query({ text })
    // Grants what the new tables lack.
    await upgradeSchema(String(installation.env['DATABASE_URL']))
  }

  async function jobs(): Promise<Record<string, Job>> {
    const { credentials, scope: token_scope } = installation
    const captureKey = credentials.captureKeys.jwe
    if (!captureKey) throw new Error('these credentials hold no JWE key')
    const made = await installation.connect({ replyTo: 'made' })
    const sealed = (n: number) => made.encryptCard({ cardNumber: testPan(n), expiryMonth: 12, expiryYear: 2031 })
    const [card, other] = [await sealed(1), await sealed(2)]
    const { record } = await made.call('token-create', { token_scope, ...other })
    await made.close()
    const id = String(record?.['reuse_token'])
    const accepted = Math.floor(Date.now() / 1000)
    const call = async (kind: string, request: object, more: { jti: string; block?: string }) => {
      const client = await installation.connect({ replyTo: `r${randomUUID().slice(0, 8)}` })
      const result = await client.call(kind as 'report', request, { ...more, timeoutMs: 300_000 })
      await client.close()
      return result
    }
    return {
      'token-create': jti => call('token-create', { token_scope, ...card }, { jti }),
      'token-update': jti => call('token-update', { id, card_holder_name: 'A NAME' }, { jti }),
      'token-lifecycle': jti => call('token-lifecycle', { id, action: 'SUSPEND' }, { jti }),
      refused: jti => call('token-lifecycle', { id: `t${'0'.repeat(26)}`, action: 'SUSPEND' }, { jti }),
      reference: jti => call('reference', { token_scope, provider: 'p', card_id: 'c', action: 'RELEASE' }, { jti }),
      report: jti =>
        call(
          'report',
          {
            ...{ report_type: 'MERCHANT_SETTLEMENT_REPORT', entity_id: ENTITY, mime_type: 'text/csv' },
            parameters: { clearingDate: '2026-01-05' },
          },
          { jti },
        ),
      'transaction-batch': async name =>
        call(
          'transaction-batch',
          {
            ...{ batch_id: name, chunk: 0 },
            transactions: [{ line: 1, transaction: transactionOf(0, { entity: ENTITY, seed: 'keys' }) }],
          },
          { jti: `${name}-0` },
        ),
      'token-batch': async name => {
        const plan = {
          ...{ batchId: name, recordKind: 'token-create' as const, tokenScope: token_scope, acceptedAt: accepted },
          captureKey,
        }
        const cards = [3, 4].map(n => ({ cardNumber: testPan(n), expiryMonth: 12, expiryYear: 2031 }))
        const lines = cards.map((card, index) => JSON.stringify({ line: index + 2, request: { card } }))
        const ask = await tokenBatch(credentials.signingKey.clientId, plan, { lines, number: 0 })
        if ('refused' in ask) throw new Error(ask.reason)
        return call('token-batch', ask.request, { jti: ask.jti, ...(ask.block ? { block: ask.block } : {}) })
      },
    }
  }

  it('are answered from their receipts before the keys are written, in between, and after', async () => {
    const kinds = await jobs()
    const first = new Map<string, unknown>()
    for (const [kind, send] of Object.entries(kinds)) first.set(kind, actedOn(await send(`before-${kind}`)))
    const counts = async () => [
      await count('tokenmill.receipt'),
      await count('tokenmill.token'),
      // Each change of a token raises its version.
      await count('tokenmill.token cross join generate_series(1, version)'),
      await count('tokenmill.transaction'),
      await count('(select distinct receipt_id from tokenmill.receipt) as one'),
    ]
    const then = await counts()
    async function expectAnswered(): Promise<void> {
      for (const [kind, send] of Object.entries(kinds))
        expect([kind, actedOn(await send(`before-${kind}`))]).toEqual([kind, first.get(kind)])
      expect(await counts()).toEqual(then)
    }
    await expectAnswered()
    await forgetKeys()
    expect(await count('tokenmill.receipt_key')).toBe(0)
    await expectAnswered()
    // The upgrade is killed after one page of three keys.
    let left = 2
    const dying: Store = {
      ...store,
      transaction: (work, options) => {
        left -= 1
        return left < 0 ? Promise.reject(new Error('a crash')) : store.transaction(work, options)
      },
    }
    await expect(receiptKeys.fill(dying, { page: 3 })).rejects.toThrow('a crash')
    expect(await count('tokenmill.receipt_key where day is not null')).toBe(3)
    await expectAnswered()
    await Promise.all([receiptKeys.fill(store, { page: 1 }), expectAnswered()])
    expect(await count('tokenmill.receipt_fill where is_filled')).toBe(1)
    await expectAnswered()
    expect(await count('tokenmill.receipt_key where day is not null')).toBe(then[0])
  })
})
