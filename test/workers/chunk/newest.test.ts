// Batches whose records say when they were given. An older file changes no field of a card and no owner for which newer
// data was given, whoever gave that data and whatever came in between.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import * as batches from '../../../src/store/batch/batches.ts'
import { formatReuseToken } from '../../../src/token/token.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { type ChunkOptions, type OnFileWorld, openOnFile, owner, record } from '../on-file-bundle.ts'

const HOUR_MS = 3_600_000
const INPUT = 'ab'.repeat(32)

describeStore('records with source times', engine => {
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
  const nextOwner = () => owner(randomUUID().slice(0, 8))
  const at = (hoursAgo: number) => ({ source_time: new Date(Date.now() - hoursAgo * HOUR_MS).toISOString() })
  const named = (pan: number, cardholderName: string, expiryYear = 2031) => ({
    card: { cardNumber: testPan(pan), expiryMonth: 12, expiryYear, cardholderName },
  })
  const newest = { on_conflict: 'newest', input_sha256: INPUT }
  const file = (records: readonly Record<string, unknown>[], options: ChunkOptions = {}) =>
    onFile.chunk(records, { ...options, policy: { ...newest, ...options.policy } })
  const outcomesOf = (
    records: readonly { outcome: string; reason?: string | undefined; reference_outcome?: string | undefined }[],
  ) =>
    records.map(({ outcome, reason, reference_outcome: claim }) => [outcome, reason, claim].filter(Boolean).join(' '))
  const liveTokens = async (pan: number) => {
    const { rows } = await installation.vault.store.query<{ n: number }>({
      text: `select count(*)::integer as n from tokenmill.token where token_scope = $1 and last_four = $2 and bin = $3`,
      values: [onFile.scope, testPan(pan).slice(-4), testPan(pan).slice(0, 8)],
    })
    return rows[0]?.n
  }

  it.each([
    { first: 2, second: 1, outcome: 'UPDATED' },
    { first: 1, second: 2, outcome: 'UNCHANGED' },
  ])('leave the newer data, where the file of $first h ago comes before that of $second h ago', async one => {
    const pan = nextPan()
    const names = ['', 'NEW', 'OLD']
    const [made] = await file([{ ...named(pan, names[one.first] ?? ''), ...at(one.first) }])
    const [told] = await file([{ ...named(pan, names[one.second] ?? ''), ...at(one.second) }])
    expect(told).toMatchObject({ outcome: one.outcome, reuse_token: made?.reuse_token })
    expect(await onFile.token(made?.reuse_token)).toMatchObject({ cardHolderName: 'NEW' })
  })

  it('take the time of the batch where they have none of their own', async () => {
    const pan = nextPan()
    const [made] = await file([named(pan, 'NEW')], { policy: at(1) })
    expect(outcomesOf(await file([named(pan, 'OLD')], { policy: at(2) }))).toEqual(['UNCHANGED'])
    expect(await onFile.token(made?.reuse_token)).toMatchObject({ cardHolderName: 'NEW' })
  })

  it('are rejected without a time, and with one after the beginning of the batch', async () => {
    const pan = nextPan()
    const records = [named(pan, 'A'), { ...named(pan, 'A'), ...at(-1) }, { ...named(pan, 'A'), source_time: 'March' }]
    expect(outcomesOf(await file(records))).toEqual([
      ...['REJECTED source_time_invalid', 'REJECTED source_time_future', 'REJECTED source_time_invalid'],
    ])
    expect(await liveTokens(pan)).toBe(0)
  })

  it.each([
    ['newest without the digest of its input', { on_conflict: 'newest' }, 'input_sha256'],
    ['another policy with a source time', { on_conflict: 'keep', ...at(1) }, 'source_time'],
  ])('are refused under %s', async (_, policy, member) => {
    const { error } = await onFile.world.run(await onFile.chunkJob([named(nextPan(), 'A')], { policy }))
    expect(Object.keys(error?.details ?? {})).toEqual([`body.request.policy.${member}`])
  })

  it('are rejected one by one where the batch does not compare times', async () => {
    expect(outcomesOf(await onFile.chunk([{ ...named(nextPan(), 'A'), ...at(1) }]))).toEqual([
      'REJECTED field_conflict',
    ])
  })

  it('neither move an owner back nor make a token for the number of before', async () => {
    const [former, next, own] = [nextPan(), nextPan(), nextOwner()]
    const [made] = await file([record(next, own, at(1))])
    const [told] = await file([record(former, own, at(2))])
    expect(told).toMatchObject({ outcome: 'UNCHANGED', reference_outcome: 'OLDER', reuse_token: made?.reuse_token })
    expect(told).toMatchObject({ last_four: testPan(next).slice(-4) })
    expect(await liveTokens(former)).toBe(0)
  })

  it('move an owner on', async () => {
    const [former, next, own] = [nextPan(), nextPan(), nextOwner()]
    const [made] = await file([record(former, own, at(2))])
    const [told] = await file([record(next, own, at(1))])
    expect(told).toMatchObject({ outcome: 'CREATED', reference_outcome: 'MOVED', previous_token: made?.reuse_token })
  })

  it('let the later of two numbers of one owner stand, wherever it is in the file', async () => {
    const [early, late] = [nextPan(), nextPan()]
    for (const hours of [
      [2, 1],
      [1, 2],
    ] as const) {
      const own = nextOwner()
      await file([record(early, own, at(hours[0])), record(late, own, at(hours[1]))])
      const stands = await onFile.reference(own)
      const row = await onFile.token(formatReuseToken(stands?.tokenId ?? ''))
      expect(row?.lastFour).toBe(testPan(hours[0] < hours[1] ? early : late).slice(-4))
    }
    const own = nextOwner()
    const same = at(1)
    await file([record(early, own, same), record(late, own, same)])
    const row = await onFile.token(formatReuseToken((await onFile.reference(own))?.tokenId ?? ''))
    expect(row?.lastFour).toBe(testPan(late).slice(-4))
  })

  it('of an owner who was released are UNCHANGED without a token, unless they were given after the release', async () => {
    const [pan, own] = [nextPan(), nextOwner()]
    await file([record(nextPan(), own, at(3))])
    await onFile.world.ask('reference', { token_scope: onFile.scope, ...own, action: 'RELEASE' })
    const [told] = await file([record(pan, own, at(2))])
    expect(told).toMatchObject({ outcome: 'UNCHANGED', reference_outcome: 'OLDER' })
    expect(told).not.toHaveProperty('reuse_token')
    expect(await liveTokens(pan)).toBe(0)
    await installation.vault.store.query({
      text: `update tokenmill.released_reference set released_at = now() - interval '150 minutes'`,
      values: [],
    })
    expect(outcomesOf(await file([record(pan, own, at(2))]))).toEqual(['CREATED ADDED'])
  })

  it('of an owner whose token was deleted make no other', async () => {
    const [pan, own] = [nextPan(), nextOwner()]
    const [made] = await file([record(pan, own, at(2))])
    await onFile.world.ask('token-lifecycle', { id: made?.reuse_token, action: 'DELETE' })
    expect(outcomesOf(await file([record(pan, own, at(1))]))).toEqual(['UNCHANGED OLDER'])
    expect(await onFile.reference(own)).toBeUndefined()
    expect(outcomesOf(await file([record(pan, own, at(1))], { dryRun: true }))).toEqual(['UNCHANGED OLDER'])
  })

  it('undo nothing that a single job gave between two files', async () => {
    const [former, next, own] = [nextPan(), nextPan(), nextOwner()]
    const [made] = await file([record(former, own, at(2))])
    const moved = await onFile.create(next, own)
    expect(moved.record).toMatchObject({ reference_outcome: 'MOVED' })
    const [told] = await file([record(former, own, at(1))])
    expect(told).toMatchObject({ outcome: 'UNCHANGED', reference_outcome: 'OLDER' })
    expect(told?.reuse_token).toBe(moved.record?.['reuse_token'])
    const { world } = onFile
    await world.ask('token-update', { id: made?.reuse_token, card_holder_name: 'BY HAND' })
    await file([{ ...named(former, 'BY FILE', 2032), ...at(1) }])
    expect(await onFile.token(made?.reuse_token)).toMatchObject({ cardHolderName: 'BY HAND', expiryYear: 2032 })
  })

  it('leave an owner with the number that the token got by hand', async () => {
    const [former, next, own] = [nextPan(), nextPan(), nextOwner()]
    const [made] = await file([record(former, own, at(2))])
    await onFile.world.ask('token-update', { id: made?.reuse_token, ...(await onFile.world.cardOf(testPan(next))) })
    for (const policy of [{}, { relink: true }]) {
      const [told] = await file([record(former, own, at(1))], { policy })
      expect(told).toMatchObject({ outcome: 'UNCHANGED', reference_outcome: 'OLDER', reuse_token: made?.reuse_token })
    }
    expect(await liveTokens(former)).toBe(0)
  })

  it('that were compared with a single job’s claim keep it, though the job is reversed', async () => {
    const [former, next, own] = [nextPan(), nextPan(), nextOwner()]
    const job = await onFile.createJob(next, own)
    await onFile.world.run(job)
    expect(outcomesOf(await file([record(former, own, at(1))]))).toEqual(['UNCHANGED OLDER'])
    expect(await onFile.reverse(job)).toBe('COMPLETED')
    const kept = await onFile.reference(own)
    expect(await onFile.token(formatReuseToken(kept?.tokenId ?? ''))).toMatchObject({
      status: 'ACTIVE',
      lastFour: testPan(next).slice(-4),
    })
  })

  it('relink a token to the later number, and keep fields that were given later', async () => {
    const [former, next, own] = [nextPan(), nextPan(), nextOwner()]
    const [made] = await file([record(former, own, at(3))])
    await onFile.world.ask('token-update', { id: made?.reuse_token, card_holder_name: 'BY HAND' })
    const [told] = await file([record(next, own, at(1))], { policy: { relink: true } })
    expect(told).toMatchObject({ outcome: 'UPDATED', reference_outcome: 'CHANGED', reuse_token: made?.reuse_token })
    const row = await onFile.token(made?.reuse_token)
    expect(row).toMatchObject({ lastFour: testPan(next).slice(-4), cardHolderName: 'BY HAND' })
    expect(outcomesOf(await file([record(former, own, at(2))], { policy: { relink: true } }))).toEqual([
      'UNCHANGED OLDER',
    ])
  })

  it('make a token active again that gets the later number, where an older file had suspended it', async () => {
    const [former, next, own] = [nextPan(), nextPan(), nextOwner()]
    const policy = { relink: true, on_expired: 'suspend' }
    const [made] = await file([{ ...named(former, 'A', 2020), on_file: own, ...at(2) }], { policy })
    expect(await onFile.token(made?.reuse_token)).toMatchObject({ suspendedReason: 'CARD_EXPIRED' })
    const [told] = await file([{ ...named(next, 'A'), on_file: own, ...at(1) }], { policy })
    expect(told).toMatchObject({ outcome: 'UPDATED', reference_outcome: 'CHANGED', reuse_token: made?.reuse_token })
    expect(await onFile.token(made?.reuse_token)).toMatchObject({ status: 'ACTIVE', suspendedReason: null })
  })

  it.each(['a job', 'a batch'])(
    'lift no suspension that %s asked for, though a file had suspended before',
    async by => {
      const pan = nextPan()
      const policy = { on_expired: 'suspend' }
      const [made] = await file([{ ...named(pan, 'A', 2020), ...at(3) }], { policy })
      const request = { id: made?.reuse_token, action: 'SUSPEND' }
      if (by === 'a job') await onFile.world.ask('token-lifecycle', request)
      else await onFile.chunk([request], { recordKind: 'token-lifecycle' })
      await file([{ ...named(pan, 'A'), ...at(2) }], { policy })
      expect(await onFile.token(made?.reuse_token)).toMatchObject({ suspendedReason: 'REQUEST', expiryYear: 2031 })
    },
  )

  it.each(['a job', 'a batch'])('suspend no token that %s has activated since, though it was active', async by => {
    const pan = nextPan()
    const [made] = await file([{ ...named(pan, 'A'), ...at(3) }])
    const request = { id: made?.reuse_token, action: 'ACTIVATE' }
    if (by === 'a job') await onFile.world.ask('token-lifecycle', request)
    else expect(outcomesOf(await onFile.chunk([request], { recordKind: 'token-lifecycle' }))).toEqual(['UNCHANGED'])
    await file([{ ...named(pan, 'A', 2020), ...at(2) }], { policy: { on_expired: 'suspend' } })
    expect(await onFile.token(made?.reuse_token)).toMatchObject({ status: 'ACTIVE', expiryYear: 2020 })
  })

  it('whose owner has another number by hand stop the reversal that would take the number back', async () => {
    const [former, second, next, own] = [nextPan(), nextPan(), nextPan(), nextOwner()]
    const [made] = await file([record(former, own, at(2))])
    const { world } = onFile
    const patch = await world.job('token-update', { id: made?.reuse_token, ...(await world.cardOf(testPan(next))) })
    await world.run(patch)
    expect(outcomesOf(await file([record(second, own, at(1))]))).toEqual(['UNCHANGED OLDER'])
    expect(await onFile.reverse(patch)).toBe('COMPLETED')
    expect(await onFile.token(made?.reuse_token)).toMatchObject({ lastFour: testPan(next).slice(-4) })
  })

  it('on a row that no such batch has touched count it as given when it was changed', async () => {
    const [pan, own] = [nextPan(), nextOwner()]
    const [made] = await onFile.chunk([record(pan, own)])
    const read = () => onFile.token(made?.reuse_token)
    expect(await read()).toMatchObject({ givenAt: null })
    expect(outcomesOf(await file([{ ...named(pan, 'OLD'), on_file: own, ...at(1) }]))).toEqual(['UNCHANGED OLDER'])
    expect(await read()).toMatchObject({ givenAt: null, cardHolderName: 'ANNA MEYER' })
    await installation.vault.store.query({
      text: `update tokenmill.token set updated_at = now() - interval '2 hours' where token_id = $1`,
      values: [(await read())?.tokenId ?? ''],
    })
    await file([{ ...named(pan, 'NEW'), ...at(1) }])
    expect(await read()).toMatchObject({ cardHolderName: 'NEW' })
    expect((await read())?.givenAt?.name?.slice(1)).toEqual([INPUT.slice(0, 16), 1])
  })

  it('are predicted by a dry run, which writes nothing', async () => {
    const [former, next, own] = [nextPan(), nextPan(), nextOwner()]
    await file([record(next, own, at(1))])
    const records = [
      record(former, own, at(2)),
      { ...named(next, 'OLD'), ...at(2) },
      record(former, nextOwner(), at(2)),
    ]
    const predicted = await file(records, { dryRun: true })
    expect(predicted[0]).not.toHaveProperty('reuse_token')
    expect(outcomesOf(predicted)).toEqual(['UNCHANGED OLDER', 'UNCHANGED', 'CREATED ADDED'])
    expect(outcomesOf(await file(records))).toEqual(outcomesOf(predicted))
  })

  it('of a chunk that dies at any moment are answered as if it had not, and again from its receipt', async () => {
    const { world } = onFile
    for (let n = 1; ; n += 1) {
      const [former, next, own, batchId] = [nextPan(), nextPan(), nextOwner(), `n-${randomUUID()}`]
      await file([record(next, own, at(1))])
      const records = [
        record(former, own, at(2)),
        record(former, nextOwner(), at(2)),
        { ...named(next, 'OLD'), ...at(2) },
      ]
      const job = await onFile.chunkJob(records, { batchId, policy: newest })
      world.dieAt(n)
      await world.attempt(job).catch(() => undefined)
      const isOver = !world.isDead()
      world.revive()
      const first = await world.run(job)
      expect(outcomesOf(first.records ?? [])).toEqual(['UNCHANGED OLDER', 'CREATED ADDED', 'UNCHANGED'])
      const again = await world.run(job)
      expect(outcomesOf(again.records ?? [])).toEqual(outcomesOf(first.records ?? []))
      expect(again.records?.map(one => one.reuse_token)).toEqual(first.records?.map(one => one.reuse_token))
      if (isOver) break
    }
  })

  it('say their policy in the layout of the batch, in which other batches have none', async () => {
    const layoutOf = async (policy: Record<string, unknown>) => {
      const batchId = `n-${randomUUID()}`
      await onFile.chunk([{ ...named(nextPan(), 'A') }], { batchId, policy })
      return (await batches.find(installation.vault.store, installation.credentials.signingKey.clientId, batchId))
        ?.layout
    }
    const day = at(5)
    expect(await layoutOf({ ...newest, ...day })).toMatchObject({ ...newest, ...day })
    expect(await layoutOf({ on_conflict: 'keep' })).toMatchObject({ input_sha256: null, source_time: null })
  })
})
