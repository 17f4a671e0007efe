// Records that are worked in columns, against the same records worked as objects: an empty `sequenceNumber` says nothing, and
// a record that has one isn't plain. The same records are sent in columns, too, and their results read in columns.
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { tokenBatch } from '../../../producers/token-batch.ts'
import { cancelBatch } from '../../../src/acts/batch.ts'
import { recordsOf as spread } from '../../../src/job/answer/created-columns.ts'
import type { Result } from '../../../src/job/answer/result.ts'
import { unpack } from '../../../src/job/chunk-outcomes.ts'
import type { RecordResult } from '../../../src/job/outcome.ts'
import { checkOf, readPresented } from '../../../src/job/presented-card.ts'
import { type ColumnRecord, columnLines } from '../../../src/job/record-columns.ts'
import { Secret } from '../../../src/secret.ts'
import * as batches from '../../../src/store/batch/batches.ts'
import type { Statement, Store } from '../../../src/store/pool.ts'
import type { StoredReference } from '../../../src/store/reference/source-references.ts'
import * as references from '../../../src/store/reference/source-references.ts'
import type { StoredToken } from '../../../src/store/token/tokens.ts'
import * as tokens from '../../../src/store/token/tokens.ts'
import { ownerKey } from '../../../src/token/on-file.ts'
import { parseReuseToken } from '../../../src/token/token.ts'
import type { PublicCaptureKey } from '../../../src/vault/capture/encrypt.ts'
import { runJob } from '../../../workers/line/run-job.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { testAmex, testPan } from '../../support/test-pan.ts'
import { volume } from '../../support/volume.ts'
import { type Job, openWorld, type World } from '../provider/bundle.ts'
import { type Given, PANS, type Policy, policy, type Sent, someChunks } from './any-chunks.ts'
import { seal, usualHeader } from './sealed-cards.ts'

const GUESSES_MAX = 1_000_000
const RUNS = Number(process.env['PLAIN_RUNS'] ?? volume(40, 400))

describeStore('records in columns', engine => {
  let installation: Installation
  let world: World
  /** Three scopes of the same entity. */
  let scopes: { columns: string; objects: string; sent: string }
  let cards = 0
  beforeAll(async () => {
    installation = await openInstallation(engine)
    world = await openWorld(installation)
    const [second, third] = [await installation.addClient('second'), await installation.addClient('third')]
    scopes = { columns: installation.scope, objects: second.scope, sent: third.scope }
  })
  afterAll(() => installation?.close())

  it('end like the same records as objects, whatever is among them', async () => {
    await fc.assert(
      fc.asyncProperty(someChunks, policy, async (chunks, rule) => {
        cards += PANS + 1
        const columns = await play(chunks, rule, scopes.columns)
        const objects = await play(chunks, rule, scopes.objects)
        expect(columns).toEqual(objects)
        expect(await play(chunks, rule, scopes.sent)).toEqual(objects)
      }),
      {
        numRuns: RUNS,
        includeErrorInReport: true,
        ...(process.env['PLAIN_SEED'] && { seed: Number(process.env['PLAIN_SEED']) }),
      },
    )
  })

  it('are all plain records but those of one card, and those of cards that have tokens', async () => {
    cards += 10
    const plain = (pan: number, more = {}) => ({ card: { ...cardOf(pan), ...more } })
    const before = await chunk([plain(0)])
    expect(before.columns).toEqual([1])
    const now = await chunk([plain(0), plain(1), plain(2), plain(2), plain(3, { sequenceNumber: '' }), plain(4)])
    expect(now.columns).toEqual([2])
    expect(now.outcomes).toEqual(['UNCHANGED', 'CREATED', 'CREATED', 'DUPLICATE', 'CREATED', 'CREATED'])
    expect((await chunk([plain(1), plain(4)])).columns).toEqual([])
  })

  it('are all creates of a reuse token, whatever they say of card and owner', async () => {
    cards += 100
    const names = [
      'Ángel Ñandú',
      'Nguyễn Thị Hằng',
      'Иван Петров',
      'Αντώνης',
      'محمد علي',
      'משה כהן',
      'राम कुमार',
      'สมชาย ใจดี',
    ]
    const more = ['山田 太郎', 'さくら', '김철수', 'Zoë 😀', 'O’Neill', 'HENRY 8', 'Angström']
    const references = [
      '9f1c2b7e-3d4a-4f5b-8c6d-7e8f9a0b1c2d',
      '1234567890123456',
      'urn:order:2026-11-29:77',
      '注文-12',
      'say "hi"',
    ]
    const owner = {
      provider: 'stripe',
      network_transaction_ids: ['123456789012345'],
      transaction_link_id: 'MCC9876543210',
      agreement: 'RECURRING',
      agreed_by: 'ONLINE',
      agreed_on: '2025-01-31',
      first_amount: 1_250,
      first_currency: 'EUR',
      first_date: '2025-01-31',
      is_default: true,
      billing_address: { line1: '1 Main St', city: 'Köln', postal_code: '50667', country: 'DE' },
    }
    const all = [
      ...[...names, ...more].map(cardholderName => ({ card: { ...cardOf(0), cardholderName } })),
      ...references.map(reference => ({ reference, card: cardOf(0) })),
      { card: { cardNumber: '' } },
      { card: { ...cardOf(0), sequenceNumber: '7', startMonth: 1, startYear: 2020 } },
      { card: cardOf(0), card_brand: 'VISA', token_type: 'REUSE', token_expiry_date: '2040-01-01' },
      { card: cardOf(0), on_file: { ...owner, customer_id: 'cus_0012345678901234', card_id: `card_${cards}` } },
    ].map((record, pan) => ({ ...record, card: { ...record.card, cardNumber: panOf(pan) } }))
    const { columns, outcomes } = await chunk(all)
    expect(outcomes).toEqual(all.map(() => 'CREATED'))
    expect(columns).toEqual([all.length])
  })

  it('of a dry run make no objects, but those of cards that another chunk of the run has seen', async () => {
    cards += 10
    const plain = (pan: number) => JSON.stringify({ line: pan + 1, request: { card: cardOf(pan) } })
    const batchId = `dry-${randomUUID()}`
    world.deps.settings.guessesMax = GUESSES_MAX
    const told = async (number: number, pans: readonly number[]) => {
      const given = { scope: scopes.sent, number, rule: undefined, dryRun: true }
      const job = await jobOf(batchId, pans.map(plain), given)
      const before = await countsByForm()
      await world.run(job)
      const { records, columns } = resultOf(job)
      const now = await countsByForm()
      const inColumns = (now['columns CREATED'] ?? 0) - (before['columns CREATED'] ?? 0)
      expect(columns?.line.length ?? 0).toBe(inColumns)
      return { inColumns, others: records?.map(({ outcome }) => outcome) }
    }
    expect(await told(0, [0, 1, 2])).toEqual({ inColumns: 3, others: [] })
    expect(await told(1, [2, 3, 4])).toEqual({ inColumns: 2, others: ['UNCHANGED'] })
  })

  it('are counted apart from those that became objects, by outcome', async () => {
    cards += 10
    const plain = (pan: number, more = {}) => ({ card: { ...cardOf(pan), ...more } })
    await chunk([plain(0)])
    const before = await countsByForm()
    await chunk([plain(0), plain(1), plain(2), plain(3, { sequenceNumber: '' }), plain(4, { expiryMonth: 13 })])
    const now = await countsByForm()
    const grown = Object.entries(now).flatMap(([name, count]) => {
      const more = count - (before[name] ?? 0)
      return more > 0 ? [[name, more]] : []
    })
    expect(Object.fromEntries(grown)).toEqual({
      'columns CREATED': 2,
      'objects CREATED': 1,
      'objects REJECTED': 1,
      'objects UNCHANGED': 1,
    })
  })

  it('are those with an encrypted card, too, if it could be in clear in columns', async () => {
    cards += 10
    const whole = { header: usualHeader, spoil: (parts: string[]) => parts.join('.'), alias: 'known' as const }
    const sealed = (pan: number, more = {}) =>
      seal({ ...whole, inner: card => Buffer.from(JSON.stringify({ ...card, ...more })) }, cardOf(pan), captureKey())
    const first = await chunk([sealed(0), sealed(1), sealed(2, { sequenceNumber: '1' }), sealed(3, { cvv: 'x' })])
    expect(first.columns).toEqual([3])
    expect(first.outcomes).toEqual(['CREATED', 'CREATED', 'CREATED', 'REJECTED'])
    const bad = { ...whole, spoil: (parts: string[]) => parts.slice(0, 4).join('.'), inner: () => Buffer.alloc(0) }
    const second = await chunk([seal(bad, cardOf(4), captureKey()), sealed(0), { card: cardOf(5) }, sealed(6)])
    expect(second.columns).toEqual([2])
    expect(second.outcomes).toEqual(['REJECTED', 'UNCHANGED', 'CREATED', 'CREATED'])
    const none = await chunk([seal(bad, cardOf(7), captureKey())])
    expect(none).toMatchObject({ columns: [], outcomes: ['REJECTED'] })
  })

  it('with owners are worked in columns, but those of known owners and of owners who occur again', async () => {
    cards += 10
    const owned = (pan: number, owner: number) => ({
      card: cardOf(pan),
      on_file: { provider: 'stripe', card_id: `card_${cards}_${owner}` },
    })
    const before = await chunk([owned(0, 0), owned(1, 1)])
    expect(before.columns).toEqual([2])
    const now = await chunk([owned(2, 2), owned(3, 1), owned(4, 4), owned(5, 4), owned(6, 6), owned(0, 7)])
    expect(now.columns).toEqual([2])
    expect(now.references).toEqual(['ADDED', 'MOVED', 'ADDED', 'MOVED', 'ADDED', 'ADDED'])
    const rows = await rowsOf(scopes.columns, [0, 1, 2, 3, 4, 5, 6])
    const named = await references.findByTokens(
      installation.vault.store,
      rows.map(({ tokenId }) => tokenId),
    )
    expect(named.map(({ cardId }) => cardId.split('_')[2]).sort()).toEqual(['0', '1', '2', '4', '6', '7'])
  })

  it('with owners are looked up once a batch has met a known owner', async () => {
    cards += 10
    const owned = (pan: number, owner: number) => ({
      card: cardOf(pan),
      on_file: { provider: 'stripe', card_id: `card_${cards}_${owner}` },
    })
    await chunk([owned(9, 9)])
    const batchId = `f-${randomUUID()}`
    const chunks = [[owned(0, 0)], [owned(1, 1), owned(2, 9)], [owned(3, 3), owned(4, 0)], [owned(5, 5)]]
    const ends: string[][] = []
    for (const [number, requests] of chunks.entries())
      ends.push((await chunk(requests, { batchId, number })).references)
    expect(ends).toEqual([['ADDED'], ['ADDED', 'MOVED'], ['ADDED', 'MOVED'], ['ADDED']])
  })

  it('with owners keep them if their card gets its token from another chunk meanwhile', async () => {
    cards += 10
    const owned = (pan: number, owner: number) => ({
      card: cardOf(pan),
      on_file: { provider: 'stripe', card_id: `card_${cards}_${owner}` },
    })
    let other: string[] = []
    const first = await chunk([owned(0, 0), owned(1, 1)], {
      async beforeCommit() {
        other = (await chunk([owned(1, 2)])).references
      },
    })
    expect({ other, first: first.references, outcomes: first.outcomes }).toEqual({
      other: ['ADDED'],
      first: ['ADDED', 'ADDED'],
      outcomes: ['CREATED', 'UNCHANGED'],
    })
    const [token] = await rowsOf(scopes.columns, [1])
    const owners = await references.findByTokens(installation.vault.store, [token?.tokenId ?? ''])
    expect(owners.map(({ cardId }) => cardId.split('_')[2])).toEqual(['2', '1'])
  })

  it('whose owner gets a reference from another chunk meanwhile are decided with it', async () => {
    cards += 10
    const owned = (pan: number, owner: number) => ({
      card: cardOf(pan),
      on_file: { provider: 'stripe', card_id: `card_${cards}_${owner}` },
    })
    const first = await chunk([owned(0, 0), owned(1, 1)], {
      async beforeCommit() {
        await chunk([owned(2, 1)])
      },
    })
    expect(first.references).toEqual(['ADDED', 'MOVED'])
  })

  it('whose card gets its token from another chunk meanwhile are decided with that token', async () => {
    cards += 10
    const plain = (pan: number, name: string) => ({ card: { ...cardOf(pan), cardholderName: name } })
    let other: string[] = []
    const first = await chunk([plain(0, 'A'), plain(1, 'B'), plain(2, 'C'), plain(3, 'D')], {
      async beforeCommit() {
        other = (await chunk([plain(1, 'B'), plain(2, 'OTHER')])).outcomes
      },
    })
    expect(other).toEqual(['CREATED', 'CREATED'])
    expect(first.outcomes).toEqual(['CREATED', 'UNCHANGED', 'UPDATED', 'CREATED'])
    const rows = await rowsOf(scopes.columns, [0, 1, 2, 3])
    expect(rows.map(row => row.cardHolderName)).toEqual(['A', 'B', 'C', 'D'])
    expect(await cardsOf(rows)).toEqual(rows.map(({ cards: [fp], tokenId }) => ({ fp, version: 1, token_id: tokenId })))
  })

  it('are inserted without a look-up while few cards of a batch are known, up to a tenth of a chunk', async () => {
    cards += 100
    const plain = (pan: number) => ({ card: cardOf(pan) })
    const from = (pan: number, count: number) => Array.from({ length: count }, (_, at) => plain(pan + at))
    const batchId = `f-${randomUUID()}`
    // How many were in columns when the cards were inserted: those that a look-up found aren't.
    const columnsOf = async (number: number, some: readonly { card: unknown }[]) =>
      (await chunk(some, { batchId, number })).columns
    expect(await columnsOf(0, from(0, 20))).toEqual([20])
    expect(await columnsOf(1, [...from(20, 18), ...from(0, 2)])).toEqual([20])
    expect(await columnsOf(2, [...from(40, 17), ...from(0, 3)])).toEqual([20])
    expect(await columnsOf(3, [...from(60, 18), ...from(0, 2)])).toEqual([18])
    expect(await columnsOf(4, [...from(80, 19), ...from(0, 1)])).toEqual([20])
  })

  it('are inserted without a look-up while a batch has new cards only, and nothing stays of those that were known', async () => {
    cards += 10
    const plain = (pan: number) => ({ card: cardOf(pan) })
    await chunk([plain(9)])
    const before = await countTokens()
    const batchId = `f-${randomUUID()}`
    const first = await chunk([plain(0), plain(1)], { batchId })
    const second = await chunk([plain(2), plain(9), plain(3)], { batchId, number: 1 })
    const third = await chunk([plain(4), plain(9), plain(2)], { batchId, number: 2 })
    expect([first.columns, second.columns, third.columns]).toEqual([[2], [3], [1]])
    expect(second.outcomes).toEqual(['CREATED', 'UNCHANGED', 'CREATED'])
    expect(third.outcomes).toEqual(['CREATED', 'DUPLICATE', 'DUPLICATE'])
    expect((await countTokens()) - before).toBe(5)
    const rows = await rowsOf(scopes.columns, [0, 1, 2, 3, 4, 9])
    expect((await cardsOf(rows)).map(({ token_id }) => token_id)).toEqual(rows.map(({ tokenId }) => tokenId))
  })

  it('of three chunks at once with the same cards make one token of each card', async () => {
    cards += 60
    const some = Array.from({ length: 50 }, (_, pan) => ({ card: cardOf(pan) }))
    const ends = await Promise.all([chunk(some), chunk(some.toReversed()), chunk(some.slice(20))])
    const created = ends.flatMap(({ outcomes }) => outcomes.filter(outcome => outcome === 'CREATED'))
    expect(created.length).toBe(50)
    const rows = await rowsOf(scopes.columns, [...some.keys()])
    expect(rows.length).toBe(50)
    expect((await cardsOf(rows)).length).toBe(50)
  })

  it('of a cancelled batch are answered one by one', async () => {
    cards += 10
    const batchId = `f-${randomUUID()}`
    await chunk([{ card: cardOf(0) }], { batchId })
    await cancel(batchId)
    const { outcomes, columns } = await chunk([{ card: cardOf(1) }, { card: cardOf(2) }], { batchId, number: 1 })
    expect({ outcomes, columns }).toEqual({ outcomes: ['CANCELLED', 'CANCELLED'], columns: [] })
  })

  async function cancel(batchId: string): Promise<void> {
    const { store } = installation.vault
    const batch = await batches.find(store, installation.credentials.signingKey.clientId, batchId)
    const by = { actor: { kind: 'machine', id: 'test' } as const, reason: undefined }
    if (batch) await cancelBatch(store, batch, by)
  }

  /** The worker's counts of records by form and outcome. */
  async function countsByForm(): Promise<Record<string, number>> {
    const { values } = await world.deps.metrics.chunkRecords.get()
    return Object.fromEntries(values.map(({ labels, value }) => [`${labels.form} ${labels.outcome}`, value]))
  }

  const panOf = (pan: number) => testPan(cards * 100 + pan)
  const cardOf = (pan: number) => ({ cardNumber: panOf(pan), expiryMonth: 12, expiryYear: 2031 })

  /** The tokens of cards in a scope. */
  async function rowsOf(scope: string, pans: readonly number[]): Promise<StoredToken[]> {
    const { ring, store } = installation.vault
    const prints = pans.map(pan => ring.fingerprints(new Secret(panOf(pan)), scope).kept[0] ?? '')
    const found = await tokens.findByCards(store, prints)
    return prints.flatMap(print => found.find(row => row.cards.includes(print)) ?? [])
  }

  async function cardsOf(rows: readonly StoredToken[]) {
    const { rows: found } = await installation.vault.store.query<{ fp: string; version: number; token_id: string }>({
      text: `select v.fp, c.version, c.token_id from unnest($1::uuid[]) with ordinality as v(fp, place)
        join tokenmill.card as c on c.fp = v.fp order by v.place`,
      values: [rows.flatMap(row => row.cards)],
    })
    return found
  }

  async function countTokens(): Promise<number> {
    const { rows } = await installation.vault.store.query<{ n: number }>({
      text: 'select count(*)::integer as n from tokenmill.token',
    })
    return rows[0]?.n ?? 0
  }

  interface ChunkOptions {
    batchId?: string
    number?: number
    beforeCommit?(): Promise<void>
  }

  /** Works a chunk. `columns`: how many rows each statement inserted that got columns. */
  async function chunk(requests: readonly object[], { batchId, number = 0, beforeCommit }: ChunkOptions = {}) {
    const lines = requests.map(({ reference, ...request }: { reference?: string }, index) =>
      JSON.stringify({ line: number * 100 + index + 1, reference, request }),
    )
    const job = await jobOf(batchId ?? `f-${randomUUID()}`, lines, { scope: scopes.columns, number, rule: undefined })
    const columns: number[] = []
    const store = watched(world.deps.store, columns, beforeCommit)
    const end = await runJob(job, new AbortController().signal, { ...world.deps, store })
    const { records } = resultOf(job)
    return {
      end,
      columns,
      outcomes: records?.map(({ outcome }) => outcome) ?? [],
      references: records?.map(({ reference_outcome }) => reference_outcome ?? '') ?? [],
    }
  }

  function resultOf({ receiptId: id }: Job): Result {
    const result = world.resultOf(id)
    if (!result) throw new Error('a chunk was not answered')
    return result
  }

  async function jobOf(
    batchId: string,
    lines: readonly string[],
    { scope, number, rule, dryRun = false }: { scope: string; number: number; rule: Policy; dryRun?: boolean },
  ): Promise<Job> {
    const sent = scope === scopes.sent ? inColumns(lines) : { lines: [...lines] }
    const { credentials } = installation
    const acceptedAt = Math.floor(Date.now() / 1000) - 1
    const plan = {
      batchId,
      recordKind: 'token-create' as const,
      tokenScope: scope,
      acceptedAt,
      captureKey: captureKey(),
    }
    const ask = await tokenBatch(
      credentials.signingKey.clientId,
      { ...plan, dryRun, ...(rule ? { policy: rule } : {}) },
      { ...sent, number },
    )
    if ('refused' in ask) throw new Error(`refused: ${ask.reason} ${ask.field}`)
    const options = { jti: ask.jti, block: ask.block, resultColumns: scope === scopes.sent }
    return world.job('token-batch', ask.request as Record<string, unknown>, options)
  }

  function captureKey(): PublicCaptureKey {
    const key = installation.credentials.captureKeys.jwe
    if (!key) throw new Error('these credentials hold no JWE key')
    return key
  }

  /** Sends the chunks to a scope; what became of them, with names in place of what differs between scopes. */
  async function play(chunks: readonly Sent[], rule: Policy, scope: string): Promise<unknown> {
    const isObjects = scope === scopes.objects
    const play = randomUUID()
    const seen: unknown[] = []
    const names = new Map<string, string>()
    const nameOf = (token: string | undefined) => {
      if (token === undefined) return undefined
      const id = parseReuseToken(token) ?? token
      names.set(id, names.get(id) ?? `token ${names.size}`)
      return names.get(id)
    }
    const receipts: string[] = []
    const used = new Set<number>()
    for (const [number, { batch, records: given, isReversed, life }] of chunks.entries()) {
      const records = given.map(withNumbers)
      const from = number * 100 + 1
      const lines = records.map((record, index) => lineOf(record, from + index, isObjects))
      if (isReversed) lines.reverse()
      const batchId = `${life === 'dry' ? 'dry' : 'f'}-${play}-${batch}`
      const job = await jobOf(batchId, lines, { scope, number, rule, dryRun: life === 'dry' })
      receipts.push(job.receiptId)
      if (life === 'cancelled') await cancel(batchId)
      // Some dry runs may ask only once or twice for an unknown card with the same digits.
      world.deps.settings.guessesMax = life === 'dry' ? ([1, 2][records.length % 3] ?? GUESSES_MAX) : GUESSES_MAX
      const poison = new Set(life === 'poisoned' || life === 'again' ? poisonOf(records, from) : [])
      const rivals = life === 'raced' ? othersOf(records, used) : []
      const other = rivals.length > 0 ? await jobOf(`r-${play}-${number}`, rivals, { scope, number, rule }) : undefined
      for (const one of numbersIn(records)) used.add(one)
      if (other) used.add(PANS)
      const first = await runWith(job, poison, other)
      expect(first.code).toBeLessThan(500)
      for (const { line, outcome } of recordsOf(first, () => undefined) ?? [])
        if (outcome === 'FAILED') expect(poison).toContain(line)
      const result = life === 'again' ? await world.run(job) : first
      const told = recordsOf(result, line => records[line - from]?.reference || undefined)?.map(
        ({ reuse_token, previous_token, analytics_token, ...record }) => ({
          ...record,
          reuse: nameOf(reuse_token),
          previous: nameOf(previous_token),
          analytics: analytics_token?.length,
        }),
      )
      seen.push(told ?? result.error?.details)
      seen.push(await receiptOf(job.receiptId, records, from, scope, nameOf))
    }
    const rows = await tokens.findByIds(installation.vault.store, [...names.keys()])
    for (const row of rows) seen.push(shown(row, receipts, names))
    const referring = await references.findByTokens(
      installation.vault.store,
      rows.map(({ tokenId }) => tokenId),
    )
    for (const { tokenId, lastReceipt, mark, ...reference } of sortedByOwner(referring)) {
      const { referenceNo: _, createdAt: __, updatedAt: ___, givenAt, ...said } = reference
      seen.push({
        ...said,
        givenAt: givenAt?.slice(1),
        tokenScope: '',
        token: names.get(tokenId),
        lastReceipt: receipts.indexOf(lastReceipt),
        line: mark?.line,
      })
    }
    const named = new Set(rows.flatMap(row => row.cards))
    expect((await cardsOf(rows)).map(({ fp }) => fp)).toEqual([...named])
    return seen
  }

  /** Runs a chunk whose poison makes it fail. `other`: is written before the chunk's first statement. */
  async function runWith(job: Job, poison: ReadonlySet<number>, other: Job | undefined): Promise<Result> {
    const { deps } = world
    const { store } = deps
    deps.inspect = ({ line = 0 }) => {
      if (poison.has(line)) throw new Error('poison')
    }
    const race = async () => {
      deps.store = store
      if (other) await world.run(other)
    }
    if (other) deps.store = watched(store, [], race)
    const result = await world.run(job)
    deps.store = store
    delete deps.inspect
    return result
  }

  const poisonOf = (records: readonly Given[], from: number) =>
    records.flatMap(({ isPoison }, index) => (isPoison ? from + index : []))

  /**
   * Creates of the same cards and owners, each once, but none of `known`: a chunk may decide on a token as it was before
   * the other chunk changed it.
   */
  function othersOf(records: readonly Given[], known: ReadonlySet<number>): string[] {
    const pans = [...new Set(records.flatMap(({ pan }) => (typeof pan === 'number' ? pan : [])))]
    return [...pans, PANS]
      .filter(pan => !known.has(pan))
      .map((pan, index) => {
        const owner = { provider: 'stripe', customer_id: `cus_${pan}`, card_id: `card_${cards}_${pan}` }
        const card = { ...cardOf(pan), cardholderName: 'OTHER' }
        return JSON.stringify({
          line: index + 1,
          request: { card, ...(pan % 2 === 0 ? { on_file: owner } : {}) },
        })
      })
  }

  function lineOf(
    { pan, month, year, name, reference, inCard, more, onFile, broken, sealed }: Given,
    line: number,
    isObjects: boolean,
  ): string {
    if (broken === 'cut') return `{"line":${line},`
    if (broken === 'bytes') return JSON.stringify([line])
    if (broken === 'rejected') return JSON.stringify({ line, reference, rejected: { reason: 'row_fields' } })
    const card = {
      cardNumber: numberOf(pan),
      expiryMonth: month,
      expiryYear: year,
      cardholderName: name,
      ...inCard,
      ...(isObjects && !sealed ? blankIn(inCard) : {}),
    }
    // The usual type; a record that names it isn't plain.
    const beside = isObjects && sealed ? { reuse_token_type: 'INTERNAL' } : {}
    const { owner, said } = onFile ?? {}
    const ids = { provider: 'stripe', customer_id: `cus_${owner}`, card_id: `card_${cards}_${owner}` }
    return JSON.stringify({
      line,
      reference,
      request: {
        ...(sealed ? seal(sealed, card, captureKey()) : { card }),
        ...(onFile ? { on_file: { ...ids, ...said } } : {}),
        ...beside,
        ...more,
      },
    })
  }

  /** The record with the chunk's cards where its texts name them. */
  function withNumbers(record: Given): Given {
    const fill = (text: string) =>
      text.replace(/#(\w)(\d)#/g, (_, form: string, pan: string) => FORMS[form]?.(panOf(Number(pan))) ?? '')
    const filled = (value: unknown): unknown => {
      if (typeof value === 'string') return fill(value)
      if (Array.isArray(value)) return value.map(filled)
      if (typeof value !== 'object' || value === null) return value
      return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, filled(member)]))
    }
    const { name, reference, onFile } = record
    return {
      ...record,
      name: filled(name) as Given['name'],
      reference: reference === undefined ? undefined : fill(reference),
      onFile: onFile && { ...onFile, said: filled(onFile.said) as Record<string, unknown> },
    }
  }

  function numberOf(pan: Given['pan']): string | number {
    if (pan === 'luhn') return panOf(0).replace(/.$/, last => String((Number(last) + 1) % 10))
    if (pan === 'short') return panOf(0).slice(0, 11)
    if (pan === 'amex') return testAmex(cards)
    return pan === 'number' ? Number(panOf(1)) : panOf(pan)
  }

  async function receiptOf(
    id: string,
    records: readonly Given[],
    from: number,
    scope: string,
    nameOf: (token: string | undefined) => string | undefined,
  ): Promise<unknown> {
    const { store, ring } = installation.vault
    const { rows } = await store.query<{ outcomes: string | null; counts: object; reasons: object; status: string }>({
      text: 'select outcomes, counts, reasons, status from tokenmill.receipt where receipt_id = $1',
      values: [id],
    })
    const [row] = rows
    if (!row) return undefined
    const outcomes = unpack(row.outcomes ?? '[]').map(({ tokenId, claimed, presented, ...record }) => {
      const pan = numberOf(records[record.line - from]?.pan ?? 0)
      const given = presented === undefined ? undefined : readPresented(presented)
      const fingerprint = given && ring.fingerprints(new Secret(String(pan)), scope).kept[0]
      const isChecked = given && fingerprint !== undefined && given.check === checkOf(fingerprint)
      const previous = claimed && nameOf(claimed.previous)
      return {
        ...record,
        token: nameOf(tokenId),
        claimed: claimed?.outcome,
        previous,
        expiry: given?.expiry,
        isChecked,
      }
    })
    // The order of the packed members counts, too.
    const lengths = (JSON.parse(row.outcomes ?? '[]') as unknown[][]).map(packed => packed.map(one => typeof one))
    return { ...row, outcomes, lengths }
  }

  /** The row without what differs between scopes and times. */
  function shown(row: StoredToken, receipts: readonly string[], names: ReadonlyMap<string, string>): unknown {
    const {
      tokenId,
      tokenScope,
      sealed,
      sealVersion,
      cards: prints,
      storedCards: _,
      createdAt: __,
      updatedAt: ___,
    } = row
    const { mark, lastReceipt, analyticsToken, givenAt, ...others } = row
    const pan = sealed && sealVersion ? installation.vault.ring.open(sealed, sealVersion, tokenId, tokenScope) : null
    const isItsCard =
      pan && prints[0] === installation.vault.ring.fingerprints(new Secret(pan.reveal()), tokenScope).kept[0]
    return {
      ...others,
      tokenId: names.get(tokenId),
      tokenScope: '',
      sealed: pan?.reveal(),
      cards: prints.length,
      isItsCard,
      storedCards: 0,
      createdAt: 0,
      updatedAt: 0,
      analyticsToken: analyticsToken?.length,
      lastReceipt: receipts.indexOf(lastReceipt ?? ''),
      mark: mark && { ...mark, batchNo: 0 },
      // Without the time: the two plays may be in two seconds.
      givenAt: givenAt && Object.entries(givenAt).map(([facet, giver]) => [facet, giver?.slice(1)]),
    }
  }
})

/** How a text may show a card: plain, with letters between, in a UUID, in full width, within a longer number, with another middle. */
const FORMS: Readonly<Record<string, (pan: string) => string>> = {
  p: pan => pan,
  l: pan => [...pan].join('a'),
  d: pan => [...pan].join('-'),
  u: pan => `${pan.slice(0, 8)}-${pan.slice(8, 12)}-${pan.slice(12, 16)}-abcd-abcdefabcdef`,
  w: pan => [...pan].map(digit => String.fromCharCode(digit.charCodeAt(0) + 0xfee0)).join(''),
  n: pan => `77${pan}0123`,
  m: pan => `${pan.slice(0, 6)}000000${pan.slice(12)}`,
  z: pan => `000${pan}`,
}

/** A member that says nothing, and that no plain record has. */
function blankIn(card: Record<string, unknown>): Record<string, unknown> {
  return 'sequenceNumber' in card
    ? { startMonth: card['startMonth'] ?? '', startYear: card['startYear'] ?? '' }
    : { sequenceNumber: '' }
}

/** The records of a result, those in its columns among them. `referenceAt`: the reference that the sender gave a line. */
function recordsOf(result: Result, referenceAt: (line: number) => string | undefined): RecordResult[] | undefined {
  const lines = new Set(result.columns?.line)
  return spread(result)?.map(record =>
    lines.has(record.line) ? { ...record, reference: referenceAt(record.line) } : record,
  )
}

/** The numbers of the cards and owners. */
function numbersIn(records: readonly Given[]): number[] {
  return records.flatMap(({ pan, onFile }) => [
    typeof pan === 'number' ? pan : pan === 'number' ? 1 : 0,
    ...(onFile ? [onFile.owner] : []),
  ])
}

function sortedByOwner(rows: readonly StoredReference[]): StoredReference[] {
  return rows.toSorted((a, b) => (ownerKey({ ...a, tokenScope: '' }) < ownerKey({ ...b, tokenScope: '' }) ? -1 : 1))
}

/** The records as a block in columns; those that can't stand in columns stay lines. */
function inColumns(lines: readonly string[]) {
  return {
    lines: columnLines(lines.map(line => inColumn(line) ?? line)),
    form: 'columns' as const,
    records: lines.length,
  }
}

function inColumn(line: string): ColumnRecord | undefined {
  const card = z.strictObject({
    cardNumber: z.string(),
    expiryMonth: z.int(),
    expiryYear: z.int(),
    cardholderName: z.string().min(1).optional(),
  })
  const record = z.strictObject({
    line: z.int(),
    reference: z.string().min(1).optional(),
    request: z.strictObject({ card }),
  })
  try {
    const { line: number, reference = '', request } = record.parse(JSON.parse(line))
    const { cardholderName = '', ...card } = request.card
    return { line: number, reference, ...card, cardholderName }
  } catch {
    return undefined
  }
}

/** The store, with a note of each insert of columns. `beforeCommit` is called once, before the first statement of a transaction. */
function watched(store: Store, columns: number[], beforeCommit?: () => Promise<void>): Store {
  let isCalled = false
  return {
    ...store,
    transaction: (work, options) =>
      store.transaction(async db => {
        if (beforeCommit && !isCalled) {
          isCalled = true
          await beforeCommit()
        }
        return work({
          query: async <R>(statement: Statement) => {
            const end = await db.query<R>(statement)
            if (statement.name?.endsWith('columns') && statement.name.startsWith('tokens-insert'))
              columns.push(end.count)
            return end
          },
        })
      }, options),
  }
}
