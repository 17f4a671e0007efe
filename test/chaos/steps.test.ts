// A worker that is killed while a job stands at one of its steps: the next worker does the job once.
import { expect, it } from 'vitest'
import { panOf } from '../../bin/sample/pan.ts'
import { until } from '../support/until.ts'
import { type Chaos, childrenRunning, describeChaos, kill9, newScope } from './bundle.ts'

/** The table that holds a job back at a step while others have it locked. */
const STEPS = {
  'who sent it is looked up': 'client_key',
  'its receipt is looked up': 'receipt_key',
  'its card is looked up': 'card',
  'its receipt is claimed and its token written': 'token',
  'its receipt is written': 'receipt',
  'its answer is stored, last in its transaction': 'outbox',
} as const

for (const engine of ['redis', 'postgres'] as const)
  describeChaos('a job whose worker is killed', engine, chaos => {
    it('at each step has one effect and one answer', async () => {
      const { installation } = chaos
      const token_scope = await newScope(chaos)
      await installation.startWorkers({ roles: ['interactive'] })
      const client = await installation.connect({ replyTo: 'own' })
      for (const [index, [step, table]] of Object.entries(STEPS).entries()) {
        const card = await client.encryptCard({ cardNumber: panOf(index, 4_321), expiryMonth: 12, expiryYear: 2031 })
        const jti = `step-${index}`
        let answer: ReturnType<typeof client.call> | undefined
        await installation.vault.store.transaction(async db => {
          await db.query({ text: `lock table tokenmill.${table} in access exclusive mode` })
          answer = client.call('token-create', { token_scope, ...card }, { jti })
          answer.catch(() => undefined)
          await until(async () => (await waitingFor(chaos, table)) > 0, { what: `the worker to stand where ${step}` })
          kill9(childrenRunning('worker-process'))
        })
        const result = await answer
        expect(result?.status, step).toBe('SUCCEEDED')
        const [found] = await chaos.ask<Record<string, number>>(
          `select
            (select count(*)::int from tokenmill.token where token_id = r.token_id) as tokens,
            (select count(*)::int from tokenmill.card where token_id = r.token_id) as cards,
            count(*)::int as receipts
          from tokenmill.receipt as r
          where jti = $1
          group by token_id`,
          [jti],
        )
        expect(found, step).toEqual({ tokens: 1, cards: 1, receipts: 1 })
      }
      const [all] = await chaos.ask<{ n: number }>(
        'select count(*)::int as n from tokenmill.token where token_scope = $1',
        [token_scope],
      )
      expect(all?.n).toBe(Object.keys(STEPS).length)
    })
  })

/** How many connections wait for a lock of the table. */
async function waitingFor({ ask }: Chaos, table: string): Promise<number> {
  const [waiting] = await ask<{ n: number }>(
    `select count(*)::int as n
    from pg_locks
    where not granted and relation = $1::regclass`,
    [`tokenmill.${table}`],
  )
  return waiting?.n ?? 0
}
