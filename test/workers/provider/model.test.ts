// Random jobs with lost answers, processes that die, jobs that are delivered twice or late, and issuers that change
// tokens. In the end store and network agree, the network has no token that no live token shows, and every reversal
// that was REQUIRED is COMPLETED.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeScope } from '../../../cli/open/make-scope.ts'
import type { Kind } from '../../../src/job/composition.ts'
import * as schemeNotices from '../../../src/store/provider/scheme-notices.ts'
import { workDue, workNotices } from '../../../workers/provider/reconcile/loop.ts'
import { sweep } from '../../../workers/provider/reconcile/sweep.ts'
import { describeStore } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import type { Mishap } from '../../support/scripted-network.ts'
import { testPan } from '../../support/test-pan.ts'
import { volume } from '../../support/volume.ts'
import { CONTRACT, type Job, openWorld, type World } from './bundle.ts'

const RUNS = Number(process.env['SCHEME_RUNS'] ?? volume(20, 40))
const SLOTS = 2

type Deed =
  | { do: 'create'; slot: number; auto: boolean }
  /** Creates a token of a third party; `again`: for the card of the last one. */
  | { do: 'foreign'; slot: number; again: boolean }
  /** `again`: to the card of the last one. */
  | { do: 'relink'; slot: number; action: 'ACTIVATE' | 'DELETE' | undefined; again: boolean }
  | { do: 'patch'; slot: number; action: 'ACTIVATE' | 'SUSPEND' | 'DELETE' | undefined }
  | { do: 'lifecycle'; slot: number; action: 'SUSPEND' | 'ACTIVATE' | 'DELETE' }
  | { do: 'scheme'; slot: number; action: 'ACTIVATE' | 'SUSPEND' | 'DELETE' }
  | { do: 'repeat' | 'reverse'; nth: number }
  | { do: 'issuer'; slot: number; what: 'suspend' | 'resume' | 'delete' | 'expiry'; told: number }
  | { do: 'loop'; ms: number }

interface Step {
  deed: Deed
  mishaps: Mishap[]
  /** The process dies at the nth call of the store or the network. */
  dies: number | null
  /** Runs at the same time as the next step. */
  beside: boolean
}

const slot = fc.nat(SLOTS - 1)
const schemeAction = fc.constantFrom('ACTIVATE' as const, 'ACTIVATE' as const, 'SUSPEND' as const, 'DELETE' as const)
const deed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('create' as const), slot, auto: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('foreign' as const), slot, again: fc.boolean() }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('scheme' as const), slot, action: schemeAction }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('patch' as const),
      slot,
      action: fc.option(schemeAction, { nil: undefined }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('relink' as const),
      slot,
      again: fc.boolean(),
      action: fc.constantFrom(undefined, 'ACTIVATE' as const, 'ACTIVATE' as const, 'DELETE' as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('lifecycle' as const),
      slot,
      action: fc.constantFrom('SUSPEND' as const, 'ACTIVATE' as const, 'DELETE' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('repeat' as const, 'reverse' as const), nth: fc.nat(20) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('issuer' as const),
      slot,
      told: fc.nat(2),
      what: fc.constantFrom('suspend' as const, 'resume' as const, 'delete' as const, 'expiry' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('loop' as const), ms: fc.nat(60_000) }) },
)
const mishap: fc.Arbitrary<Mishap> = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom<Mishap>('none', 'lost-before', 'lost-after', 'lost-after', 'again') },
  { weight: 1, arbitrary: fc.constant<Mishap>({ refused: 'card_declined' }) },
)
const step: fc.Arbitrary<Step> = fc.record({
  deed,
  mishaps: fc.array(mishap, { maxLength: 4 }),
  dies: fc.option(fc.nat(40), { freq: 2, nil: null }),
  beside: fc.boolean(),
})

describeStore('store and network', engine => {
  let installation: Installation
  let autoScope: string
  let cards = 0
  beforeAll(async () => {
    installation = await openInstallation(engine)
    const made = await makeScope(installation.vault, {
      entityId: ENTITY,
      par: true,
      networkTokens: true,
      requestor: 'MERCHANT',
      binDigits: 8,
      autoProvision: true,
    })
    autoScope = made.tokenScope
  })
  afterAll(() => installation?.close())

  const nextCard = (world: World) => {
    cards += 1
    return world.cardOf(testPan(cards))
  }

  it('agree in the end, whatever happens', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 16 }), async steps => {
        const world = await openWorld(installation)
        const run = await play(world, [
          { deed: { do: 'create', slot: 0, auto: false }, mishaps: [], dies: null, beside: false },
          ...steps,
        ])
        await settle(world, run.pending)
        await compare(world, run.jobs)
      }),
      {
        numRuns: RUNS,
        endOnFailure: process.env['SCHEME_SHRINK'] !== '1',
        includeErrorInReport: true,
        timeout: 100_000,
      },
    )
  })

  async function play(world: World, steps: readonly Step[]) {
    const ids: (string | undefined)[] = []
    const jobs: Job[] = []
    const creates: { job: Job; slot: number }[] = []
    const pending = new Set<Job>()
    let foreign: Record<string, unknown> | undefined
    let linked: Record<string, unknown> | undefined

    async function deliver(job: Job): Promise<void> {
      pending.add(job)
      const disposition = await world.attempt(job)
      if (!world.isDead() && ('done' in disposition || 'failed' in disposition)) pending.delete(job)
      for (const made of creates) {
        const token = world.resultOf(made.job.receiptId)?.record?.['reuse_token']
        if (token) ids[made.slot] = String(token)
      }
    }
    async function send(kind: Kind, request: Record<string, unknown>, made?: number, bySystem = false): Promise<void> {
      const job = world.job(kind, request, { bySystem })
      if (kind !== 'reversal') jobs.push(job)
      if (made !== undefined) creates.push({ job, slot: made })
      await deliver(job)
    }
    async function perform(what: Deed): Promise<void> {
      const id = 'slot' in what ? ids[what.slot] : undefined
      switch (what.do) {
        case 'create': {
          const scope = what.auto ? autoScope : installation.scope
          return send('token-create', { token_scope: scope, ...(await nextCard(world)) }, what.slot)
        }
        case 'foreign': {
          const card = (what.again ? foreign : undefined) ?? (await nextCard(world))
          foreign = card
          return send('token-create', { token_scope: installation.scope, ...THEIRS, ...card }, what.slot)
        }
        case 'repeat': {
          const job = jobs[what.nth % Math.max(1, jobs.length)]
          return job && deliver(job)
        }
        case 'reverse': {
          const job = jobs[what.nth % Math.max(1, jobs.length)]
          const request = { receipt_id: job?.receiptId, envelope: job?.envelope }
          return job && send('reversal', request, undefined, true)
        }
        case 'loop': {
          world.wait(what.ms)
          await workDue(world.deps)
          await workNotices(world.deps)
          for (const job of [...pending].slice(0, 3)) await deliver(job)
          return
        }
      }
      if (id === undefined) return
      const action = what.do === 'issuer' ? undefined : what.action
      const asked = action === undefined ? {} : { scheme_token_action: action }
      if (what.do === 'scheme') return send('scheme-token', { id, action })
      if (what.do === 'lifecycle') return send('token-lifecycle', { id, action })
      if (what.do === 'patch') return send('token-update', { id, card_holder_name: `N${jobs.length % 10}`, ...asked })
      if (what.do === 'relink') {
        linked = (what.again ? linked : undefined) ?? (await nextCard(world))
        return send('token-update', { id, ...linked, ...asked })
      }
      const references = world.network.live().map(token => token.reference)
      for (const reference of references.slice(what.slot, what.slot + 1)) {
        world.network.befall(reference, what.what)
        for (let n = 0; n < what.told; n += 1)
          await schemeNotices.insertAll(installation.vault.store, 'mdes', [reference], world.deps.clock())
      }
    }

    let beside: Promise<void>[] = []
    for (const { deed: what, mishaps, dies, beside: isBeside } of steps) {
      for (const outside of [world.network, world.thirdParty]) outside.script.push(...mishaps)
      if (dies !== null) world.dieAt(dies)
      beside.push(perform(what).catch(error => ignoreDeath(error)))
      if (isBeside && beside.length < 3) continue
      await Promise.all(beside)
      beside = []
      for (const outside of [world.network, world.thirdParty]) outside.script.length = 0
      world.revive()
    }
    await Promise.all(beside)
    return { jobs, pending }
  }

  /** Ends the failures of the networks and lets the queue deliver all jobs. */
  async function settle(world: World, pending: ReadonlySet<Job>): Promise<void> {
    for (const outside of [world.network, world.thirdParty]) outside.script.length = 0
    world.revive()
    const left = [...pending].map(job => ({ ...job }))
    for (let round = 0; left.length > 0; round += 1) {
      if (round > 100) throw new Error('jobs that never end')
      world.wait(30_000)
      for (const job of left.splice(0)) {
        const disposition = await world.attempt(job)
        if ('retryInMs' in disposition) left.push({ ...job, attempt: job.attempt + 1 })
        if ('deferMs' in disposition) left.push(job)
      }
      await workDue(world.deps)
    }
    await world.calm()
    world.wait(4_000_000)
    await sweep(world.deps)
    await world.calm()
  }

  /** Checks that each live token of the third party is the name of one live token, and that no call is due. */
  async function compareForeign(world: World): Promise<void> {
    const { rows } = await installation.vault.store.query<Record<string, unknown>>({
      text: `select s.reference, s.state, s.retired_at, s.due_at, s.lease, s.asked, s.card, t.status, t.third_party_token as name
from tokenmill.scheme_token as s left join tokenmill.token as t using (token_id)
where s.third_party and s.state not in ('DELETED', 'VOID') and (s.reference = any($1::text[]) or s.state = 'PENDING' or s.due_at is not null)`,
      values: [[...world.thirdParty.tokens.keys()]],
    })
    const open = { retired_at: null, due_at: null, lease: null, asked: null, card: null }
    const there = world.thirdParty
      .live()
      .map(({ reference }) => ({ reference, state: 'ACTIVE', ...open, name: reference, live: true }))
    const here = rows.map(({ status, ...row }) => ({ ...row, live: status !== null && status !== 'DELETED' }))
    const texts = (list: readonly object[]) => list.map(row => JSON.stringify(row)).sort()
    expect(texts(here)).toEqual(texts(there))
  }

  async function compare(world: World, jobs: readonly Job[]): Promise<void> {
    const { store } = installation.vault
    const { rows } = await store.query<Record<string, unknown>>({
      text: `select s.provision_id, s.token_id, s.reference, s.state, s.suspended_by, s.current, s.retired_at, s.due_at, s.lease,
  s.asked, s.card is not null as card, s.background, t.status, s.last_four, s.expiry_year
from tokenmill.scheme_token as s join tokenmill.token as t using (token_id)
where not s.third_party and (s.reference = any($1::text[]) or s.due_at is not null or s.lease is not null or s.state = 'PENDING' or s.asked is not null)`,
      values: [[...world.network.tokens.keys()]],
    })
    const shown = rows
      .filter(row => row['state'] !== 'DELETED' && row['state'] !== 'VOID')
      .map(row => ({
        reference: row['reference'],
        state: row['state'],
        suspendedBy: [...(row['suspended_by'] as string[])].sort(),
        number: row['last_four'],
        expiryYear: row['expiry_year'],
        current: row['current'] === true && row['status'] !== 'DELETED' && row['retired_at'] === null,
        open: [row['due_at'], row['lease'], row['asked']].some(one => one !== null) || row['card'] === true,
      }))
      .sort(byReference)
    const there = world.network
      .live()
      .map(token => ({
        reference: token.reference,
        state: token.state,
        suspendedBy: [...token.suspendedBy].sort(),
        number: token.number.slice(-4),
        expiryYear: token.expiryYear,
        current: true,
        open: false,
      }))
      .sort(byReference)
    expect(shown, JSON.stringify(rows.filter(row => row['reference'] === null))).toEqual(there)
    const tokens = rows
      .filter(row => row['state'] === 'ACTIVE' || row['state'] === 'SUSPENDED')
      .map(row => row['token_id'])
    expect(new Set(tokens).size).toBe(tokens.length)
    await compareForeign(world)
    for (const statement of [
      `select receipt_id from tokenmill.receipt where reversal = 'REQUIRED'`,
      `select intent_id from tokenmill.scheme_intent where reversal = 'REQUIRED'`,
      `select * from tokenmill.scheme_intent where state = 'INTENDED'`,
      `select subject, detail from tokenmill.audit where action = 'scheme.drift' and detail ->> 'what' = 'orphan'`,
    ])
      expect(JSON.stringify((await store.query({ text: statement })).rows), statement).toBe('[]')
    for (const job of jobs) {
      const required = world.told.some(
        one => one.type === 'result' && one.receipt_id === job.receiptId && one.error?.reversal_status === 'REQUIRED',
      )
      if (required) expect(world.resultOf(job.receiptId)?.error?.reversal_status).toBe('COMPLETED')
    }
  }
})

const THEIRS = {
  reuse_token_type: 'THIRD_PARTY_1',
  reuse_token_details: { expiry_month: 12, expiry_year: 2031 },
  token_context: { payment_provider_contract: CONTRACT },
}

const byReference = (a: { reference: unknown }, b: { reference: unknown }) =>
  String(a.reference) < String(b.reference) ? -1 : 1

function ignoreDeath(error: unknown): void {
  if (!(error instanceof Error) || error.name !== 'Died') throw error
}
