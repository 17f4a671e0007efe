// Single jobs that are written in sets, whose worker is killed while it has many of them in progress.
import { expect, it } from 'vitest'
import { panOf } from '../../bin/sample/pan.ts'
import { until } from '../support/until.ts'
import { childrenRunning, describeChaos, kill9, newScope } from './bundle.ts'

const CARDS = 192
const IN_HAND = 64

describeChaos('single jobs', 'redis', chaos => {
  it('are each done once and answered, though their worker was killed with 64 in hand, and once more', async () => {
    const { installation } = chaos
    const token_scope = await newScope(chaos)
    const workers = await installation.startWorkers({ roles: ['interactive'] })
    // Its results come in sets.
    const client = await installation.connect({ replyTo: 'own' })
    const items = await Promise.all(
      Array.from({ length: CARDS }, async (_, index) => ({
        kind: 'token-create' as const,
        jti: `create-${index}`,
        request: {
          token_scope,
          ...(await client.encryptCard({ cardNumber: panOf(index, 77), expiryMonth: 12, expiryYear: 2031 })),
        },
      })),
    )
    const count = async (text: string) =>
      (await chaos.ask<{ n: number }>(`select count(*)::int as n from ${text}`))[0]?.n
    const inHand = async () => (await installation.queues.depth('token-create')).active
    const answers = new Map<string, unknown>()
    const working = (async () => {
      for await (const { item, result } of client.bulk(items, { inFlight: CARDS }))
        answers.set(item.jti, [...((answers.get(item.jti) as unknown[]) ?? []), result.record?.['reuse_token']])
    })()
    // The lock keeps every process from writing outbox rows, so all jobs that the worker takes stay in progress.
    await installation.vault.store.transaction(async db => {
      await db.query({ text: 'lock table tokenmill.outbox in access exclusive mode' })
      await until(async () => (await inHand()) === IN_HAND, { what: 'the worker to have its hands full' })
      kill9(childrenRunning('worker-process'))
    })
    expect(await count('tokenmill.receipt')).toBe(0)
    await until(async () => ((await count('tokenmill.receipt')) ?? 0) >= IN_HAND, {
      what: 'the next worker to be busy',
    })
    kill9(childrenRunning('worker-process'))
    await working
    expect([...answers.values()].map(told => (told as unknown[]).length)).toEqual(Array(CARDS).fill(1))
    expect(new Set([...answers.values()].flat()).size).toBe(CARDS)
    const of = (table: string) => `tokenmill.${table} where token_id is not null`
    expect(await count(of('token'))).toBe(CARDS)
    expect(await count(of('card'))).toBe(CARDS)
    expect(await count(`${of('receipt')} and status = 'SUCCEEDED'`)).toBe(CARDS)
    // Otherwise the test would say nothing about sets.
    const largest = '(select count(*) as jobs from tokenmill.receipt group by xmin order by 1 desc limit 1) as largest'
    expect(await count(`${largest} where jobs > 1`)).toBe(1)
    expect(await count('(select receipt_id from tokenmill.receipt group by 1 having count(*) > 1) as twice')).toBe(0)
    expect(
      (
        await chaos.ask<{ n: number }>('select sum(misses)::int as n from tokenmill.guess where token_scope = $1', [
          token_scope,
        ])
      )[0]?.n,
    ).toBe(CARDS)
    await workers.close()
  })
})
