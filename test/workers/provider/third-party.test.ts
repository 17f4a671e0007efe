// INTERFACE 2.1, 2.3 and CONTRACT 8 on tokens that third parties make: the third party's value is the reuse token, the
// vault keeps no card number for it, and it is made, undone and deleted exactly once, also if calls fail.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { makeScope } from '../../../cli/open/make-scope.ts'
import { Fault } from '../../../src/errors.ts'
import type { Store } from '../../../src/store/pool.ts'
import * as schemeTokens from '../../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../../src/store/provider/stored-schemes.ts'
import * as tokens from '../../../src/store/token/tokens.ts'
import { runJob } from '../../../workers/line/run-job.ts'
import { workDue } from '../../../workers/provider/reconcile/loop.ts'
import { sweep } from '../../../workers/provider/reconcile/sweep.ts'
import { describeStore } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { CONTRACT, openWorld, type World } from './bundle.ts'

const DETAILS = { expiry_month: 7, expiry_year: 2033 }
const THEIRS = {
  reuse_token_type: 'THIRD_PARTY_1',
  reuse_token_details: DETAILS,
  token_context: { payment_provider_contract: CONTRACT },
}
/** Middle digits for card numbers with the same first eight and last four digits. */
const SAME_ENDS = ['0009', '0017', '0025', '0033', '0041', '0058', '0066', '0074']
const DAY_MS = 86_400_000

describeStore('a third-party token', engine => {
  let installation: Installation
  let world: World
  let cards = 500_000
  const nextPan = () => {
    cards += 1
    return testPan(cards)
  }
  beforeAll(async () => {
    installation = await openInstallation(engine)
  })
  afterAll(() => installation?.close())
  beforeEach(async () => {
    world = await openWorld(installation)
  })

  const bodyFor = async (pan: string, more: Record<string, unknown> = {}) => ({
    token_scope: installation.scope,
    ...THEIRS,
    ...more,
    ...(await world.cardOf(pan)),
  })
  async function make(pan = nextPan(), more: Record<string, unknown> = {}) {
    const result = await world.ask('token-create', await bodyFor(pan, more))
    return { id: String(result.record?.['reuse_token']), pan, record: result.record, result }
  }
  const stored = async (id: string) => {
    const { store } = installation.vault
    return (await tokens.findByIds(store, await schemeTokens.findThirdPartyTokens(store, [id])))[0]
  }
  const refusedFor = (field: string, code: string, status = 400) => ({
    code: status,
    error: { details: { [field]: { code } }, reversal_status: 'NONE' },
  })

  it('is named as the third party names it, and the vault keeps no card for it', async () => {
    const { id, pan, result } = await make()
    expect(id).toMatch(/^ext_[0-9a-f]{24}$/)
    expect(result).toMatchObject({
      code: 200,
      record: { reuse_token_type: 'THIRD_PARTY_1', last_four: pan.slice(-4), expiry_month: 7, expiry_year: 2033 },
    })
    expect(world.thirdParty.live()).toMatchObject([{ pan, reference: id }])
    const row = await stored(id)
    expect(row).toMatchObject({ sealed: null, sealVersion: null, thirdParty: { type: 'THIRD_PARTY_1', token: id } })
    const [latest] = await storedSchemes.listLatest(installation.vault.store, 1)
    expect(latest).toMatchObject({ tokenId: row?.tokenId, card: null, reference: id, current: false, dueAt: null })
  })

  it('lives by its name, and goes from the third party when it is deleted', async () => {
    const { id } = await make()
    const patched = await world.ask('token-update', { id, card_holder_name: 'BEN', expiry_year: 2040 })
    expect(patched).toMatchObject({ code: 200, record: { card_holder_name: 'BEN', expiry_year: 2040 } })
    for (const [action, status] of [
      ['SUSPEND', 'SUSPENDED'],
      ['ACTIVATE', 'ACTIVE'],
      ['DELETE', 'DELETED'],
    ])
      expect(await world.ask('token-lifecycle', { id, action })).toMatchObject({
        code: 204,
        record: { id, token_status: status },
      })
    await world.calm()
    expect(world.thirdParty.live()).toEqual([])
    expect(world.thirdParty.calls).toEqual(['provision', 'delete'])
    expect(await world.ask('token-update', { id })).toMatchObject({ code: 404 })
  })

  it('is made by no other name than the third party gave it, whatever somebody writes into the database', async () => {
    const { store } = installation.vault
    const job = world.job('token-create', await bodyFor(nextPan()))
    const away: Store = {
      ...world.deps.store,
      transaction: (work, options) =>
        options?.lock === job.receiptId
          ? Promise.reject(new Fault('scheme_away'))
          : world.deps.store.transaction(work, options),
    }
    await runJob(job, new AbortController().signal, { ...world.deps, store: away })
    const theirs = world.thirdParty.live()[0]?.reference
    const made = (await storedSchemes.listLatest(store, 20)).find(({ reference }) => reference === theirs)
    expect(made).toMatchObject({ state: 'ACTIVE', thirdParty: true })
    const name = (reference: string | null | undefined) =>
      store.query({
        text: 'update tokenmill.scheme_token set reference = $2 where provision_id = $1',
        values: [made?.provisionId, reference],
      })
    await name('ext_of_another_card')
    expect(await world.run(job)).toMatchObject({
      code: 500,
      error: { details: { 'body.encrypted_card': { code: 'scheme_token_unproved' } } },
    })
    await name(theirs)
    world.wait(400_000)
    await world.calm()
    expect(world.thirdParty.live()).toEqual([])
  })

  it('is answered again to whoever brings the card again', async () => {
    const { id, pan } = await make()
    const again = await make(pan, { reuse_token_details: { expiry_month: 8, expiry_year: 2036 } })
    expect(again.result).toMatchObject({ code: 200 })
    expect(again.record).toMatchObject({ reuse_token: id, expiry_month: 8, expiry_year: 2036 })
    expect(world.thirdParty.calls).toEqual(['provision'])
    await world.ask('token-lifecycle', { id, action: 'DELETE' })
    const fresh = await make(pan)
    expect(fresh.id).not.toBe(id)
    await world.calm()
    expect(world.thirdParty.live()).toMatchObject([{ reference: fresh.id }])
  })

  it('stands beside the vault’s own of the same card', async () => {
    const pan = nextPan()
    const body = { token_scope: installation.scope, ...(await world.cardOf(pan)) }
    const own = await world.ask('token-create', body)
    const { id } = await make(pan)
    expect(own.record).toMatchObject({ reuse_token_type: 'INTERNAL' })
    await world.ask('token-lifecycle', { id: own.record?.['reuse_token'], action: 'DELETE' })
    expect(await world.ask('token-update', { id })).toMatchObject({ code: 200 })
    expect(world.thirdParty.live()).toHaveLength(1)
  })

  it.each<[string, Record<string, unknown>, string, string, number?]>([
    ['an unknown type', { reuse_token_type: 'THIRD_PARTY_9' }, 'body.reuse_token_type', 'field_value'],
    ['no expiry', { reuse_token_details: undefined }, 'body.reuse_token_details', 'field_required'],
    ['no context', { token_context: undefined }, 'body.token_context', 'third_party_context'],
    ['an empty context', { token_context: {} }, 'body.token_context', 'third_party_context'],
    ['another type’s contract', { reuse_token_type: 'THIRD_PARTY_2' }, 'body.token_context', 'third_party_unavailable'],
    [
      'a contract that isn’t there',
      { token_context: { payment_provider_contract: randomUUID() } },
      ...(['body.token_context', 'third_party_unavailable'] as const),
    ],
    [
      'another’s entity',
      { token_context: { entity_id: randomUUID() } },
      ...(['body.token_context.entity_id', 'entity_forbidden', 403] as const),
    ],
    ['analytics alone', { token_type: 'ANALYTICS' }, 'body.token_type', 'third_party_analytics'],
    ['a past date', { token_expiry_date: '2001-01-01' }, 'body.token_expiry_date', 'expiry_past'],
  ])('with %s is declined, and nobody outside hears of it', async (_, more, field, code, status) => {
    const body = JSON.parse(JSON.stringify(await bodyFor(nextPan(), more))) as Record<string, unknown>
    expect(await world.ask('token-create', body)).toMatchObject(refusedFor(field, code, status))
    expect(world.thirdParty.calls).toEqual([])
  })

  it('is the entity’s where no contract is named', async () => {
    expect((await make(nextPan(), { token_context: { entity_id: ENTITY } })).id).toMatch(/^ext_/)
  })

  it('takes no other card, and has no scheme token', async () => {
    const { id } = await make()
    expect(await world.ask('token-update', { id, ...(await world.cardOf(nextPan())) })).toMatchObject(
      refusedFor('body.encrypted_card', 'third_party_card'),
    )
    expect(await world.ask('scheme-token', { id, action: 'ACTIVATE' })).toMatchObject(
      refusedFor('body.scheme_token_action', 'not_applicable'),
    )
    expect(world.network.calls).toEqual([])
  })

  it('has an analytics token where one is asked for', async () => {
    const { record } = await make(nextPan(), { token_type: 'REUSE_AND_ANALYTICS' })
    expect(record?.['analytics_token']).toMatch(/^a[\w-]{43}$/)
  })

  it('is made once, however many ask for it at the same moment', async () => {
    for (let round = 0; round < 5; round += 1) {
      const body = await bodyFor(nextPan())
      const before = world.thirdParty.tokens.size
      const results = await Promise.all(Array.from({ length: 5 }, () => world.ask('token-create', body)))
      expect(new Set(results.map(({ record }) => record?.['reuse_token'])).size).toBe(1)
      expect(world.thirdParty.tokens.size - before).toBe(1)
    }
  })

  it('whose call was lost is asked about by its id, and made once', async () => {
    for (const mishap of ['lost-before', 'lost-after'] as const) {
      world.thirdParty.script.push(mishap)
      const before = world.thirdParty.tokens.size
      expect((await make()).result).toMatchObject({ code: 200 })
      expect(world.thirdParty.tokens.size - before).toBe(1)
    }
  })

  it('that the third party declines is a refusal, and nothing is left of it', async () => {
    world.thirdParty.script.push({ refused: 'card_declined' })
    const { result, pan } = await make()
    expect(result).toMatchObject(refusedFor('body.encrypted_card', 'third_party_card_declined'))
    const latest = await storedSchemes.listLatest(installation.vault.store, 100)
    expect(latest.find(({ refusal }) => refusal === 'card_declined')).toMatchObject({
      thirdParty: true,
      state: 'VOID',
      card: null,
      cards: [],
    })
    expect((await make(pan)).result).toMatchObject({ code: 200 })
  })

  it('of a third party that stays away is a 500 that left nothing behind', async () => {
    world.thirdParty.otherwise = () => 'again'
    const { result, pan } = await make()
    expect(result).toMatchObject({ code: 500, error: { reversal_status: 'NONE' } })
    world.thirdParty.otherwise = () => 'none'
    await world.calm()
    expect(await storedSchemes.listOpen(installation.vault.store, 10)).toEqual([])
    expect((await make(pan)).result).toMatchObject({ code: 200 })
    expect(world.thirdParty.live()).toHaveLength(1)
  })

  it('whose outcome stays unknown is a 500 that is undone: REQUIRED, then COMPLETED', async () => {
    world.thirdParty.script.push('lost-after')
    world.thirdParty.otherwise = () => 'again'
    const job = world.job('token-create', await bodyFor(nextPan()))
    expect(await world.run(job)).toMatchObject({ code: 500, error: { reversal_status: 'REQUIRED' } })
    expect(world.thirdParty.live()).toHaveLength(1)
    world.thirdParty.otherwise = () => 'none'
    await world.calm()
    expect(world.thirdParty.live()).toEqual([])
    expect(world.resultOf(job.receiptId)).toMatchObject({ code: 500, error: { reversal_status: 'COMPLETED' } })
  })

  it('is undone inside and outside by a reversal, unless somebody has built on it', async () => {
    const reverse = async (job: ReturnType<World['job']>) => {
      const request = { receipt_id: job.receiptId, envelope: job.envelope }
      return (await world.ask('reversal', request, { bySystem: true })).record?.['reversal_status']
    }
    const job = world.job('token-create', await bodyFor(nextPan()))
    const id = String((await world.run(job)).record?.['reuse_token'])
    expect(await reverse(job)).toBe('COMPLETED')
    expect(world.thirdParty.live()).toEqual([])
    expect(await world.ask('token-update', { id })).toMatchObject({ code: 404 })

    const kept = world.job('token-create', await bodyFor(nextPan()))
    const keptId = String((await world.run(kept)).record?.['reuse_token'])
    await world.ask('token-update', { id: keptId, card_holder_name: 'EVA' })
    expect(await reverse(kept)).toBe('COMPLETED')
    await world.calm()
    expect(world.thirdParty.live()).toMatchObject([{ reference: keptId }])
    expect(await world.ask('token-update', { id: keptId })).toMatchObject({ code: 200 })
  })

  it('is made once although its process dies at any moment', async () => {
    for (let n = 1; n <= 26; n += 1) {
      const body = await bodyFor(nextPan())
      const job = world.job('token-create', body)
      const before = world.thirdParty.tokens.size
      world.dieAt(n)
      await world.attempt(job).catch(() => {})
      world.revive()
      world.wait(15_000)
      const result = await world.run({ ...job, attempt: 2 })
      expect(result, `dead at ${n}`).toMatchObject({ code: 200 })
      expect(world.thirdParty.tokens.size - before, `dead at ${n}`).toBe(1)
      expect(await stored(String(result.record?.['reuse_token']))).toMatchObject({ status: 'ACTIVE' })
    }
    await world.calm()
    expect(await storedSchemes.listOpen(installation.vault.store, 10)).toEqual([])
  })

  it('that no job took up goes again, when none can come any more', async () => {
    const job = world.job('token-create', await bodyFor(nextPan()))
    world.thirdParty.onCall = (_, moment) => {
      if (moment === 'after') world.dieAt(0)
    }
    await world.attempt(job).catch(() => {})
    world.thirdParty.onCall = () => {}
    world.revive()
    world.wait(60_000)
    await world.calm()
    expect(world.thirdParty.live()).toHaveLength(1)
    world.wait(9 * DAY_MS)
    await sweep(world.deps)
    await workDue(world.deps)
    expect(world.thirdParty.live()).toEqual([])
  })

  it('that stands for the card elsewhere is refused, and stays whose it is', async () => {
    world = await openWorld(installation, { oneTokenPerCard: true })
    const { id, pan } = await make()
    const { tokenScope } = await makeScope(installation.vault, {
      entityId: ENTITY,
      par: false,
      networkTokens: false,
      requestor: 'MERCHANT',
      binDigits: 8,
    })
    const elsewhere = await make(pan, { token_scope: tokenScope })
    expect(elsewhere.result).toMatchObject(refusedFor('body.encrypted_card', 'third_party_token_taken'))
    await world.calm()
    expect(world.thirdParty.live()).toMatchObject([{ reference: id }])
    // After its deletion in one scope it may be made in the other, with the same name.
    await world.ask('token-lifecycle', { id, action: 'DELETE' })
    await world.calm()
    expect((await make(pan, { token_scope: tokenScope })).record).toMatchObject({ reuse_token: id })
    expect(world.thirdParty.live()).toHaveLength(1)
  })

  it('that two jobs found waiting is made by one of them, and updated by the other', async () => {
    const pan = nextPan()
    const lost = world.job('token-create', await bodyFor(pan))
    world.thirdParty.onCall = (_, moment) => {
      if (moment === 'after') world.dieAt(0)
    }
    await world.attempt(lost).catch(() => {})
    world.thirdParty.onCall = () => {}
    world.revive()
    world.wait(60_000)
    await world.calm()
    const named = async (cardHolderName: string) =>
      world.ask('token-create', {
        token_scope: installation.scope,
        ...THEIRS,
        ...(await world.cardOf(pan, { cardholderName: cardHolderName })),
      })
    const both = await Promise.all([named('ANNA'), named('BERTA')])
    expect(world.thirdParty.tokens.size).toBe(1)
    const id = String(both[0].record?.['reuse_token'])
    expect(both[1].record?.['reuse_token']).toBe(id)
    const told = both.map(({ record }) => record?.['card_holder_name'])
    expect(told.toSorted()).toEqual(['ANNA', 'BERTA'])
    expect(await stored(id)).toMatchObject({ version: 2 })
  })

  it('that is answered later than its creator would wait is found all the same, and goes', async () => {
    const job = world.job('token-create', await bodyFor(nextPan()))
    // The third party is still working on the call and doesn't find it yet.
    world.thirdParty.script.push('lost-before', 'none')
    world.thirdParty.otherwise = () => 'again'
    await world.attempt(job)
    const [card] = (await storedSchemes.listOpen(installation.vault.store, 10)).filter(
      ({ state }) => state === 'PENDING',
    )
    expect(card).toMatchObject({ asked: 'PROVISION' })
    await world
      .ask('reversal', { receipt_id: job.receiptId, envelope: job.envelope }, { bySystem: true })
      .catch(() => {})
    world.thirdParty.otherwise = () => 'none'
    await world.calm()
    expect(world.thirdParty.live()).toEqual([])
    expect(await storedSchemes.listOpen(installation.vault.store, 10)).toEqual([])
  })

  it('counts as a guess where the third party declines it', async () => {
    world.deps.settings.guessesMax = 3
    world.thirdParty.otherwise = () => ({ refused: 'card_declined' })
    const codes: number[] = []
    for (const middle of SAME_ENDS) codes.push((await make(`41111100${middle}1111`)).result.code)
    expect(codes.filter(code => code === 403).length).toBeGreaterThan(0)
    expect(world.thirdParty.calls.length).toBeLessThanOrEqual(4)
  })

  it('leaves no card once it is to go, however long the third party is away', async () => {
    world.thirdParty.script.push('lost-after')
    world.thirdParty.otherwise = () => 'again'
    const job = world.job('token-create', await bodyFor(nextPan()))
    expect(await world.run(job)).toMatchObject({ error: { reversal_status: 'REQUIRED' } })
    for (const reversal of world.queued.splice(0)) await world.attempt(reversal)
    const open = await storedSchemes.listOpen(installation.vault.store, 10)
    expect(open).toMatchObject([{ state: 'PENDING', card: null, cards: [] }])
    expect(open[0]?.retiredAt).not.toBeNull()
    world.thirdParty.otherwise = () => 'none'
    await world.calm()
    await world.run(job)
    expect(world.thirdParty.live()).toEqual([])
  })
})
