// Single jobs that name an owner: the outcome for the reference, the repeated answer, and what a reversal restores.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import * as retention from '../../../src/store/retention.ts'
import { formatReuseToken } from '../../../src/token/token.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { type OnFileWorld, openOnFile, owner, record } from '../on-file-bundle.ts'
import { subscribe } from '../reference/owners.ts'

describeStore('a single job that names an owner', engine => {
  let installation: Installation
  let onFile: OnFileWorld
  let pans = 0
  beforeAll(async () => {
    installation = await openInstallation(engine)
    onFile = await openOnFile(installation)
  })
  afterAll(() => installation?.close())

  const nextPan = () => {
    pans += 1
    return pans
  }
  const nextOwner = (more: Record<string, unknown> = {}) => owner(randomUUID().slice(0, 8), more)
  const updateJob = (id: unknown, more: Record<string, unknown>) => onFile.world.job('token-update', { id, ...more })
  const tokenOf = async (given: Record<string, unknown>) => {
    const reference = await onFile.reference(given)
    return reference && formatReuseToken(reference.tokenId)
  }

  /** Backdates the reference by more than a day. */
  const age = async (given: Record<string, unknown>) => {
    const reference = await onFile.reference(given)
    await installation.vault.store.query({
      text: `update tokenmill.source_reference set updated_at = updated_at - interval '25 hours' where reference_no = $1`,
      values: [reference?.referenceNo ?? 0],
    })
  }

  it('adds, confirms, changes and moves its reference, and its answer says so', async () => {
    const [pan, next, own] = [nextPan(), nextPan(), nextOwner()]
    const added = await onFile.create(pan, own)
    expect(added).toMatchObject({ code: 200, record: { reference_outcome: 'ADDED' } })
    expect((await onFile.create(pan, own)).record).toMatchObject({ reference_outcome: 'UNCHANGED' })
    const changed = await onFile.create(pan, { ...own, transaction_link_id: 'AbCdEfGhIjKlMnOpQrStUv' })
    expect(changed.record).toMatchObject({ reference_outcome: 'CHANGED' })
    const moved = await onFile.create(next, own)
    expect(moved.record).toMatchObject({
      reference_outcome: 'MOVED',
      previous_token: added.record?.['reuse_token'],
    })
    expect(await tokenOf(own)).toBe(moved.record?.['reuse_token'])
    expect(await onFile.reference(own)).toMatchObject({
      version: 4,
      onFile: { transaction_link_id: expect.any(String) },
    })
  })

  it('names no former token that is for analytics only', async () => {
    const [pan, own] = [nextPan(), nextOwner()]
    await onFile.chunk([record(pan, own, { token_type: 'ANALYTICS' })])
    const moved = await onFile.create(nextPan(), own)
    expect(moved.record).toMatchObject({ reference_outcome: 'MOVED' })
    expect(moved.record).not.toHaveProperty('previous_token')
  })

  it('of an update gives the token to an owner', async () => {
    const [own, other] = [nextOwner(), nextOwner()]
    const [first, second] = [await onFile.create(nextPan(), own), await onFile.create(nextPan(), other)]
    const id = second.record?.['reuse_token']
    const moved = await onFile.world.run(updateJob(id, { on_file: own }))
    expect(moved.record).toMatchObject({
      reference_outcome: 'MOVED',
      previous_token: first.record?.['reuse_token'],
    })
    expect(await tokenOf(own)).toBe(id)
    const missing = await onFile.world.run(updateJob('tNOSUCHTOKEN00000000000000', { on_file: own }))
    expect(missing).toMatchObject({ code: 404 })
  })

  it('says the same when it is asked again, and nothing of a reference that others have written since', async () => {
    const [pan, own] = [nextPan(), nextOwner()]
    const job = await onFile.createJob(pan, own)
    await onFile.world.run(job)
    await onFile.world.run(job)
    expect(onFile.world.told.at(-1)).toMatchObject({ record: { reference_outcome: 'ADDED' } })
    await onFile.create(nextPan(), own)
    await onFile.world.run(job)
    const { record: again } = onFile.world.told.at(-1) as { record: Record<string, unknown> }
    expect(again).not.toHaveProperty('reference_outcome')
  })

  it('is refused with a billing address, or where a text looks like its card', async () => {
    const pan = nextPan()
    const billed = await onFile.create(pan, nextOwner({ billing_address: { line1: '1 High Street' } }))
    expect(billed).toMatchObject({ code: 400 })
    expect(JSON.stringify(billed.error?.details)).toContain('billing_address')
    const named = await onFile.create(pan, nextOwner({ cardholder_name: `no ${testPan(pan)}` }))
    expect(named.error?.details).toMatchObject({ 'body.on_file': { code: 'reference_pan' } })
    const { record: made } = await onFile.create(pan)
    const updated = await onFile.world.run(
      updateJob(made?.['reuse_token'], { on_file: nextOwner({ transaction_link_id: testPan(pan) }) }),
    )
    expect(updated.error?.details).toMatchObject({ 'body.on_file': { code: 'reference_pan' } })
    const nti = await onFile.create(pan, nextOwner({ network_transaction_id: '123456789012345' }))
    expect(nti).toMatchObject({ code: 200 })
  })

  it('is taken back by its reversal: what it added, changed and moved', async () => {
    const [pan, next, own] = [nextPan(), nextPan(), nextOwner()]
    const added = await onFile.createJob(pan, own)
    const { record: made } = await onFile.world.run(added)
    expect(await onFile.reverse(added)).toBe('COMPLETED')
    expect(await onFile.reference(own)).toBeUndefined()
    expect(await onFile.token(made?.['reuse_token'])).toMatchObject({ status: 'DELETED' })

    const first = await onFile.create(pan, own)
    const changed = await onFile.createJob(pan, { ...own, is_default: true })
    await onFile.world.run(changed)
    expect(await onFile.reverse(changed)).toBe('COMPLETED')
    expect(await onFile.reference(own)).toMatchObject({ onFile: {}, version: 3 })

    const moved = await onFile.createJob(next, own)
    const { record: other } = await onFile.world.run(moved)
    expect(await onFile.reverse(moved)).toBe('COMPLETED')
    expect(await tokenOf(own)).toBe(first.record?.['reuse_token'])
    expect(await onFile.token(other?.['reuse_token'])).toMatchObject({ status: 'DELETED' })
  })

  it('is taken back although its token was changed since, and a confirmation takes nothing back', async () => {
    const [pan, own] = [nextPan(), nextOwner()]
    const { record: made } = await onFile.create(pan)
    const added = updateJob(made?.['reuse_token'], { on_file: own })
    await onFile.world.run(added)
    await onFile.world.run(updateJob(made?.['reuse_token'], { card_holder_name: 'BEN' }))
    expect(await onFile.reverse(added)).toBe('COMPLETED')
    expect(await onFile.reference(own)).toBeUndefined()
    expect(await onFile.token(made?.['reuse_token'])).toMatchObject({ status: 'ACTIVE', cardHolderName: 'BEN' })
    const again = updateJob(made?.['reuse_token'], { on_file: own })
    await onFile.world.run(again)
    const confirmed = updateJob(made?.['reuse_token'], { on_file: own })
    await onFile.world.run(confirmed)
    expect(await onFile.reverse(confirmed)).toBe('COMPLETED')
    expect(await onFile.reference(own)).toMatchObject({ onFile: {} })
    // A reversal of the confirmed job doesn't change the reference, either.
    expect(await onFile.reverse(again)).toBe('COMPLETED')
    expect(await onFile.reference(own)).toMatchObject({ onFile: {} })
  })

  it('that made a token keeps it where another owner has it on file since, and loses its own reference', async () => {
    const [pan, own, other] = [nextPan(), nextOwner(), nextOwner()]
    const making = await onFile.createJob(pan, own)
    const { record: made } = await onFile.world.run(making)
    await onFile.chunk([record(pan, other)])
    expect(await onFile.reverse(making)).toBe('COMPLETED')
    expect(await onFile.token(made?.['reuse_token'])).toMatchObject({ status: 'ACTIVE' })
    expect(await onFile.reference(own)).toBeUndefined()
    expect(await tokenOf(other)).toBe(made?.['reuse_token'])
  })

  it('is taken back for a day only: after that its former token may have got another card', async () => {
    const [pan, next, third, own, other] = [nextPan(), nextPan(), nextPan(), nextOwner(), nextOwner()]
    const { record: shared } = await onFile.create(pan, own)
    await onFile.create(pan, other)
    const moved = await onFile.createJob(next, own)
    const { record: made } = await onFile.world.run(moved)
    await age(own)
    const [relinked] = await onFile.chunk([record(third, other)], { policy: { relink: true } })
    expect(relinked?.reuse_token).toBe(shared?.['reuse_token'])
    expect(await onFile.reverse(moved)).toBe('COMPLETED')
    expect(await tokenOf(own)).toBe(made?.['reuse_token'])
    expect(await onFile.token(made?.['reuse_token'])).toMatchObject({ status: 'ACTIVE' })
  })

  it('keeps what it replaced for a day, or until the former token is deleted', async () => {
    const named = { cardholder_name: 'BEN MEYER' }
    const { store } = installation.vault
    const [own, other] = [nextOwner(), nextOwner()]
    for (const each of [own, other]) {
      await onFile.create(nextPan(), { ...each, ...named })
      await onFile.create(nextPan(), { ...each, cardholder_name: 'BEN' })
    }
    await age(own)
    const before = (await onFile.reference(other))?.before
    expect(before).toMatchObject({ onFile: named })
    await retention.sweep(store, 90, Date.now())
    expect(await onFile.reference(own)).toMatchObject({ before: null, onFile: { cardholder_name: 'BEN' }, version: 2 })
    expect((await onFile.reference(other))?.before).toEqual(before)

    const id = formatReuseToken(before?.tokenId ?? '')
    await onFile.world.ask('token-lifecycle', { id, action: 'DELETE' })
    expect((await onFile.reference(other))?.before).toEqual({ ...before, onFile: {} })
  })

  it('that moved a reference away from a token that is gone leaves none behind, and tells so', async () => {
    await subscribe(installation)
    const [pan, next, own] = [nextPan(), nextPan(), nextOwner()]
    const { record: former } = await onFile.create(pan, own)
    const moved = await onFile.createJob(next, own)
    await onFile.world.run(moved)
    await onFile.world.ask('token-lifecycle', { id: former?.['reuse_token'], action: 'DELETE' })
    expect(await onFile.reverse(moved)).toBe('COMPLETED')
    expect(await onFile.reference(own)).toBeUndefined()
    // The owner had a card before that job and has none now. An event says so, and a release of the owner finds it
    // released.
    const { rows } = await installation.vault.store.query<{ data: Record<string, unknown> }>({
      text: `select data from tokenmill.event where type = 'reference.released' and data->>'card_id' = $1`,
      values: [own.card_id],
    })
    expect(rows.map(({ data }) => data)).toEqual([
      { token_scope: onFile.scope, ...own, reuse_token: former?.['reuse_token'], cause: 'TOKEN_DELETED' },
    ])
    const release = { token_scope: onFile.scope, ...own, action: 'RELEASE' }
    expect((await onFile.world.ask('reference', release)).code).toBe(200)
    // An owner whom the reversed job added counts as unknown.
    const never = nextOwner()
    const added = await onFile.createJob(nextPan(), never)
    await onFile.world.run(added)
    expect(await onFile.reverse(added)).toBe('COMPLETED')
    const unknown = await onFile.world.ask('reference', { ...release, ...never })
    expect(JSON.stringify(unknown.error)).toContain('reference_unknown')
  })
})
