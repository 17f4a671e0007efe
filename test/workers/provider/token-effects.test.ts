// Notifications, differences between store and network, and reversals of operations with an effect at the network.
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { provisionId } from '../../../src/job/envelope/ids.ts'
import { settlesWithin } from '../../../src/queue/bounded-call.ts'
import type { Store } from '../../../src/store/pool.ts'
import * as schemeNotices from '../../../src/store/provider/scheme-notices.ts'
import { workDue, workNotices } from '../../../workers/provider/reconcile/loop.ts'
import { sweep } from '../../../workers/provider/reconcile/sweep.ts'
import { reconcileNow } from '../../../workers/provider/token-effects.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { latestAudits } from './audits.ts'
import { type Job, openWorld, type World } from './bundle.ts'

describeStore('a scheme token', engine => {
  let installation: Installation
  let world: World
  let cards = 0
  beforeAll(async () => {
    installation = await openInstallation(engine)
  })
  afterAll(() => installation?.close())
  beforeEach(async () => {
    world = await openWorld(installation)
  })

  async function make(): Promise<string> {
    cards += 1
    const card = await world.cardOf(testPan(cards))
    const result = await world.ask('token-create', { token_scope: installation.scope, ...card })
    return String(result.record?.['reuse_token'])
  }
  async function active() {
    const id = await make()
    await world.ask('scheme-token', { id, action: 'ACTIVATE' })
    const [token] = world.network.live()
    if (!token) throw new Error('no token was made')
    return { id, reference: token.reference }
  }
  const notice = (reference: string) =>
    schemeNotices.insertAll(installation.vault.store, 'mdes', [reference], world.deps.clock())
  const shown = async (id: string) => (await world.ask('token-update', { id })).record?.['scheme_token']
  const eventsOf = () => world.told.filter(one => one.type === 'event')
  const reverse = async ({ receiptId, envelope }: Job) => {
    const job = world.job('reversal', { receipt_id: receiptId, envelope }, { bySystem: true })
    const disposition = await world.attempt(job)
    if (!('done' in disposition)) world.queued.push(job)
    await world.calm()
  }

  it('is active again only when the last of those who suspended it lifts', async () => {
    const { id, reference } = await active()
    world.network.befall(reference, 'suspend')
    await notice(reference)
    await workNotices(world.deps)
    expect(await shown(id)).toMatchObject({ status: 'SUSPENDED' })
    await world.ask('scheme-token', { id, action: 'SUSPEND' })
    world.network.befall(reference, 'resume')
    await notice(reference)
    await workNotices(world.deps)
    expect(await shown(id)).toMatchObject({ status: 'SUSPENDED' })
    await world.ask('scheme-token', { id, action: 'ACTIVATE' })
    expect(await shown(id)).toMatchObject({ status: 'ACTIVE' })
  })

  it('suspended by its issuer alone isn’t ours to resume', async () => {
    const { id, reference } = await active()
    world.network.befall(reference, 'suspend')
    await notice(reference)
    await workNotices(world.deps)
    expect((await world.ask('scheme-token', { id, action: 'ACTIVATE' })).record?.['scheme_token']).toMatchObject({
      status: 'SUSPENDED',
    })
    expect(world.network.calls).not.toContain('resume')
  })

  it('changed while an answer waits for it is told by that answer, however long the change takes to commit', async () => {
    const { id, reference } = await active()
    const { store } = installation.vault
    const { rows } = await store.query<{ provision_id: string }>({
      text: 'select provision_id from tokenmill.scheme_token where reference = $1',
      values: [reference],
    })
    world.network.befall(reference, 'suspend')
    const written = Promise.withResolvers<void>()
    const commit = Promise.withResolvers<void>()
    const slow: Store['transaction'] = (work, options) =>
      store.transaction(async db => {
        const done = await work(db)
        written.resolve()
        await commit.promise
        return done
      }, options)
    const deps = { ...world.deps, store: { ...store, transaction: slow } }
    const answerable = reconcileNow(
      rows.map(row => row.provision_id),
      deps,
    )
    await written.promise
    // Longer than an answer waits for a network.
    expect(await settlesWithin(3_000, answerable)).toBe(false)
    commit.resolve()
    await answerable
    expect(await shown(id)).toMatchObject({ status: 'SUSPENDED' })
    await world.calm()
    expect(eventsOf().filter(event => JSON.stringify(event).includes(id))).toEqual([])
  })

  it('is told of once per change, however often and in whatever order its network announces', async () => {
    const { reference } = await active()
    world.network.befall(reference, 'suspend')
    world.network.befall(reference, 'resume')
    world.network.befall(reference, 'expiry')
    for (let n = 0; n < 3; n += 1) {
      await notice(reference)
      await workNotices(world.deps)
    }
    expect(eventsOf()).toMatchObject([{ data: { changed: ['expiry'], scheme_token: { status: 'VALID' } } }])
    world.network.befall(reference, 'delete')
    await notice(reference)
    await workNotices(world.deps)
    expect(eventsOf().at(-1)).toMatchObject({ data: { changed: expect.arrayContaining(['status']) } })
    expect(eventsOf()).toHaveLength(2)
  })

  it('that changed unannounced is found by the sweep, which leaves an audit row', async () => {
    const { id, reference } = await active()
    world.network.befall(reference, 'suspend')
    expect(await shown(id)).toMatchObject({ status: 'ACTIVE' })
    world.wait(3_700_000)
    expect(await sweep(world.deps)).toBeGreaterThan(0)
    expect(await shown(id)).toMatchObject({ status: 'SUSPENDED' })
    expect(eventsOf()).toHaveLength(1)
    const found = await latestAudits(installation.vault.store, 50)
    expect(found.find(({ subject }) => subject === reference)).toMatchObject({
      action: 'scheme.drift',
      subject: reference,
      detail: { what: 'state' },
    })
  })

  it('that its network doesn’t know is reported once, and kept: the network set up may be another', async () => {
    const { id, reference } = await active()
    world.network.tokens.clear()
    for (let hour = 0; hour < 3; hour += 1) {
      world.wait(3_700_000)
      expect(await sweep(world.deps)).toBeGreaterThan(0)
    }
    expect(await shown(id)).toMatchObject({ status: 'ACTIVE' })
    const found = await latestAudits(installation.vault.store, 50)
    expect(found.filter(({ subject }) => subject === reference)).toMatchObject([{ detail: { what: 'missing' } }])
  })

  it('of its card that nobody here made is reported, and left alone', async () => {
    await active()
    const [known] = world.network.live()
    const orphan = { ...known, reference: `${known?.reference}-ORPHAN`, id: provisionId('x', 'y', 1) }
    world.network.tokens.set(orphan.reference, { ...orphan, suspendedBy: new Set() } as never)
    world.wait(3_700_000)
    await sweep(world.deps)
    const found = (await latestAudits(installation.vault.store, 5)).filter(
      ({ subject }) => subject === orphan.reference,
    )
    expect(found).toMatchObject([{ action: 'scheme.drift', detail: { what: 'orphan' } }])
    expect(world.network.live()).toHaveLength(2)
  })

  it('is deleted by the reversal of what provisioned it, and resumed or suspended by that of its opposite', async () => {
    const id = await make()
    const activated = world.job('scheme-token', { id, action: 'ACTIVATE' })
    await world.run(activated)
    await reverse(activated)
    expect(world.network.live()).toEqual([])
    expect(world.resultOf(activated.receiptId)).toMatchObject({ code: 500, error: { reversal_status: 'COMPLETED' } })
    expect(await shown(id)).toBeUndefined()
    await world.ask('scheme-token', { id, action: 'ACTIVATE' })
    const suspended = world.job('token-update', { id, card_holder_name: 'BEN', scheme_token_action: 'SUSPEND' })
    await world.run(suspended)
    await reverse(suspended)
    expect(world.network.live()).toMatchObject([{ state: 'ACTIVE' }])
    expect((await world.ask('token-update', { id })).record).not.toHaveProperty('card_holder_name')
    await world.ask('scheme-token', { id, action: 'SUSPEND' })
    const resumed = world.job('scheme-token', { id, action: 'ACTIVATE' })
    await world.run(resumed)
    await reverse(resumed)
    expect(world.network.live()).toMatchObject([{ state: 'SUSPENDED' }])
  })

  it('that somebody has built on is left by a reversal', async () => {
    const id = await make()
    const activated = world.job('scheme-token', { id, action: 'ACTIVATE' })
    await world.run(activated)
    await world.ask('scheme-token', { id, action: 'SUSPEND' })
    await reverse(activated)
    expect(world.network.live()).toMatchObject([{ state: 'SUSPENDED' }])
    expect(world.resultOf(activated.receiptId)).toMatchObject({ error: { reversal_status: 'COMPLETED' } })
  })

  it('that somebody was told stands as it is stays so, whoever made it so', async () => {
    const id = await make()
    const states = { ACTIVATE: 'ACTIVE', SUSPEND: 'SUSPENDED' }
    for (const action of ['ACTIVATE', 'SUSPEND', 'ACTIVATE'] as const) {
      const first = world.job('scheme-token', { id, action })
      await world.run(first)
      expect(await world.ask('scheme-token', { id, action })).toMatchObject({ code: 200 })
      await reverse(first)
      expect(world.network.live()).toMatchObject([{ state: states[action] }])
      expect(await shown(id)).toMatchObject({ status: states[action] })
    }
  })

  it('gets another one within one job that asked for one and then names another card', async () => {
    const id = await make()
    const both = { id, scheme_token_action: 'ACTIVATE', ...(await world.cardOf(testPan(700_001))) }
    expect(await world.ask('token-update', both)).toMatchObject({ code: 200 })
    expect(world.network.live()).toHaveLength(1)
  })

  it('is undone by a reversal for as long as the network is away, and the caller is told REQUIRED meanwhile', async () => {
    const id = await make()
    const activated = world.job('scheme-token', { id, action: 'ACTIVATE' })
    await world.run(activated)
    world.network.otherwise = () => 'again'
    const { receiptId: receipt_id, envelope } = activated
    const reversal = world.job('reversal', { receipt_id, envelope }, { bySystem: true })
    for (let n = 0; n < 12; n += 1) {
      world.wait(10_000)
      expect(await world.attempt(reversal)).toHaveProperty('deferMs')
    }
    expect(await world.run(activated)).toMatchObject({ code: 500, error: { reversal_status: 'REQUIRED' } })
    world.network.otherwise = () => 'none'
    world.queued.push(reversal)
    await world.calm()
    expect(world.network.live()).toEqual([])
    expect(world.resultOf(activated.receiptId)).toMatchObject({ error: { reversal_status: 'COMPLETED' } })
  })

  it('is provisioned for the former card again, where a reversal gives that back', async () => {
    const { id } = await active()
    const [before] = world.network.live()
    cards += 1
    const relinked = world.job('token-update', { id, ...(await world.cardOf(testPan(cards))) })
    await world.run(relinked)
    expect(world.network.live().map(({ pan }) => pan)).toEqual([testPan(cards)])
    await reverse(relinked)
    expect(world.network.live().map(({ pan }) => pan)).toEqual([before?.pan])
  })

  it('whose job was reversed before it ended leaves nothing behind', async () => {
    const id = await make()
    const job = world.job('scheme-token', { id, action: 'ACTIVATE' })
    world.network.onCall = async (name, moment) => {
      if (name !== 'provision' || moment !== 'after') return
      world.network.onCall = () => {}
      const { receiptId: receipt_id, envelope } = job
      const reversal = world.job('reversal', { receipt_id, envelope }, { bySystem: true })
      expect(await world.attempt(reversal)).toHaveProperty('deferMs')
      world.queued.push(reversal)
    }
    expect(await world.attempt(job)).toHaveProperty('deferMs')
    await world.calm()
    expect(await world.run(job)).toMatchObject({ code: 500, error: { reversal_status: 'COMPLETED' } })
    expect(world.network.tokens.size).toBe(1)
    expect(world.network.live()).toEqual([])
  })

  it.each(['reversed', 'expired'] as const)(
    'whose effect the loop learned first goes back where its job is then %s',
    async end => {
      const id = await make()
      const statesOf = () => world.network.live().map(({ state }) => state)
      for (const [action, before] of [
        ['ACTIVATE', []],
        ['SUSPEND', ['ACTIVE']],
        ['ACTIVATE', ['SUSPENDED']],
      ] as const) {
        expect(statesOf()).toEqual(before)
        // The call has its effect; its answer is lost, and the job isn't worked again in time.
        world.network.script.push('lost-after')
        world.network.otherwise = () => 'again'
        const job = world.job('scheme-token', { id, action }, { expiresInMs: 60_000 })
        expect(await world.attempt(job)).not.toHaveProperty('done')
        world.network.otherwise = () => 'none'
        world.wait(61_000)
        expect(await workDue(world.deps)).toBe(1)
        const after = statesOf()
        expect(after).not.toEqual(before)
        if (end === 'reversed') await reverse(job)
        else expect(await world.run({ ...job, attempt: job.attempt + 1 })).toMatchObject({ status: 'FAILED' })
        await world.calm()
        expect(statesOf()).toEqual(before)
        const result = end === 'reversed' ? await world.run(job) : world.resultOf(job.receiptId)
        expect(result).toMatchObject({ error: { reversal_status: 'COMPLETED' } })
        expect(await world.ask('scheme-token', { id, action })).toMatchObject({ code: 200 })
      }
    },
  )
})
