// CONTRACT 8 and INTERFACE 2.6, 2.7: what may be asked of a scheme token, what is shown of it, and that the network is
// called only once for one request.
import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { makeScope } from '../../../cli/open/make-scope.ts'
import { askSchemeReferences } from '../../../producers/operate/checks/scheme-references.ts'
import { cancelBatch } from '../../../src/acts/batch.ts'
import * as batches from '../../../src/store/batch/batches.ts'
import * as deliveries from '../../../src/store/event/deliveries.ts'
import * as endpoints from '../../../src/store/event/endpoints.ts'
import type { Db, Statement, Store } from '../../../src/store/pool.ts'
import * as storedSchemes from '../../../src/store/provider/stored-schemes.ts'
import { parseReuseToken } from '../../../src/token/token.ts'
import { encryptCard } from '../../../src/vault/capture/encrypt.ts'
import type { LineDeps } from '../../../workers/line/deps.ts'
import { runJob } from '../../../workers/line/run-job.ts'
import { noNetworks } from '../../../workers/networks.ts'
import { workDue } from '../../../workers/provider/reconcile/loop.ts'
import { sweep } from '../../../workers/provider/reconcile/sweep.ts'
import { openLookUps } from '../../../workers/set/look-ups.ts'
import { openSets } from '../../../workers/set/write-set.ts'
import { openTokenBatch } from '../../../workers/token-batch.ts'
import { describeStore } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { volume } from '../../support/volume.ts'
import { openOnFile } from '../on-file-bundle.ts'
import { CONTRACT, type Job, openWorld, type World } from './bundle.ts'

const FIELD = 'body.scheme_token_action'

describeStore('a scheme token', engine => {
  let installation: Installation
  let world: World
  let cards = 0
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

  const scopeOf = async (more: Parameters<typeof makeScope>[1] | object) =>
    (
      await makeScope(installation.vault, {
        entityId: ENTITY,
        par: true,
        networkTokens: true,
        requestor: 'MERCHANT',
        binDigits: 8,
        ...more,
      })
    ).tokenScope
  async function make(scope = installation.scope, pan = nextPan()) {
    const result = await world.ask('token-create', { token_scope: scope, ...(await world.cardOf(pan)) })
    return { id: String(result.record?.['reuse_token']), pan, record: result.record, result }
  }
  const chunkOf = async (requests: readonly Record<string, unknown>[]) => {
    const onFile = await openOnFile(installation, installation.scope, world)
    return onFile.world.run(await onFile.chunkJob(requests, { recordKind: 'token-update' }))
  }
  const act = (id: string, action: string, options = {}) => world.ask('scheme-token', { id, action }, options)

  it('is provisioned, suspended, resumed and deleted, and shows what its network says', async () => {
    const { id, pan, record } = await make()
    expect(record).not.toHaveProperty('scheme_token')
    const made = await act(id, 'ACTIVATE')
    expect(made).toMatchObject({ code: 200, record: { token_status: 'ACTIVE', scheme_token: { status: 'ACTIVE' } } })
    const scheme = made.record?.['scheme_token'] as Record<string, unknown>
    expect(scheme).toEqual({
      network_token: expect.stringMatching(/^\*{12}\d{4}$/),
      status: 'ACTIVE',
      expiry_month: 12,
      expiry_year: 2032,
      payment_account_reference: expect.stringMatching(/^[0-9A-Z]{29}$/),
    })
    const put = await world.ask('token-create', { token_scope: installation.scope, ...(await world.cardOf(pan)) })
    expect(put.record?.['scheme_token']).toMatchObject({ status: 'VALID' })
    expect((await act(id, 'SUSPEND')).record?.['scheme_token']).toMatchObject({ status: 'SUSPENDED' })
    expect((await act(id, 'ACTIVATE')).record?.['scheme_token']).toMatchObject({ status: 'ACTIVE' })
    expect((await act(id, 'DELETE')).record?.['scheme_token']).toEqual({ status: 'DELETED' })
    expect(world.network.live()).toEqual([])
    expect(world.network.calls).toEqual(['provision', 'suspend', 'resume', 'delete'])
    const again = await act(id, 'ACTIVATE')
    expect(again.record?.['scheme_token']).toMatchObject({ status: 'ACTIVE' })
    expect(world.network.tokens.size).toBe(2)
  })

  it('is asked for once by whoever asks for what is so already', async () => {
    const { id } = await make()
    await act(id, 'ACTIVATE')
    await act(id, 'ACTIVATE')
    await act(id, 'SUSPEND')
    await act(id, 'SUSPEND')
    await act(id, 'DELETE')
    await act(id, 'DELETE')
    expect(world.network.calls).toEqual(['provision', 'suspend', 'delete'])
  })

  it('is provisioned once, however many ask for it at the same moment', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { id } = await make()
      const before = world.network.tokens.size
      const results = await Promise.all(Array.from({ length: 4 }, () => act(id, 'ACTIVATE')))
      expect(results.map(({ code }) => code)).toEqual([200, 200, 200, 200])
      expect(world.network.tokens.size - before).toBe(1)
    }
  })

  describe('whose reference somebody swapped in the database with that of another', () => {
    const swap = (ids: readonly (string | undefined)[]) =>
      installation.vault.store.transaction(async db => {
        const { rows } = await db.query<{ id: string; reference: string }>({
          text: `select provision_id as id, reference
from tokenmill.scheme_token
where token_id = any($1::uuid[]) and reference is not null`,
          values: [ids.map(id => parseReuseToken(id ?? ''))],
        })
        expect(rows).toHaveLength(2)
        const write = (provision: string | undefined, reference: string | undefined) =>
          db.query({
            text: 'update tokenmill.scheme_token set reference = $2 where provision_id = $1',
            values: [provision, reference],
          })
        await write(rows[0]?.id, randomUUID())
        await write(rows[1]?.id, rows[0]?.reference)
        await write(rows[0]?.id, rows[1]?.reference)
        return rows.map(row => row.id)
      })
    const UNPROVED = {
      code: 500,
      error: {
        details: { 'body.scheme_token_action': { code: 'scheme_token_unproved' } },
        reversal_status: 'NONE',
      },
    }
    let ids: string[]
    let provisions: string[]
    beforeEach(async () => {
      ids = [(await make()).id, (await make()).id]
      for (const id of ids) await act(id, 'ACTIVATE')
      provisions = await swap(ids)
    })

    it('is neither changed at the network nor asked for, and the job is told the cause', async () => {
      const before = world.network.live()
      const calls = world.network.calls.length
      const job = world.job('scheme-token', { id: ids[0], action: 'SUSPEND' })
      expect(await world.run(job)).toMatchObject(UNPROVED)
      expect(await world.run(job)).toMatchObject(UNPROVED)
      expect(world.network.calls).toHaveLength(calls)
      const shown = async () =>
        (await storedSchemes.findAll(installation.vault.store, provisions))
          .map(({ provisionId, lastFour }) => `${provisionId} ${lastFour}`)
          .sort()
      const numbers = await shown()
      await sweep(world.deps, -1)
      expect(await shown()).toEqual(numbers)
      expect(world.network.live()).toEqual(before)
      await swap(ids)
      expect(await act(ids[0] ?? '', 'SUSPEND')).toMatchObject({ code: 200 })
      expect(world.network.live().map(({ state }) => state)).toEqual(['SUSPENDED', 'ACTIVE'])
    })

    it('does not end the other token, and goes as soon as its own reference is back', async () => {
      expect(await world.ask('token-lifecycle', { id: ids[0], action: 'DELETE' })).toMatchObject({ code: 204 })
      await world.calm()
      expect(world.network.live()).toHaveLength(2)
      await swap(ids)
      world.wait(400_000)
      await world.calm()
      expect(world.network.live()).toHaveLength(1)
      expect((await act(ids[1] ?? '', 'SUSPEND')).record?.['scheme_token']).toMatchObject({ status: 'SUSPENDED' })
    })

    it('is named by doctor', async () => {
      const { store, ring } = installation.vault
      const ask = () => askSchemeReferences({ store: async () => store, ring: async () => ring })
      const { state, says } = await ask()
      expect(state).toBe('critical')
      for (const id of provisions) expect(says).toContain(id)
      await swap(ids)
      expect(await ask()).toMatchObject({ state: 'well' })
    })
  })

  it('that is not there can be neither suspended nor deleted', async () => {
    const { id } = await make()
    for (const action of ['SUSPEND', 'DELETE'])
      expect(await act(id, action)).toMatchObject({
        code: 400,
        error: { details: { 'body.scheme_token_action': { code: 'scheme_token_absent' } }, reversal_status: 'NONE' },
      })
    expect(world.network.calls).toEqual([])
  })

  it('is refused where the scope supports none', async () => {
    const { id } = await make(await scopeOf({ par: false, networkTokens: false }))
    for (const result of [
      await act(id, 'ACTIVATE'),
      await world.ask('token-update', { id, scheme_token_action: 'ACTIVATE' }),
    ])
      expect(result).toMatchObject({
        code: 400,
        error: { details: { 'body.scheme_token_action': { code: 'scheme_not_supported' } } },
      })
  })

  it('shows a PSP its status only, and each scope what it supports', async () => {
    const psp = await make(await scopeOf({ requestor: 'PSP' }))
    expect((await act(psp.id, 'ACTIVATE')).record?.['scheme_token']).toEqual({ status: 'ACTIVE' })
    const par = await make(await scopeOf({ networkTokens: false }))
    const shown = (await act(par.id, 'ACTIVATE')).record?.['scheme_token']
    expect(shown).not.toHaveProperty('network_token')
    expect(shown).toHaveProperty('payment_account_reference')
    const numbers = await make(await scopeOf({ par: false }))
    expect((await act(numbers.id, 'ACTIVATE')).record?.['scheme_token']).not.toHaveProperty('payment_account_reference')
  })

  it('that the network refuses is a refusal, and nothing is left of it', async () => {
    const { id } = await make()
    world.network.script.push({ refused: 'card_ineligible' })
    const job = world.job('scheme-token', { id, action: 'ACTIVATE' })
    expect(await world.run(job)).toMatchObject({
      code: 400,
      error: { details: { 'body.scheme_token_action': { code: 'scheme_card_ineligible' } }, reversal_status: 'NONE' },
    })
    await world.run(job)
    expect(world.network.calls).toEqual(['provision'])
    expect(await act(id, 'SUSPEND')).toMatchObject({ code: 400 })
  })

  it('whose call was lost is asked about by its id, and provisioned once', async () => {
    for (const mishap of ['lost-before', 'lost-after'] as const) {
      const { id } = await make()
      const before = world.network.tokens.size
      world.network.script.push(mishap)
      expect((await act(id, 'ACTIVATE')).record?.['scheme_token']).toMatchObject({ status: 'ACTIVE' })
      expect(world.network.tokens.size - before).toBe(1)
    }
  })

  it('whose call was lost is not refused where the network refuses to search for it', async () => {
    const { id } = await make()
    const { provider } = world.network
    const { find } = provider
    provider.find = async () => ({ answer: 'refused', reason: 'request_invalid' })
    world.revive()
    world.network.script.push('lost-after')
    const job = world.job('scheme-token', { id, action: 'ACTIVATE' })
    expect(await world.run(job)).toMatchObject({ code: 500, error: { reversal_status: 'REQUIRED' } })
    expect(world.network.live()).toHaveLength(1)
    provider.find = find
    world.revive()
    await world.calm()
    expect(world.network.live()).toEqual([])
    expect(world.resultOf(job.receiptId)).toMatchObject({ code: 500, error: { reversal_status: 'COMPLETED' } })
  })

  it('waits out a network that is away, within the attempts of a job', async () => {
    const { id } = await make()
    world.network.script.push('again', 'lost-before', 'again', 'again')
    expect(await act(id, 'ACTIVATE')).toMatchObject({ code: 200 })
    expect(world.network.tokens.size).toBe(1)
  })

  it('of a network that stays away is a 500 that left nothing behind, and its jti is free', async () => {
    const { id } = await make()
    world.network.otherwise = () => 'again'
    const jti = randomUUID()
    expect(await act(id, 'ACTIVATE', { jti })).toMatchObject({ code: 500, error: { reversal_status: 'NONE' } })
    world.network.otherwise = () => 'none'
    expect(await act(id, 'ACTIVATE', { jti })).toMatchObject({ code: 200 })
    expect(world.network.live()).toHaveLength(1)
  })

  it('whose outcome stays unknown is a 500 that is undone: REQUIRED, then COMPLETED', async () => {
    const { id } = await make()
    world.network.script.push('lost-after')
    world.network.otherwise = () => 'again'
    const job = world.job('scheme-token', { id, action: 'ACTIVATE' })
    expect(await world.run(job)).toMatchObject({ code: 500, error: { reversal_status: 'REQUIRED' } })
    expect(world.network.live()).toHaveLength(1)
    expect(world.queued).toHaveLength(1)
    world.network.otherwise = () => 'none'
    await world.calm()
    expect(world.network.live()).toEqual([])
    expect(world.resultOf(job.receiptId)).toMatchObject({ code: 500, error: { reversal_status: 'COMPLETED' } })
    expect(await world.run(job)).toMatchObject({ error: { reversal_status: 'COMPLETED' } })
    expect(world.network.tokens.size).toBe(1)
  })

  it('whose suspension or activation was lost after its effect owes that effect: REQUIRED, and it is taken back', async () => {
    const { id } = await make()
    await act(id, 'ACTIVATE')
    for (const [action, before] of [
      ['SUSPEND', 'ACTIVE'],
      ['ACTIVATE', 'SUSPENDED'],
    ] as const) {
      world.network.script.push('lost-after')
      world.network.otherwise = () => 'again'
      const job = world.job('scheme-token', { id, action })
      expect(await world.run(job)).toMatchObject({ code: 500, error: { reversal_status: 'REQUIRED' } })
      expect(world.network.live().map(({ state }) => state)).not.toEqual([before])
      world.network.otherwise = () => 'none'
      await world.calm()
      expect(world.network.live().map(({ state }) => state)).toEqual([before])
      expect(world.resultOf(job.receiptId)).toMatchObject({ error: { reversal_status: 'COMPLETED' } })
      if (action === 'SUSPEND') await act(id, 'SUSPEND')
    }
  })

  it('that its issuer doesn’t answer for is asked for once again, and then refused', async () => {
    const { id } = await make()
    world.network.script.push('again-once', 'again-once')
    expect(await act(id, 'ACTIVATE')).toMatchObject({
      code: 400,
      error: { details: { 'body.scheme_token_action': { code: 'scheme_no_answer' } }, reversal_status: 'NONE' },
    })
    expect(world.network.calls).toEqual(['provision', 'provision'])
    expect(await act(id, 'ACTIVATE')).toMatchObject({ code: 200 })
  })

  it('that was provisioned for a token deleted meanwhile is deleted, and its job is told 404 and COMPLETED', async () => {
    const { id } = await make()
    world.network.onCall = async (name, moment) => {
      if (name !== 'provision' || moment !== 'after') return
      world.network.onCall = () => {}
      await world.ask('token-lifecycle', { id, action: 'DELETE' })
    }
    const job = world.job('scheme-token', { id, action: 'ACTIVATE' })
    expect(await world.run(job)).toMatchObject({ code: 404, error: { reversal_status: 'REQUIRED' } })
    await world.calm()
    expect(world.network.tokens.size).toBe(1)
    expect(world.network.live()).toEqual([])
    expect(world.resultOf(job.receiptId)).toMatchObject({ code: 404, error: { reversal_status: 'COMPLETED' } })
  })

  it('goes with its token, however long the network is away', async () => {
    const { id } = await make()
    await act(id, 'ACTIVATE')
    world.network.otherwise = () => 'again'
    expect(await world.ask('token-lifecycle', { id, action: 'DELETE' })).toMatchObject({ code: 204 })
    for (let n = 0; n < 5; n += 1) {
      world.wait(400_000)
      await workDue(world.deps)
    }
    expect(world.network.live()).toHaveLength(1)
    world.network.otherwise = () => 'none'
    world.wait(400_000)
    await world.calm()
    expect(world.network.live()).toEqual([])
  })

  it('is replaced when its token gets another card, where it was valid', async () => {
    const { id } = await make()
    await act(id, 'ACTIVATE')
    const pan = nextPan()
    const patched = await world.ask('token-update', { id, ...(await world.cardOf(pan)) })
    expect(patched).toMatchObject({ code: 200, record: { scheme_token: { status: 'ACTIVE' } } })
    expect(world.network.live().map(token => token.pan)).toEqual([pan])
    await act(id, 'SUSPEND')
    const other = await world.ask('token-update', { id, ...(await world.cardOf(nextPan())) })
    expect(other.record?.['scheme_token']).toEqual({ status: 'DELETED' })
    expect(world.network.live()).toEqual([])
    const third = await world.ask('token-update', {
      id,
      scheme_token_action: 'ACTIVATE',
      ...(await world.cardOf(nextPan())),
    })
    expect(third.record?.['scheme_token']).toMatchObject({ status: 'ACTIVE' })
  })

  it('is asked for beside another number only if that card can have one, alone and in a chunk', async () => {
    const { id } = await make()
    const { deps } = world
    const [calls, undated] = [
      world.network.calls.length,
      { cardNumber: nextPan(), captureTime: new Date().toISOString() },
    ]
    const key = installation.credentials.captureKeys.jwe
    if (!key) throw new Error('these credentials hold no JWE key')
    const bare = { encrypted_card: await encryptCard(undated, key), public_key_alias: key.alias }
    const asked = { id, scheme_token_action: 'ACTIVATE' }
    expect(await world.ask('token-update', { ...asked, ...bare })).toMatchObject({
      code: 400,
      error: { details: { 'body.expiry_year': { code: 'field_required' } } },
    })
    const { records } = await chunkOf([{ ...asked, card: { cardNumber: undated.cardNumber } }])
    expect(records).toMatchObject([{ outcome: 'REJECTED', reason: 'field_required' }])
    const { providers } = deps
    if (!providers) throw new Error('this worker has networks')
    const network = providers.schemes.network
    providers.schemes.network = () => undefined
    const unfit = await world.ask('token-update', { ...asked, ...(await world.cardOf(nextPan())) })
    providers.schemes.network = network
    expect(unfit).toMatchObject({
      code: 400,
      error: { details: { 'body.scheme_token_action': { code: 'scheme_action_unavailable' } } },
    })
    expect(world.network.calls).toHaveLength(calls)
  })

  it.each(['single', 'chunk'] as const)(
    'that its network declines beside another number changes nothing, as a %s',
    async way => {
      const { id, pan } = await make()
      await act(id, 'ACTIVATE')
      const shown = async () => (await world.ask('token-update', { id })).record
      const before = await shown()
      const other = nextPan()
      const asked = { id, scheme_token_action: 'ACTIVATE' }
      for (const refused of ['card_declined', 'card_ineligible', 'request_invalid'] as const) {
        world.network.script.push({ refused })
        if (way === 'single')
          expect(await world.ask('token-update', { ...asked, ...(await world.cardOf(other)) })).toMatchObject({
            code: 400,
            error: { details: { [FIELD]: { code: `scheme_${refused}` } }, reversal_status: 'NONE' },
          })
        else {
          const { records } = await chunkOf([
            { ...asked, card: { cardNumber: other, expiryMonth: 12, expiryYear: 2031 } },
          ])
          expect(records).toMatchObject([{ outcome: 'REJECTED', reason: `scheme_${refused}` }])
        }
        await world.calm()
        expect(await shown()).toEqual(before)
        expect(world.network.live().map(token => token.pan)).toEqual([pan])
      }
      expect(world.network.calls).toEqual(['provision', 'provision', 'provision', 'provision'])
      // The number is still free, and the network may think better of it.
      const made = await world.ask('token-update', { ...asked, ...(await world.cardOf(other)) })
      expect(made).toMatchObject({ code: 200, record: { scheme_token: { status: 'ACTIVE' } } })
      await world.calm()
      expect(world.network.live().map(token => token.pan)).toEqual([other])
    },
  )

  describe('asked for in a chunk beside another number', () => {
    const cardOf = (cardNumber: string) => ({ card: { cardNumber, expiryMonth: 12, expiryYear: 2031 } })
    const asked = (id: string, pan: string, action = 'ACTIVATE') => ({
      id,
      scheme_token_action: action,
      ...cardOf(pan),
    })
    const endsOf = async (requests: readonly Record<string, unknown>[]) => {
      const { records = [] } = await chunkOf(requests)
      await world.calm()
      return records.map(({ outcome, reason }) => reason ?? outcome)
    }
    const pansAt = () => world.network.live().map(token => token.pan)
    const shown = async (id: string) => {
      const { record } = await world.ask('token-update', { id })
      return [record?.['last_four'] ?? record?.['masked_card_number'], record?.['scheme_token']] as const
    }
    const active = async () => {
      const made = await make()
      await act(made.id, 'ACTIVATE')
      return made
    }

    it('refuses only the records whose cards the network declines', async () => {
      const [one, two, three] = [await active(), await active(), await active()]
      const [first, second, third] = [nextPan(), nextPan(), nextPan()]
      const former = await shown(two.id)
      world.network.otherwise = () => 'none'
      const { provider } = world.network
      const { provision } = provider
      provider.provision = async (id, card, urgency) =>
        card.pan.reveal() === second ? { answer: 'refused', reason: 'card_declined' } : provision(id, card, urgency)
      world.revive()
      const calls = [asked(one.id, first), asked(two.id, second), asked(three.id, third)]
      expect(await endsOf(calls)).toEqual(['UPDATED', 'scheme_card_declined', 'UPDATED'])
      expect(pansAt().toSorted()).toEqual([first, two.pan, third].toSorted())
      expect(await shown(two.id)).toEqual(former)
    })

    it('follows the records of a token in the order of the file', async () => {
      const { id, pan } = await active()
      const [first, second] = [nextPan(), nextPan()]
      expect(await endsOf([asked(id, first), asked(id, second)])).toEqual(['UPDATED', 'UPDATED'])
      expect(pansAt()).toEqual([second])
      // The first card is declined, so the second record is the one that links the token to it.
      world.network.script.push({ refused: 'card_declined' })
      const third = nextPan()
      expect(await endsOf([asked(id, third), { id, card_holder_name: 'BEN' }, asked(id, third)])).toEqual([
        ...['scheme_card_declined', 'UPDATED', 'scheme_card_declined'],
      ])
      expect(pansAt()).toEqual([second])
      expect(await endsOf([asked(id, third), { id, scheme_token_action: 'ACTIVATE' }])).toEqual([
        'UPDATED',
        'UNCHANGED',
      ])
      expect(pansAt()).toEqual([third])
      expect(await endsOf([asked(id, first), { id, scheme_token_action: 'DELETE' }])).toEqual(['UPDATED', 'UNCHANGED'])
      expect(pansAt()).toEqual([])
      expect(await endsOf([asked(id, second), { id, scheme_token_action: 'SUSPEND' }])).toEqual([
        ...['UPDATED', 'scheme_token_absent'],
      ])
      expect(pansAt()).toEqual([second])
      // A later card without an action is provided for as the earlier record of the chunk wanted it.
      expect(await endsOf([asked(id, first, 'DELETE'), { id, ...cardOf(third) }])).toEqual(['UPDATED', 'UPDATED'])
      expect(pansAt()).toEqual([])
      expect(await endsOf([asked(id, second), { id, ...cardOf(pan) }])).toEqual(['UPDATED', 'UPDATED'])
      expect(pansAt()).toEqual([pan])
      // Back to the stored card: its scheme token stays.
      const calls = world.network.calls.length
      expect(await endsOf([{ id, ...cardOf(second) }, asked(id, pan)])).toEqual(['UPDATED', 'UPDATED'])
      expect(pansAt()).toEqual([pan])
      expect(world.network.calls).toHaveLength(calls)
    })

    it('is done for the number that a token has already', async () => {
      const { id, pan } = await make()
      const end = async (action: string) => [
        ...(await endsOf([asked(id, pan, action)])),
        world.network.live()[0]?.state,
      ]
      expect(await end('ACTIVATE')).toEqual(['UPDATED', 'ACTIVE'])
      expect(await end('ACTIVATE')).toEqual(['UNCHANGED', 'ACTIVE'])
      expect(await end('SUSPEND')).toEqual(['UPDATED', 'SUSPENDED'])
      expect(await end('DELETE')).toEqual(['UPDATED', undefined])
      world.network.script.push({ refused: 'card_declined' })
      expect(await end('ACTIVATE')).toEqual(['scheme_card_declined', undefined])
    })

    it('leaves nothing of a batch that is cancelled before its commit', async () => {
      const { id, pan } = await active()
      const { store } = installation.vault
      const { clientId } = installation.credentials.signingKey
      const batchId = `cancelled-${randomUUID()}`
      const onFile = await openOnFile(installation, installation.scope, world)
      const job = await onFile.chunkJob([asked(id, nextPan())], { recordKind: 'token-update', batchId })
      world.network.onCall = async (name, moment) => {
        if (name !== 'provision' || moment !== 'after') return
        world.network.onCall = () => {}
        const batch = await batches.find(store, clientId, batchId)
        if (!batch) throw new Error('the chunk has begun its batch')
        await cancelBatch(store, batch, { actor: { kind: 'machine', id: 'tester@here' }, reason: 'a test' })
      }
      expect((await world.run(job)).records).toMatchObject([{ outcome: 'CANCELLED' }])
      await world.calm()
      expect(pansAt()).toEqual([pan])
    })

    it('asks for one card for one token, and leaves nothing of the other', async () => {
      const [one, two] = [await active(), await active()]
      const pan = nextPan()
      expect(await endsOf([asked(one.id, pan), asked(two.id, pan)])).toEqual(['UPDATED', 'pan_taken'])
      expect(pansAt().toSorted()).toEqual([pan, two.pan].toSorted())
    })

    it('leaves all or nothing, at whichever step its process dies', async () => {
      let deaths = 0
      for (let isDead = true; isDead; deaths += volume(5, 1)) {
        const [one, two] = [await active(), await active()]
        const [first, second] = [nextPan(), nextPan()]
        const { provider } = world.network
        const onFile = await openOnFile(installation, installation.scope, world)
        const job = await onFile.chunkJob([asked(one.id, first), asked(two.id, second)], { recordKind: 'token-update' })
        const { provision } = provider
        provider.provision = async (id, card, urgency) =>
          card.pan.reveal() === second ? { answer: 'refused', reason: 'card_declined' } : provision(id, card, urgency)
        world.revive()
        world.dieAt(deaths)
        await world.attempt(job).catch(() => {})
        isDead = world.isDead()
        world.revive()
        const { records = [] } = await world.run({ ...job, attempt: 2 })
        provider.provision = provision
        world.revive()
        expect(records.map(({ outcome, reason }) => reason ?? outcome)).toEqual(['UPDATED', 'scheme_card_declined'])
        await world.calm()
        const mine = [one.pan, two.pan, first, second]
        const live = world.network.live().filter(token => mine.includes(token.pan))
        expect(live.map(token => token.pan).toSorted()).toEqual([first, two.pan].toSorted())
      }
      expect(deaths).toBeGreaterThan(20)
    })
  })

  it('comes by itself with a token whose scope asks for it, and never fails the token', async () => {
    const scope = await scopeOf({ autoProvision: true })
    expect((await make(scope)).record?.['scheme_token']).toMatchObject({ status: 'VALID' })
    world.network.otherwise = () => 'again'
    const { id, result } = await make(scope)
    expect(result).toMatchObject({ code: 200 })
    expect(result.record).not.toHaveProperty('scheme_token')
    world.network.otherwise = () => 'none'
    await world.calm()
    expect(world.network.live()).toHaveLength(2)
    expect(world.told.filter(one => one.type === 'event')).toMatchObject([
      { event: 'scheme-token.updated', subject: { reuse_token: id }, data: { scheme_token: { status: 'VALID' } } },
    ])
  })

  it('that its network declines leaves a new token of an --auto scope without one, and can be asked for later', async () => {
    const scope = await scopeOf({ autoProvision: true })
    world.network.script.push({ refused: 'card_declined' })
    const { id, result } = await make(scope)
    expect(result).toMatchObject({ code: 200, record: { token_status: 'ACTIVE' } })
    expect(result.record).not.toHaveProperty('scheme_token')
    expect(world.network.calls).toEqual(['provision'])
    world.network.script.push({ refused: 'card_declined' })
    expect(await act(id, 'ACTIVATE')).toMatchObject({
      code: 400,
      error: { details: { 'body.scheme_token_action': { code: 'scheme_card_declined' } } },
    })
    expect((await act(id, 'ACTIVATE')).record?.['scheme_token']).toMatchObject({ status: 'ACTIVE' })
  })

  it('is told once to each URL that is subscribed, without what it shows', async () => {
    const { store } = installation.vault
    const { clientId } = installation.credentials.signingKey
    const endpointId = randomUUID()
    const secret = { sealed: randomBytes(40), keyVersion: 1 }
    const url = 'https://receiver.example/'
    await endpoints.insert(store, {
      endpointId,
      clientId,
      url,
      events: ['scheme-token.updated'],
      secret,
    })
    world.network.otherwise = () => 'again'
    const { id } = await make(await scopeOf({ autoProvision: true }))
    world.network.otherwise = () => 'none'
    await world.calm()
    const [delivery, ...others] = await deliveries.list(store, { endpointId, limit: 10 })
    expect(others).toEqual([])
    await deliveries.claim(store, { leaseMs: 60_000, limit: 10 })
    const outgoing = await deliveries.findOutgoing(store, delivery?.deliveryId ?? '', 1)
    expect(outgoing?.data).toEqual({
      reuse_token: id,
      token_scope: expect.any(String),
      revision: delivery?.revision,
      changed: expect.arrayContaining(['status']),
    })
    expect(world.told.filter(one => one.type === 'event')).toHaveLength(1)
    await endpoints.remove(store, endpointId)
  })

  it('that its network declines later is told as an event with the reason', async () => {
    world.network.otherwise = () => 'again'
    const { id } = await make(await scopeOf({ autoProvision: true }))
    world.network.otherwise = () => ({ refused: 'card_declined' })
    await world.calm()
    expect(world.told.filter(one => one.type === 'event')).toMatchObject([
      { event: 'scheme-token.updated', subject: { reuse_token: id }, data: { reason: 'scheme_card_declined' } },
    ])
  })

  it('stays as it is while its reuse token is suspended, until it is suspended itself', async () => {
    const { id, pan } = await make()
    await act(id, 'ACTIVATE')
    expect(await world.ask('token-lifecycle', { id, action: 'SUSPEND' })).toMatchObject({ code: 204 })
    const put = await world.ask('token-create', { token_scope: installation.scope, ...(await world.cardOf(pan)) })
    expect(put.record).toMatchObject({ token_status: 'SUSPENDED', scheme_token: { status: 'VALID' } })
    expect((await act(id, 'SUSPEND')).record?.['scheme_token']).toMatchObject({ status: 'SUSPENDED' })
    expect(await world.ask('token-lifecycle', { id, action: 'ACTIVATE' })).toMatchObject({ code: 204 })
    expect((await world.ask('token-update', { id })).record).toMatchObject({
      token_status: 'ACTIVE',
      scheme_token: { status: 'SUSPENDED' },
    })
    expect(world.network.calls).toEqual(['provision', 'suspend'])
  })

  it('is asked for together with other changes of its token, or not at all', async () => {
    const { id } = await make()
    const wrong = await world.ask('token-update', {
      id,
      token_expiry_date: '2001-01-01',
      scheme_token_action: 'ACTIVATE',
    })
    expect(wrong).toMatchObject({ code: 400, error: { details: { 'body.token_expiry_date': {} } } })
    expect(world.network.calls).toEqual([])
    world.network.script.push({ refused: 'card_declined' })
    expect(await world.ask('token-update', { id, expiry_year: 2039, scheme_token_action: 'ACTIVATE' })).toMatchObject({
      code: 400,
    })
    const both = await world.ask('token-update', { id, card_holder_name: 'BEN', scheme_token_action: 'ACTIVATE' })
    expect(both.record).toMatchObject({
      card_holder_name: 'BEN',
      expiry_year: 2031,
      scheme_token: { status: 'ACTIVE' },
    })
  })

  it('does nothing outside for a job that comes too late', async () => {
    const { id } = await make()
    await act(id, 'ACTIVATE', { sequence: 5 })
    expect(await act(id, 'SUSPEND', { sequence: 5 })).toMatchObject({
      code: 400,
      error: { details: { 'body.sequence': { code: 'sequence_stale' } } },
    })
    expect(world.network.calls).toEqual(['provision'])
  })

  describe('in a product without networks', () => {
    /** Works jobs of the world's form with what the core alone has, and notes the statements about schemes. */
    async function openCore() {
      const onFile = await openOnFile(installation, installation.scope, world)
      const { deps, resultOf } = onFile.world
      const statements: string[] = []
      const store = notingStore(deps.store, statements)
      const lookUps = openLookUps(store, noNetworks.schemeTokens.findShown)
      const sets = openSets({ ...deps, store, networks: noNetworks })
      const handlers = { ...deps.handlers, 'token-batch': openTokenBatch({}), 'scheme-token': null }
      const core: LineDeps = {
        ...deps,
        store,
        lookUps,
        sets,
        background: { lookUps, sets },
        networks: noNetworks,
        handlers,
      }
      const run = async (job: Job) => {
        expect(await runJob(job, new AbortController().signal, core)).toEqual({ done: true })
        return resultOf(job.receiptId)
      }
      return {
        run,
        ask: (...asked: Parameters<World['job']>) => run(onFile.world.job(...asked)),
        chunk: async (...asked: Parameters<typeof onFile.chunkJob>) => run(await onFile.chunkJob(...asked)),
        ofSchemes: () => statements.filter(text => text.includes('scheme_')),
      }
    }

    it('every job of the core takes its effect, is told again and undone, and asks nothing about schemes', async () => {
      const { run, ask, chunk, ofSchemes } = await openCore()
      const [pan, otherPan, thirdPan] = [nextPan(), nextPan(), nextPan()]
      const scope = await scopeOf({ autoProvision: true })
      const making = world.job('token-create', { token_scope: scope, ...(await world.cardOf(pan)) })
      const made = await run(making)
      expect(made).toMatchObject({ code: 200, record: { token_status: 'ACTIVE' } })
      expect(made?.record).not.toHaveProperty('scheme_token')
      expect(await run(making)).toEqual(made)
      const id = made?.record?.['reuse_token']
      expect(await ask('token-update', { id, ...(await world.cardOf(otherPan)) })).toMatchObject({
        record: { last_four: otherPan.slice(-4) },
      })
      const card = (cardNumber: string) => ({ cardNumber, expiryMonth: 12, expiryYear: 2031 })
      const changed = await chunk([{ id, card: card(thirdPan) }], { recordKind: 'token-update' })
      expect(changed?.records).toMatchObject([{ outcome: 'UPDATED' }])
      const created = await chunk([{ token_scope: scope, card: card(pan) }, { card: card(otherPan) }])
      expect(created?.records).toMatchObject([{ outcome: 'CREATED' }, { outcome: 'CREATED' }])
      expect(await ask('token-lifecycle', { id, action: 'DELETE' })).toMatchObject({ code: 204 })
      const undone = world.job('token-create', { token_scope: scope, ...(await world.cardOf(nextPan())) })
      await run(undone)
      const { receiptId, envelope } = undone
      expect(await ask('reversal', { receipt_id: receiptId, envelope }, { bySystem: true })).toMatchObject({
        record: { reversal_status: 'COMPLETED' },
      })
      expect(ofSchemes()).toEqual([])
    })

    it('what only they could do is refused, alone and in a chunk, and leaves no receipt that owes anything', async () => {
      const { ask, chunk, ofSchemes } = await openCore()
      const { id } = await make()
      const theirs = {
        reuse_token_type: 'THIRD_PARTY_1',
        reuse_token_details: { expiry_month: 7, expiry_year: 2033 },
        token_context: { payment_provider_contract: CONTRACT },
      }
      const refusedFor = (field: string, code: string) => ({
        code: 400,
        error: { details: { [field]: { code } }, reversal_status: 'NONE' },
      })
      const { scope } = installation
      expect(
        await ask('token-create', { token_scope: scope, ...theirs, ...(await world.cardOf(nextPan())) }),
      ).toMatchObject(refusedFor('body.token_context', 'third_party_unavailable'))
      for (const more of [{}, await world.cardOf(nextPan())])
        for (const action of ['ACTIVATE', 'SUSPEND'])
          expect(await ask('token-update', { id, scheme_token_action: action, ...more })).toMatchObject(
            refusedFor(FIELD, 'scheme_action_unavailable'),
          )
      expect(await ask('scheme-token', { id, action: 'ACTIVATE' })).toMatchObject({
        error: { details: { 'body.kind': { code: 'kind_unavailable' } } },
      })
      const card = { cardNumber: nextPan(), expiryMonth: 12, expiryYear: 2031 }
      expect((await chunk([{ ...theirs, card }, { card }]))?.records).toMatchObject([
        { outcome: 'REJECTED', reason: 'third_party_unavailable' },
        { outcome: 'CREATED' },
      ])
      const updates = ['ACTIVATE', 'DELETE'].map(action => ({ id, scheme_token_action: action }))
      expect((await chunk([...updates, { id }], { recordKind: 'token-update' }))?.records).toMatchObject([
        { outcome: 'REJECTED', reason: 'scheme_action_unavailable' },
        { outcome: 'REJECTED', reason: 'scheme_action_unavailable' },
        { outcome: 'UNCHANGED' },
      ])
      expect(await chunk([{ id, action: 'ACTIVATE' }], { recordKind: 'scheme-token' })).toMatchObject(
        refusedFor('body.request.record_kind', 'field_value'),
      )
      expect(ofSchemes()).toEqual([])
      expect(world.network.calls).toEqual([])
    })
  })
})

/** The store; the text of every statement is added to `statements`. */
function notingStore(store: Store, statements: string[]): Store {
  const noting = (db: Db): Db => ({
    query: <R>(statement: Statement) => {
      statements.push(statement.text)
      return db.query<R>(statement)
    },
  })
  return {
    ...store,
    ...noting(store),
    transaction: (work, options) => store.transaction(db => work(noting(db)), options),
  }
}
