// Notifications, differences between store and network, and reversals of operations with an effect at the network.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { provisionId } from '../../../src/job/envelope/ids.ts'
import { settlesWithin } from '../../../src/queue/bounded-call.ts'
import type { Store } from '../../../src/store/pool.ts'
import * as schemeNotices from '../../../src/store/provider/scheme-notices.ts'
import * as guesses from '../../../src/store/token/guesses.ts'
import * as tokens from '../../../src/store/token/tokens.ts'
import { parseReuseToken } from '../../../src/token/token.ts'
import { workDue, workNotices } from '../../../workers/provider/reconcile/loop.ts'
import { sweep } from '../../../workers/provider/reconcile/sweep.ts'
import { reconcileNow } from '../../../workers/provider/token-effects.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { volume } from '../../support/volume.ts'
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

  describe('asked for beside another number', () => {
    const nextPan = () => {
      cards += 1
      return testPan(cards)
    }
    const tokenOf = async (id: string) => {
      const [row] = await tokens.findByIds(installation.vault.store, [parseReuseToken(id) ?? ''])
      return row
    }
    /** A token with an active scheme token. */
    async function begin() {
      const pan = nextPan()
      const made = await world.ask('token-create', { token_scope: installation.scope, ...(await world.cardOf(pan)) })
      const id = String(made.record?.['reuse_token'])
      await world.ask('scheme-token', { id, action: 'ACTIVATE' })
      return { id, pan }
    }
    const patchOf = async (id: string, pan: string) =>
      world.job('token-update', { id, scheme_token_action: 'ACTIVATE', ...(await world.cardOf(pan)) })
    /** The process dies when the network has made the scheme token. Another one is started. */
    async function dieAfterProvisioning(job: Job) {
      world.network.onCall = (name, moment) => {
        if (name === 'provision' && moment === 'after') world.dieAt(2)
      }
      await world.attempt(job).catch(() => {})
      expect(world.isDead()).toBe(true)
      world.network.onCall = () => {}
      world.revive()
    }
    /** The token has this card, and it alone has a scheme token: the one that the token shows. Nothing is left to do. */
    async function expectCard(id: string, pan: string) {
      const { store } = installation.vault
      await world.calm()
      const row = await tokenOf(id)
      expect(row?.lastFour).toBe(pan.slice(-4))
      const { rows } = await store.query<Record<string, unknown>>({
        text: `select reference, current, due_at, lease, asked, retired_at from tokenmill.scheme_token
where token_id = $1 and state not in ('DELETED', 'VOID')`,
        values: [row?.tokenId],
      })
      const live = world.network.live().filter(token => pans.get(id)?.has(token.pan))
      expect(live.map(token => token.pan)).toEqual([pan])
      expect(rows).toEqual([
        { reference: live[0]?.reference, current: true, due_at: null, lease: null, asked: null, retired_at: null },
      ])
      expect((await store.query({ text: OWED })).rows).toEqual([])
      expect(await shown(id)).toMatchObject({ status: 'ACTIVE' })
    }
    const OWED = `select receipt_id from tokenmill.scheme_intent where reversal = 'REQUIRED' or state = 'INTENDED'`
    /** The cards that the tokens of a test could have, by token. */
    const pans = new Map<string, Set<string>>()
    async function beginAnew() {
      const made = await begin()
      const other = nextPan()
      pans.set(made.id, new Set([made.pan, other]))
      return { ...made, other }
    }

    it('is the new card’s from the commit on, and the former card’s until then', async () => {
      const { id, pan, other } = await beginAnew()
      const former = await shown(id)
      world.network.onCall = async (name, moment) => {
        if (name !== 'provision' || moment !== 'after') return
        world.network.onCall = () => {}
        expect(await shown(id)).toEqual(former)
        expect((await tokenOf(id))?.lastFour).toBe(pan.slice(-4))
      }
      const calls = world.network.calls.length
      const result = await world.run(await patchOf(id, other))
      expect(result).toMatchObject({ code: 200, record: { scheme_token: { status: 'ACTIVE' } } })
      expect(result.record?.['scheme_token']).not.toEqual(former)
      expect(world.network.calls.slice(calls)).toEqual(['provision', 'delete'])
      await expectCard(id, other)
      expect(eventsOf()).toEqual([])
    })

    it.each(['lost-before', 'lost-after'] as const)('is made once where the network’s answer is %s', async mishap => {
      const { id, other } = await beginAnew()
      const made = world.network.tokens.size
      world.network.script.push(mishap)
      expect(await world.run(await patchOf(id, other))).toMatchObject({ code: 200 })
      expect(world.network.tokens.size - made).toBe(1)
      await expectCard(id, other)
    })

    it('of a network whose answer stays lost is a 500 that changes nothing, and is undone there', async () => {
      const { id, pan, other } = await beginAnew()
      world.network.script.push('lost-after')
      world.network.otherwise = () => 'again'
      const job = await patchOf(id, other)
      expect(await world.run(job)).toMatchObject({ code: 500, error: { reversal_status: 'REQUIRED' } })
      expect(world.network.live()).toHaveLength(2)
      world.network.otherwise = () => 'none'
      await expectCard(id, pan)
      expect(world.resultOf(job.receiptId)).toMatchObject({ code: 500, error: { reversal_status: 'COMPLETED' } })
    })

    it('of a network that stays away is a 500 that leaves nothing behind, and its jti is free', async () => {
      const { id, pan, other } = await beginAnew()
      world.network.otherwise = () => 'again'
      const job = await patchOf(id, other)
      expect(await world.run(job)).toMatchObject({ code: 500, error: { reversal_status: 'NONE' } })
      world.network.otherwise = () => 'none'
      await expectCard(id, pan)
      expect(await world.run(job)).toMatchObject({ code: 200 })
      await expectCard(id, other)
    })

    it('is not the card’s of another request under the same jti, whose process died', async () => {
      const { id, other } = await beginAnew()
      const job = await patchOf(id, other)
      await dieAfterProvisioning(job)
      const third = nextPan()
      pans.get(id)?.add(third)
      const { jti } = job
      const request = { id, scheme_token_action: 'ACTIVATE', ...(await world.cardOf(third)) }
      expect(await world.ask('token-update', request, { jti })).toMatchObject({ code: 200 })
      await expectCard(id, third)
    })

    it('is deleted there where another token has got the card meanwhile', async () => {
      const { id, pan, other } = await beginAnew()
      world.network.onCall = async (name, moment) => {
        if (name !== 'provision' || moment !== 'after') return
        world.network.onCall = () => {}
        await world.ask('token-create', { token_scope: installation.scope, ...(await world.cardOf(other)) })
      }
      const job = await patchOf(id, other)
      expect(await world.run(job)).toMatchObject({
        code: 400,
        error: { details: { 'body.encrypted_card': { code: 'pan_taken' } } },
      })
      expect(world.resultOf(job.receiptId)?.error?.reversal_status).toBe('REQUIRED')
      await expectCard(id, pan)
      expect(world.resultOf(job.receiptId)).toMatchObject({ code: 400, error: { reversal_status: 'COMPLETED' } })
      // A card that has a token is known before the network is asked.
      const calls = world.network.calls.length
      expect(await world.run(await patchOf(id, other))).toMatchObject({ code: 400, error: { reversal_status: 'NONE' } })
      expect(world.network.calls).toHaveLength(calls)
    })

    it('is deleted there where its token is deleted meanwhile', async () => {
      const { id, other } = await beginAnew()
      world.network.onCall = async (name, moment) => {
        if (name !== 'provision' || moment !== 'after') return
        world.network.onCall = () => {}
        await world.ask('token-lifecycle', { id, action: 'DELETE' })
      }
      const job = await patchOf(id, other)
      expect(await world.run(job)).toMatchObject({ code: 404, error: { reversal_status: 'REQUIRED' } })
      await world.calm()
      expect(world.network.live()).toEqual([])
      expect(world.resultOf(job.receiptId)).toMatchObject({ code: 404, error: { reversal_status: 'COMPLETED' } })
    })

    it('counts a card that the network declines as a guess, as a card that gets the token', async () => {
      const { id, other } = await beginAnew()
      const { bin } = (await tokenOf(id)) ?? {}
      const { clientId } = installation.credentials.signingKey
      const guess = { clientId, tokenScope: installation.scope, digits: `${bin}${other.slice(-4)}` }
      const misses = async () => (await guesses.countAll(installation.vault.store, [guess]))[0] ?? 0
      const former = await misses()
      world.network.script.push({ refused: 'card_declined' })
      const job = await patchOf(id, other)
      expect(await world.run(job)).toMatchObject({ code: 400, error: { reversal_status: 'NONE' } })
      await world.run(job)
      expect((await misses()) - former).toBe(1)
    })

    it('changed by its issuer before the commit is told to nobody, and shown as it is then', async () => {
      const { id, other } = await beginAnew()
      const job = await patchOf(id, other)
      await dieAfterProvisioning(job)
      await world.calm()
      const [made] = world.network.live().filter(token => token.pan === other)
      world.network.befall(made?.reference ?? '', 'suspend')
      await notice(made?.reference ?? '')
      await workNotices(world.deps)
      await sweep(world.deps, 0)
      await world.calm()
      expect(eventsOf()).toEqual([])
      expect(await world.run(job)).toMatchObject({ code: 200, record: { scheme_token: { status: 'SUSPENDED' } } })
    })

    it('by two at once belongs to the card that the token has in the end, and the others are deleted', async () => {
      for (let round = 0; round < 3; round += 1) {
        const { id, other } = await beginAnew()
        const third = round === 0 ? other : nextPan()
        pans.get(id)?.add(third)
        const beside = await openWorld(installation, { beside: world })
        const jobs = [await patchOf(id, other), await patchOf(id, third)]
        const results = await Promise.all(jobs.map((job, n) => (n === 0 ? world : beside).run(job)))
        expect(results.map(({ code }) => code)).toEqual([200, 200])
        const last = await tokenOf(id)
        expect([other.slice(-4), third.slice(-4)]).toContain(last?.lastFour)
        await expectCard(id, last?.lastFour === other.slice(-4) ? other : third)
      }
    })

    it.each(['before', 'after'] as const)(
      'for a card that the token gets by another request %s the network was asked is the one of that request',
      async moment => {
        const { id, other } = await beginAnew()
        const beside = await openWorld(installation, { beside: world })
        const [first, second] = [await patchOf(id, other), await patchOf(id, other)]
        let calls = 0
        const overtake = async () => {
          calls += 1
          if (calls === 1) expect(await beside.run(first)).toMatchObject({ code: 200 })
        }
        const { lookUps } = world.deps
        const { tokensOfCard } = lookUps
        if (moment === 'before')
          lookUps.tokensOfCard = async fps => {
            await overtake()
            return tokensOfCard(fps)
          }
        else world.network.onCall = (name, when) => (name === 'provision' && when === 'after' ? overtake() : undefined)
        expect(await world.run(second)).toMatchObject({ code: 200, record: { scheme_token: { status: 'ACTIVE' } } })
        expect(calls).toBeGreaterThan(0)
        await expectCard(id, other)
        // Two were told that it stands: the reversal of one takes it from nobody.
        await reverse(second)
        await expectCard(id, other)
      },
    )

    it('goes with the card where a reversal takes that back, and stays where somebody has built on it', async () => {
      const { id, pan, other } = await beginAnew()
      const first = await patchOf(id, other)
      await world.run(first)
      await reverse(first)
      expect(world.resultOf(first.receiptId)).toMatchObject({ code: 500, error: { reversal_status: 'COMPLETED' } })
      await expectCard(id, pan)
      await reverse(first)
      await expectCard(id, pan)
      // A former card without a scheme token gets none.
      const bare = await make()
      const asked = await patchOf(bare, nextPan())
      const made = world.network.tokens.size
      expect(await world.run(asked)).toMatchObject({ code: 200 })
      await reverse(asked)
      expect(world.resultOf(asked.receiptId)).toMatchObject({ code: 500, error: { reversal_status: 'COMPLETED' } })
      expect(world.network.tokens.size).toBe(made + 1)
      expect(world.network.live().map(token => token.pan)).toEqual([pan])
      expect(await shown(bare)).toBeUndefined()
      const second = await patchOf(id, other)
      await world.run(second)
      expect(await world.ask('token-update', { id, card_holder_name: 'BEN' })).toMatchObject({ code: 200 })
      await reverse(second)
      await expectCard(id, other)
    })

    it.each([
      ['repeated', 0],
      ['reversed', volume(2, 0)],
      ['declined', volume(4, 0)],
    ] as const)(
      'and then %s leaves all or nothing, at whichever step its process dies',
      async (end, first) => {
        let deaths: number = first
        for (let isDead = true; isDead; deaths += volume(5, 1)) {
          const { id, pan, other } = await beginAnew()
          const job = await patchOf(id, other)
          if (end === 'declined') world.network.script.push({ refused: 'card_declined' })
          world.dieAt(deaths)
          await world.attempt(job).catch(() => {})
          isDead = world.isDead()
          world.network.script.length = 0
          world.revive()
          if (end === 'reversed') await reverse(job)
          // The provider's answer may have come before the death, or it was lost with the process.
          const result = await world.run({ ...job, attempt: 2 })
          const isDone = result.code === 200
          if (end === 'repeated') expect(result).toMatchObject({ code: 200 })
          if (end === 'reversed') expect(result).toMatchObject({ code: 500, error: { reversal_status: 'COMPLETED' } })
          if (end === 'declined' && !isDone)
            expect(result).toMatchObject({ code: 400, error: { reversal_status: 'NONE' } })
          await expectCard(id, isDone ? other : pan)
        }
        expect(deaths).toBeGreaterThan(20)
      },
      120_000,
    )
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
