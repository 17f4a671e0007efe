// Records of a chunk that name owners: what becomes of their references, of the tokens that lose or get an owner, and of
// chunks that are sent again or meet others.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeScope } from '../../../cli/open/make-scope.ts'
import type { RecordResult } from '../../../src/job/outcome.ts'
import * as batches from '../../../src/store/batch/batches.ts'
import * as receipts from '../../../src/store/job/receipts.ts'
import type { Db, Store } from '../../../src/store/pool.ts'
import { countOwners } from '../../../src/store/reference/source-references.ts'
import { formatReuseToken, parseReuseToken } from '../../../src/token/token.ts'
import { runJob } from '../../../workers/line/run-job.ts'
import { describeStore } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { type OnFileWorld, openOnFile, owner, record } from '../on-file-bundle.ts'
import type { Job } from '../provider/bundle.ts'

describeStore('records of a chunk that name owners', engine => {
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
  const outcomesOf = (records: readonly { outcome: string; reference_outcome?: string | undefined }[]) =>
    records.map(one => `${one.outcome} ${one.reference_outcome ?? '-'}`)

  it('add, confirm and change the reference beside the token', async () => {
    const [pan, own] = [nextPan(), nextOwner()]
    const nti = { network_transaction_ids: ['A1'], network_transaction_id: 'A1' }
    const [added] = await onFile.chunk([record(pan, { ...own, ...nti })])
    expect(added).toMatchObject({ outcome: 'CREATED', reference_outcome: 'ADDED' })
    expect(added).not.toHaveProperty('previous_token')
    expect(await onFile.reference(own)).toMatchObject({ version: 1, onFile: nti, before: null })
    expect(outcomesOf(await onFile.chunk([record(pan, { ...own, ...nti })]))).toEqual(['UNCHANGED UNCHANGED'])
    const later = await onFile.chunk([record(pan, { ...own, network_transaction_id: 'B2', is_default: true })])
    expect(outcomesOf(later)).toEqual(['UNCHANGED CHANGED'])
    expect((await onFile.reference(own))?.onFile).toEqual({
      network_transaction_ids: ['A1', 'B2'],
      network_transaction_id: 'B2',
      is_default: true,
    })
  })

  it('make two owners of one card one token with two references', async () => {
    const [pan, one, other] = [nextPan(), nextOwner(), nextOwner()]
    const records = await onFile.chunk([record(pan, one), record(pan, other)])
    expect(outcomesOf(records)).toEqual(['CREATED ADDED', 'DUPLICATE ADDED'])
    const [first, second] = [await onFile.reference(one), await onFile.reference(other)]
    expect(first?.tokenId).toBe(second?.tokenId)
    expect(await countOwners(installation.vault.store, [first?.tokenId ?? ''])).toEqual(new Map([[first?.tokenId, 2]]))
  })

  it('name no former token that is for analytics only', async () => {
    const own = nextOwner()
    await onFile.chunk([record(nextPan(), own, { token_type: 'ANALYTICS' })])
    const [moved] = await onFile.chunk([record(nextPan(), own)])
    expect(moved).toMatchObject({ outcome: 'CREATED', reference_outcome: 'MOVED' })
    expect(moved).not.toHaveProperty('previous_token')
  })

  it('move a known reference to the token of its new number, and name the former token', async () => {
    const [former, next, own] = [nextPan(), nextPan(), nextOwner()]
    const [made] = await onFile.chunk([record(former, own)])
    const job = await onFile.chunkJob([record(next, own)])
    const [moved] = (await onFile.world.run(job)).records ?? []
    expect(moved).toMatchObject({
      outcome: 'CREATED',
      reference_outcome: 'MOVED',
      previous_token: made?.reuse_token,
    })
    expect(formatReuseToken((await onFile.reference(own))?.tokenId ?? '')).toBe(moved?.reuse_token)
    // The repeated job is answered from the receipt.
    await onFile.world.run(job)
    expect(onFile.world.told.at(-1)).toMatchObject({ records: [{ ...moved, token_status: 'ACTIVE' }] })
    expect(await onFile.token(made?.reuse_token)).toMatchObject({ status: 'ACTIVE' })
  })

  it.each(['keep', 'update', 'latest-expiry'])('claim under the policy %s', async on_conflict => {
    const [pan, one, other] = [nextPan(), nextOwner(), nextOwner()]
    await onFile.chunk([record(pan, one)], { policy: { on_conflict } })
    const next = await onFile.chunk([record(pan, other)], { policy: { on_conflict } })
    expect(outcomesOf(next)).toEqual(['UNCHANGED ADDED'])
  })

  it('claim nothing where they are rejected', async () => {
    const [pan, one, other] = [nextPan(), nextOwner(), nextOwner()]
    await onFile.chunk([record(pan, one)])
    const differing = { ...record(pan, other), card: { ...record(pan).card, expiryYear: 2033 } }
    const rejected = await onFile.chunk([differing], { policy: { on_conflict: 'reject' } })
    expect(outcomesOf(rejected)).toEqual(['REJECTED -'])
    expect(await onFile.reference(other)).toBeUndefined()
  })

  it('let the later of two lines of one owner stand, whichever comes first, and count its version once', async () => {
    const [one, two, three, own] = [nextPan(), nextPan(), nextPan(), nextOwner()]
    const batchId = `f-${randomUUID()}`
    const both = await onFile.chunk([record(one, own), record(two, own)], { batchId, number: 1 })
    expect(outcomesOf(both)).toEqual(['CREATED ADDED', 'CREATED MOVED'])
    expect(both[1]?.previous_token).toBe(both[0]?.reuse_token)
    expect(await onFile.reference(own)).toMatchObject({ version: 1 })
    const late = await onFile.chunk([record(three, own)], { batchId, number: 0 })
    expect(outcomesOf(late)).toEqual(['CREATED OLDER'])
    expect(formatReuseToken((await onFile.reference(own))?.tokenId ?? '')).toBe(both[1]?.reuse_token)
    // What a line has confirmed, an earlier one doesn't change either.
    const next = { batchId: `f-${randomUUID()}` }
    expect(outcomesOf(await onFile.chunk([record(two, own)], { ...next, number: 1 }))).toEqual(['UNCHANGED UNCHANGED'])
    expect(outcomesOf(await onFile.chunk([record(one, own)], { ...next, number: 0 }))).toEqual(['UNCHANGED OLDER'])
  })

  it.each([
    ['keep', 'ACTIVE'],
    ['suspend', 'SUSPENDED'],
    ['delete', 'DELETED'],
  ] as const)('%s a token without owners as the batch says', async (on_orphan, status) => {
    const [former, shared, next, own, other] = [nextPan(), nextPan(), nextPan(), nextOwner(), nextOwner()]
    const made = await onFile.chunk([record(former, own), record(shared, other), record(shared, nextOwner())])
    const policy = { on_orphan }
    expect(outcomesOf(await onFile.chunk([record(next, own), record(next, other)], { policy }))).toEqual([
      ...['CREATED MOVED', 'DUPLICATE MOVED'],
    ])
    const row = await onFile.token(made[0]?.reuse_token)
    expect(row).toMatchObject({ status, sealed: status === 'DELETED' ? null : expect.any(Buffer) })
    // Somebody else has it on file, too.
    expect(await onFile.token(made[1]?.reuse_token)).toMatchObject({ status: 'ACTIVE' })
    // A late line of the same batch makes a token that is nobody's.
    const batchId = `f-${randomUUID()}`
    const [a, b, third] = [nextPan(), nextPan(), nextOwner()]
    await onFile.chunk([record(a, third)], { batchId, number: 1, policy })
    const [late] = await onFile.chunk([record(b, third)], { batchId, number: 0, policy })
    expect(late).toMatchObject({ outcome: 'CREATED', reference_outcome: 'OLDER' })
    expect(await onFile.token(late?.reuse_token)).toMatchObject({ status })
    expect(late?.token_status).toBe(status === 'ACTIVE' ? undefined : status)
  })

  it('keep a billing address only where the scope does', async () => {
    const billing_address = { line1: '1 High Street', country: 'GB' }
    const own = nextOwner()
    await onFile.chunk([record(nextPan(), { ...own, billing_address })])
    expect((await onFile.reference(own))?.onFile).toEqual({})
    const scope = await makeScope(installation.vault, {
      entityId: ENTITY,
      par: false,
      networkTokens: false,
      requestor: 'MERCHANT',
      binDigits: 8,
      keepBilling: true,
    })
    const keeping = await openOnFile(installation, scope.tokenScope)
    await keeping.chunk([record(nextPan(), { ...own, billing_address })])
    expect((await keeping.reference(own))?.onFile).toEqual({ billing_address })
  })

  it('are refused where a text looks like a card of the chunk, and else may hold long numbers', async () => {
    const [one, two, own, other] = [nextPan(), nextPan(), nextOwner(), nextOwner()]
    const like = `${testPan(two).slice(0, 6)}000000${testPan(two).slice(-4)}`
    const records = await onFile.chunk([
      record(one, { ...own, network_transaction_id: like }),
      record(two, { ...other, network_transaction_id: '123456789012345' }),
    ])
    expect(records[0]).toMatchObject({ outcome: 'REJECTED', reason: 'reference_pan', field: 'body.on_file' })
    expect(outcomesOf(records.slice(1))).toEqual(['CREATED ADDED'])
    expect(await onFile.reference(own)).toBeUndefined()
    expect((await onFile.reference(other))?.onFile).toMatchObject({ network_transaction_id: '123456789012345' })
  })

  it('are refused where a text looks like the card that their token has, or had', async () => {
    const [one, two, own] = [nextPan(), nextPan(), nextOwner()]
    const [made] = await onFile.chunk([record(one)])
    const update = async (onFileOf: Record<string, unknown>, more = {}) => {
      const requests = [{ id: made?.reuse_token, on_file: onFileOf, ...more }]
      const [told] = await onFile.chunk(requests, { recordKind: 'token-update' })
      return told
    }
    const refused = { outcome: 'REJECTED', reason: 'reference_pan', field: 'body.on_file' }
    expect(await update({ ...own, card_id: testPan(one) })).toMatchObject(refused)
    expect(await update({ ...own, transaction_link_id: testPan(one) }, record(two))).toMatchObject(refused)
    expect(await onFile.reference(own)).toBeUndefined()
    expect(await update(own)).toMatchObject({ outcome: 'UNCHANGED', reference_outcome: 'ADDED' })
    const naming = record(nextPan(), { ...own, cardholder_name: `ANNA ${testPan(one)}` })
    expect((await onFile.chunk([naming], { policy: { relink: true } }))[0]).toMatchObject(refused)
    expect((await onFile.reference(own))?.onFile).toEqual({})
  })

  it('of updates give tokens an owner, or move one', async () => {
    const [one, two, own] = [nextPan(), nextPan(), nextOwner()]
    const [first, second] = await onFile.chunk([record(one), record(two)])
    const recordKind = 'token-update'
    const update = (id: unknown, more = {}) => onFile.chunk([{ id, on_file: own, ...more }], { recordKind })
    expect(outcomesOf(await update(first?.reuse_token))).toEqual(['UNCHANGED ADDED'])
    const [moved] = await update(second?.reuse_token, { expiry_year: 2035 })
    expect(moved).toMatchObject({
      outcome: 'UPDATED',
      reference_outcome: 'MOVED',
      previous_token: first?.reuse_token,
    })
    expect(outcomesOf(await update('tNOSUCHTOKEN00000000000000'))).toEqual(['REJECTED -'])
  })

  it('of a dry run are predicted, and nothing is written', async () => {
    const [pan, next, own, fresh] = [nextPan(), nextPan(), nextOwner(), nextOwner()]
    await onFile.chunk([record(pan, own)])
    const before = await onFile.reference(own)
    const predicted = await onFile.chunk([record(next, own), record(pan, fresh)], { dryRun: true })
    expect(outcomesOf(predicted)).toEqual(['CREATED MOVED', 'UNCHANGED ADDED'])
    expect(predicted[0]).not.toHaveProperty('previous_token')
    expect(await onFile.reference(own)).toEqual(before)
    expect(await onFile.reference(fresh)).toBeUndefined()
  })

  it('with another number keep their token where the batch relinks and nobody else has it', async () => {
    const [one, two, three, own, other] = [nextPan(), nextPan(), nextPan(), nextOwner(), nextOwner()]
    const policy = { relink: true }
    const [made] = await onFile.chunk([record(one, own)])
    const changed = { ...record(two, own), card: { ...record(two).card, expiryYear: 2034 } }
    const [kept] = await onFile.chunk([changed], { policy: { ...policy, on_conflict: 'keep' } })
    expect(kept).toMatchObject({
      outcome: 'UPDATED',
      reference_outcome: 'CHANGED',
      reuse_token: made?.reuse_token,
      expiry_year: 2034,
    })
    expect(kept).not.toHaveProperty('previous_token')
    const lines = await onFile.chunk([record(one, other), record(two), record(three, own)], { policy })
    // The former number is free for a token of its own, and this token now has a record in between.
    expect(outcomesOf(lines)).toEqual(['CREATED ADDED', 'UPDATED -', 'UPDATED CHANGED'])
    expect(lines.map(({ reuse_token: id }) => id === made?.reuse_token)).toEqual([false, true, true])
    // Another owner has it, or the number has a token.
    await onFile.chunk([record(three, other)])
    expect(outcomesOf(await onFile.chunk([record(nextPan(), own)], { policy }))).toEqual(['CREATED MOVED'])
    expect(outcomesOf(await onFile.chunk([record(one, own)], { policy }))).toEqual(['UNCHANGED MOVED'])
  })

  it('with another number and no date clear the date and keep the name, as a single job does', async () => {
    const [one, two, three, own] = [nextPan(), nextPan(), nextPan(), nextOwner()]
    const [made] = await onFile.chunk([record(one, own)])
    const bare = { ...record(two, own), card: { cardNumber: testPan(two) } }
    const [linked] = await onFile.chunk([bare], { policy: { relink: true } })
    expect(linked).toMatchObject({ outcome: 'UPDATED', reuse_token: made?.reuse_token })
    const held = { expiryMonth: null, expiryYear: null, cardHolderName: 'ANNA MEYER' }
    expect(await onFile.token(made?.reuse_token)).toMatchObject(held)
    const dated = { id: made?.reuse_token, expiry_month: 3, expiry_year: 2033 }
    const next = { id: made?.reuse_token, card: { cardNumber: testPan(three) } }
    const changed = await onFile.chunk([dated, next], { recordKind: 'token-update' })
    expect(changed.map(({ outcome }) => outcome)).toEqual(['UPDATED', 'UPDATED'])
    expect(await onFile.token(made?.reuse_token)).toMatchObject(held)
    const none = { id: made?.reuse_token, card_holder_name: null, card_holder_email: null, token_expiry_date: null }
    await onFile.chunk([none], { recordKind: 'token-update' })
    expect((await onFile.token(made?.reuse_token))?.cardHolderName).toBeNull()
  })

  it('with another number keep their token for analytics, with the analytics token of that number', async () => {
    const [one, two, own] = [nextPan(), nextPan(), nextOwner()]
    const [made] = await onFile.chunk([{ ...record(one, own), token_type: 'REUSE_AND_ANALYTICS' }])
    const before = await onFile.token(made?.reuse_token)
    const [linked] = await onFile.chunk([record(two, own)], { policy: { relink: true } })
    expect(linked).toMatchObject({ outcome: 'UPDATED', reuse_token: made?.reuse_token })
    const after = await onFile.token(made?.reuse_token)
    expect(after?.analyticsToken).toBeTypeOf('string')
    expect(after?.analyticsToken).not.toBe(before?.analyticsToken)
  })

  it('relink in file order within one chunk', async () => {
    const [a, b, c, own, other] = [nextPan(), nextPan(), nextPan(), nextOwner(), nextOwner()]
    const policy = { relink: true }
    const made = await onFile.chunk([record(a, own), record(b, own), record(a, other), record(c, own)], { policy })
    // The second line gives the first line's token another number, so that the third makes one for the first number.
    expect(outcomesOf(made)).toEqual(['CREATED ADDED', 'UPDATED CHANGED', 'CREATED ADDED', 'UPDATED CHANGED'])
    expect(new Set(made.map(({ reuse_token: id }) => id)).size).toBe(2)
    const shared = await onFile.chunk([record(c, other), record(nextPan(), own)], { policy })
    expect(outcomesOf(shared)).toEqual(['UNCHANGED MOVED', 'CREATED MOVED'])
  })

  it('for one card at once each add their owner', async () => {
    const owners = [nextOwner(), nextOwner(), nextOwner(), nextOwner()]
    const pan = nextPan()
    const race = (names: typeof owners) => Promise.all(names.map(own => onFile.chunk([record(pan, own)])))
    const made = (await race(owners.slice(0, 2))).flat()
    const added = (await race(owners.slice(2))).flat()
    expect([...made, ...added].map(({ reference_outcome: one }) => one)).toEqual(owners.map(() => 'ADDED'))
    expect(new Set([...made, ...added].map(({ reuse_token: id }) => id)).size).toBe(1)
    const tokenId = (await onFile.reference(owners[0] ?? {}))?.tokenId ?? ''
    expect(await countOwners(installation.vault.store, [tokenId])).toEqual(new Map([[tokenId, 4]]))
  })

  it.each(['chunk', 'single job'])('or a %s that meet the deletion of their token make another one', async kind => {
    const [pan, own] = [nextPan(), nextOwner()]
    const [made] = await onFile.chunk([record(pan, nextOwner())])
    const job = kind === 'chunk' ? await onFile.chunkJob([record(pan, own)]) : await onFile.createJob(pan, own)
    await meet(job, () => onFile.world.ask('token-lifecycle', { id: made?.reuse_token, action: 'DELETE' }))
    const token = formatReuseToken((await onFile.reference(own))?.tokenId ?? '')
    expect(token).not.toBe(made?.reuse_token)
    expect(await onFile.token(token)).toMatchObject({ status: 'ACTIVE' })
  })

  describe('end a token only if an order of both jobs ends it, where meanwhile', () => {
    const release = (own: Record<string, unknown>) =>
      onFile.world.ask('reference', { token_scope: onFile.scope, ...own, action: 'RELEASE' })
    const stateOf = async (reuseToken: unknown) => (await onFile.token(reuseToken))?.status

    it.each(['suspend', 'delete'])('the only other owner is released (relink, %s)', async onOrphan => {
      const [own, other] = [nextOwner(), nextOwner()]
      const pan = nextPan()
      const [made] = await onFile.chunk([record(pan, own), record(pan, other)])
      const job = await onFile.chunkJob([record(nextPan(), own)], { policy: { relink: true, on_orphan: onOrphan } })
      const told = await meet(job, () => release(other))
      expect(outcomesOf(told)).toEqual(['UPDATED CHANGED'])
      expect(told[0]?.reuse_token).toBe(made?.reuse_token)
      expect(await stateOf(made?.reuse_token)).toBe('ACTIVE')
    })

    it('the owner of a record that comes too late is released, with the owner of its card', async () => {
      const [pan, own, other, batchId] = [nextPan(), nextOwner(), nextOwner(), `f-${randomUUID()}`]
      const policy = { on_orphan: 'delete' }
      const [made] = await onFile.chunk([record(pan, other)])
      await onFile.chunk([record(nextPan(), own)], { batchId, number: 1, policy })
      const job = await onFile.chunkJob([record(pan, own)], { batchId, policy })
      const releases = [own, other].map(one => ({ token_scope: onFile.scope, ...one, action: 'RELEASE' }))
      const told = await meet(job, () => onFile.chunk(releases, { recordKind: 'reference' }), 'tokens-hold')
      expect(outcomesOf(told)).toEqual(['UNCHANGED ADDED'])
      expect(await stateOf(made?.reuse_token)).toBe('ACTIVE')
    })

    it('the token that is left gets another number, of a later time', async () => {
      const [pan, own] = [nextPan(), nextOwner()]
      const policy = { on_conflict: 'newest', on_orphan: 'delete', input_sha256: '1'.repeat(64) }
      const at = (seconds: number) => ({ source_time: new Date(Date.now() - seconds * 1000).toISOString() })
      const [made] = await onFile.chunk([record(pan, own, at(3_000))], { policy })
      const job = await onFile.chunkJob([record(nextPan(), own, at(2_000))], { policy })
      const card = await onFile.world.cardOf(testPan(nextPan()))
      const told = await meet(job, () => onFile.world.ask('token-update', { id: made?.reuse_token, ...card }))
      expect(outcomesOf(told)).toEqual(['UNCHANGED OLDER'])
      expect(await stateOf(made?.reuse_token)).toBe('ACTIVE')
    })

    it('an owner who had no card, and is released too, gets the card', async () => {
      const [pan, own, absent] = [nextPan(), nextOwner(), nextOwner()]
      const [made] = await onFile.chunk([record(pan, own)])
      const asked = [absent, own].map(one => ({
        token_scope: onFile.scope,
        ...one,
        action: 'RELEASE',
        on_orphan: 'delete',
      }))
      const job = await onFile.chunkJob(asked, { recordKind: 'reference' })
      const told = await meet(job, () => onFile.create(pan, absent), 'tokens-hold')
      expect(told.map(({ outcome }) => outcome)).toEqual(['UPDATED', 'UPDATED'])
      expect(await stateOf(made?.reuse_token)).toBe('DELETED')
    })
  })

  /**
   * Works the job, and the other one between what it reads and what it writes: before its transaction, or in this before the
   * first statement of that name. Returns the results of its records.
   */
  async function meet(job: Job, other: () => Promise<unknown>, statement?: string): Promise<readonly RecordResult[]> {
    const { deps, run } = onFile.world
    let others = 0
    const once = async () => {
      others += 1
      if (others === 1) await other()
    }
    const meeting = (db: Db): Db => ({
      query: async one => {
        if (one.name === statement) await once()
        return db.query(one)
      },
    })
    const store: Store = {
      ...deps.store,
      transaction: async (work, options) => {
        if (options?.lock !== job.receiptId) return deps.store.transaction(work, options)
        if (statement === undefined) await once()
        return deps.store.transaction(db => work(statement === undefined ? db : meeting(db)), options)
      },
    }
    await runJob(job, new AbortController().signal, { ...deps, store })
    expect(others).toBeGreaterThan(0)
    // The repeat is answered from the receipt.
    return (await run(job)).records ?? []
  }

  it('pay alone for it: a chunk of others has no statement about owners and nothing of them in its receipt', async () => {
    const { world } = onFile
    const [pan, batchId] = [nextPan(), `f-${randomUUID()}`]
    await onFile.chunk([record(pan)])
    const job = await onFile.chunkJob([record(pan), record(nextPan())], { batchId, policy: { on_conflict: 'keep' } })
    const sent: string[] = []
    const recording = (db: Db): Db => ({
      query: statement => {
        sent.push(statement.name ?? statement.text)
        return db.query(statement)
      },
    })
    const { store } = world.deps
    const recorded: Store = {
      ...store,
      ...recording(store),
      transaction: (work, options) => store.transaction(db => work(recording(db)), options),
    }
    await runJob(job, new AbortController().signal, { ...world.deps, store: recorded })
    expect(sent.filter(name => /reference|hold|touch|name-receipt/.test(name))).toEqual([])
    const batch = await batches.find(store, installation.credentials.signingKey.clientId, batchId)
    expect(batch?.layout).toEqual({
      record_kind: 'token-create',
      record_form: 'rows',
      token_scope: onFile.scope,
      chunk_records: 1_000,
      on_conflict: 'keep',
      on_expired: 'import',
      on_orphan: 'keep',
      relink: false,
      source_time: null,
      input_sha256: null,
    })
    const [first, second] = world.resultOf(job.receiptId)?.records ?? []
    const ids = [first, second].map(made => parseReuseToken(made?.reuse_token ?? ''))
    const receipt = await receipts.find(store, job.receiptId)
    // It says that there is no claim; the last member is the card as the record gave it.
    const none = [0, null, '', -1, null, expect.stringMatching(/^203112[\w-]{4}$/)]
    expect(JSON.parse(receipt?.outcomes ?? '')).toEqual([
      [1, 2, ids[0], ...none],
      [2, 0, ids[1], ...none],
    ])
  })

  it('tell the policies of owners in the layout of their batch, where a default is as good as given', async () => {
    const [batchId, policy] = [`f-${randomUUID()}`, { on_orphan: 'keep', relink: false }]
    await onFile.chunk([record(nextPan())], { batchId, policy })
    const relinking = onFile.chunk([record(nextPan())], { batchId, number: 1, policy: { relink: true } })
    await expect(relinking).rejects.toThrow('batch_layout')
    expect(await onFile.chunk([record(nextPan())], { batchId, number: 1 })).toMatchObject([{ outcome: 'CREATED' }])
  })
})
