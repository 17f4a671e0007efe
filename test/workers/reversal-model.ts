// The model of what the senders of one job are told: any interleaving of envelopes over HTTP, over HTTP with a 202 and on the
// queue, of answers, time-outs, reversals and deaths of workers. Jobs walk the real line with a real store.
import { randomUUID } from 'node:crypto'
import * as fc from 'fast-check'
import type { Kind } from '../../src/job/composition.ts'
import type { ReceivedJob } from '../../src/queue/engine.ts'
import * as operations from '../../src/store/job/operations.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import type { Store } from '../../src/store/pool.ts'
import { ENTITY } from '../support/installation.ts'
import type { Job, World } from './provider/bundle.ts'

/** `signsTwice`: as a gateway does whose first envelope a worker of another release refused. */
const Sender = fc.record({ by: fc.constantFrom('http', 'http', 'later', 'queue'), signsTwice: fc.boolean() })
const Deed = fc.record({
  what: fc.constantFrom('send', 'send', 'deliver', 'give up', 'give up', 'reverse', 'reverse'),
  sender: fc.nat({ max: 3 }),
  /** The worker dies at this call of the store. */
  dies: fc.option(fc.nat({ max: 12 }), { freq: 5, nil: null }),
  /** Done at the same time as the next deed. */
  beside: fc.boolean(),
})
export const Play = fc.record({
  senders: fc.array(Sender, { minLength: 2, maxLength: 4 }),
  deeds: fc.array(Deed, { minLength: 4, maxLength: 24 }),
})
type Play = typeof Play extends fc.Arbitrary<infer T> ? T : never

interface Asking {
  by: 'http' | 'later' | 'queue'
  jobs: readonly Job[]
  isStored: boolean
  isGivenUp: boolean
  told: Set<'success' | 'undone' | 'standing'>
}

export interface Asked {
  kind: Kind
  request: Record<string, unknown>
}

/** Plays and returns what each sender was told, however late. */
export async function play(world: World, store: Store, { senders, deeds }: Play, { kind, request }: Asked) {
  const jti = randomUUID()
  const askings: Asking[] = senders.map(({ by, signsTwice }, n) => {
    const sign = (time: number) =>
      world.job(kind, request, { jti, bySystem: by !== 'queue', expiresInMs: 600_000 + n * 2_000 + time * 1_000 })
    const jobs = by === 'http' && signsTwice ? [sign(0), sign(1)] : [sign(0)]
    return { by, jobs, isStored: false, isGivenUp: false, told: new Set() }
  })
  let read = world.told.length
  const reversals: (ReceivedJob & { asking: Asking; receiptId: string })[] = []

  /** Each sender takes the results that answer an envelope of its own, as long as it waits. */
  function deliver(): void {
    for (const result of world.told.slice(read)) {
      if (result.type !== 'result') continue
      const reversal = reversals.find(({ receiptId }) => receiptId === result.receipt_id)
      const status = result.record?.['reversal_status']
      if (reversal && status === 'COMPLETED') reversal.asking.told.add('undone')
      if (reversal && status === 'NONE') reversal.asking.told.add('standing')
      const own = askings.find(({ jobs }) => jobs.some(({ envelope }) => envelope === result.envelope))
      if (!own || own.isGivenUp || own.by === 'later') continue
      if (result.status === 'SUCCEEDED') own.told.add('success')
      else if (result.error?.reversal_status === 'COMPLETED') own.told.add('undone')
    }
    read = world.told.length
  }
  async function send(asking: Asking): Promise<void> {
    const [job] = asking.jobs as [Job]
    if (asking.by === 'later' && !asking.isStored) {
      const { receiptId, data } = job
      const { jws } = data as { jws: string }
      const times = { acceptedAt: Date.now(), expiresAt: Date.now() + 600_000, dueAt: Date.now() }
      asking.isStored = await operations.accept(store, {
        receiptId,
        clientId: 'c',
        entityId: ENTITY,
        kind,
        jobId: job.id,
        refusalId: randomUUID(),
        jws,
        ...times,
        requestDigest: Buffer.alloc(32),
      })
      if (!asking.isStored) return
    }
    for (const one of asking.jobs) await world.attempt({ ...one })
  }
  /** A caller asks for its operation. */
  async function poll(asking: Asking): Promise<void> {
    const [{ receiptId }] = asking.jobs as [Job]
    if (!asking.isStored || (await operations.findSigns(store, [receiptId])).length === 0) return
    const receipt = await receipts.find(store, receiptId)
    if (receipt?.status === 'SUCCEEDED') asking.told.add('success')
    if (receipt?.status === 'CANCELLED') asking.told.add('undone')
  }
  function giveUp(asking: Asking): void {
    if (asking.by !== 'http' || asking.isGivenUp || asking.told.size > 0) return
    asking.isGivenUp = true
    const names = asking.jobs.map(({ envelope }) => envelope)
    const [envelope, ...earlier] = names.reverse() as [string, ...string[]]
    const [{ receiptId: receipt_id }] = asking.jobs as [Job]
    const request = { receipt_id, envelope, ...(earlier.length > 0 ? { earlier } : {}) }
    reversals.push({ ...world.job('reversal', request, { bySystem: true }), asking })
  }
  async function perform(what: Play['deeds'][number]['what'], asking: Asking): Promise<void> {
    if (what === 'send') return send(asking)
    if (what === 'give up') return giveUp(asking)
    if (what === 'deliver') return asking.by === 'later' ? poll(asking) : deliver()
    for (const reversal of reversals.filter(one => one.asking === asking)) await world.attempt({ ...reversal })
  }

  let beside: Promise<unknown>[] = []
  for (const { what, sender, dies, beside: isBeside } of deeds) {
    if (dies !== null) world.dieAt(dies)
    const asking = askings[sender % askings.length] as Asking
    beside.push(
      perform(what, asking).catch(error => {
        // What a dead worker would have done is left.
        if (!world.isDead()) throw error
      }),
    )
    if (isBeside && beside.length < 3) continue
    await Promise.all(beside)
    beside = []
    world.revive()
  }
  await Promise.all(beside)
  world.revive()
  // In the end every reversal is done, and every caller reads what came for it.
  for (const asking of askings) {
    await perform('reverse', asking)
    await poll(asking)
  }
  deliver()
  return { askings, receipt: await receipts.find(store, askings[0]?.jobs[0]?.receiptId ?? '') }
}
