// Only attempts that were recorded are counted, each once.
import { expect, it } from 'vitest'
import { openWebhook } from '../../../workers/webhook.ts'

const judged = { tried: { next: { state: 'DELIVERED' }, status: 204, reason: null }, endpoint: undefined } as const

it('an attempt is counted once its record is committed, once, and not where another one counts', async () => {
  const counted: unknown[] = []
  const deps = { metrics: { webhooks: { inc: (labels: unknown) => counted.push(labels) } } } as never
  const work = { request: { delivery_id: 'd', attempt: 1 } } as never
  const webhook = openWebhook({} as never)
  const decision = await webhook.decide(work, { outgoing: { disabledAt: null } as never, judged }, deps)
  if (!('save' in decision)) return expect.fail('it saves')
  const save = (count: number) => decision.save({ query: async () => ({ count, rows: [] }) } as never)
  await save(1)
  const answer = await save(1)
  expect(counted).toEqual([])
  decision.saved?.(answer)
  expect(counted).toEqual([{ outcome: 'delivered' }])
  decision.saved?.(await save(0))
  expect(counted).toHaveLength(1)
})
