import { EventEmitter } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateKey } from 'openpgp'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { writeSample } from '../../bin/sample/cards.ts'
import { barOf, measureRun, openProgress } from '../../producers/progress.ts'
import { readRows } from '../../producers/rows/file-rows.ts'
import { BUILT_IN } from '../../producers/rows/profile/built-in.ts'
import type { Profile } from '../../producers/rows/profile/profile.ts'
import { openSource } from '../../producers/rows/source.ts'
import { validateFile } from '../../producers/rows/validate-file.ts'
import { noCounts } from '../../src/job/outcome.ts'
import { passesLuhn } from '../../src/token/pan.ts'
import { collect } from '../producers/rows/bytes.ts'

const NOW = Date.UTC(2026, 4, 20)
const CSV = { format: 'csv', recordKind: 'token-create' } as const

let folder: string
const path = (name: string) => join(folder, name)
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tokenmill-sample-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

describe('the sample', () => {
  it('is the same for the same seed and another for another', async () => {
    const counts = await writeSample(path('a.csv'), { rows: 2_000, seed: 7, now: NOW })
    expect(await writeSample(path('b.csv'), { rows: 2_000, seed: 7, now: NOW })).toEqual(counts)
    await writeSample(path('c.csv'), { rows: 2_000, seed: 8, now: NOW })
    const [a, b, c] = await Promise.all(['a', 'b', 'c'].map(name => readFile(path(`${name}.csv`), 'utf8')))
    expect(a).toBe(b)
    expect(a).not.toBe(c)
  })

  it('has the same rows in the columns of Stripe, and customers who share a card', async () => {
    const counts = await writeSample(path('s.csv'), { rows: 2_000, seed: 7, now: NOW, isStripe: true })
    expect(counts).toEqual(await writeSample(path('a.csv'), { rows: 2_000, seed: 7, now: NOW }))
    const rowsOf = async (name: string, profile?: Profile) => {
      const { digests } = await validateFile({ path: path(name) }, { ...CSV, profile })
      return collect(readRows((await openSource({ path: path(name) }, digests)).bytes, { ...CSV, profile }))
    }
    const own = await rowsOf('a.csv')
    const stripe = await rowsOf('s.csv', BUILT_IN['stripe-csv'])
    const cardsOf = (rows: typeof own) => rows.map(({ rejected, json }) => rejected ?? JSON.parse(json).request.card)
    expect(cardsOf(stripe)).toEqual(cardsOf(own))
    const customers = new Map<string, Set<string>>()
    for (const { rejected, json, number } of stripe) {
      if (rejected !== undefined) continue
      const sharing = customers.get(number) ?? new Set()
      customers.set(number, sharing.add(JSON.parse(json).request.on_file.customer_id))
    }
    expect([...customers.values()].filter(sharing => sharing.size > 1).length).toBeGreaterThan(counts.duplicate / 2)
  })

  it('has as many bad, repeated and expired rows as it says', async () => {
    const counts = await writeSample(path('d.csv'), { rows: 10_000, seed: 1, now: NOW })
    const { digests, rows } = await validateFile({ path: path('d.csv') }, CSV)
    expect(rows).toBe(10_000)
    expect(Object.values(counts).reduce((sum, count) => sum + count)).toBe(10_000)
    const all = await collect(readRows((await openSource({ path: path('d.csv') }, digests)).bytes, CSV))
    const rejected = all.map(row => row.rejected)
    expect(rejected.filter(reason => reason === 'expiry_format')).toHaveLength(counts.month)
    const broken = rejected.filter(reason => reason === 'row_fields' || reason === 'row_quotes')
    expect(broken).toHaveLength(counts.broken)

    const cards = all.flatMap(row => (row.rejected === undefined ? [JSON.parse(row.json).request.card] : []))
    const isExpired = (card: { expiryMonth: number; expiryYear: number }) =>
      card.expiryYear * 12 + card.expiryMonth < 2026 * 12 + 5
    expect(cards.filter(isExpired)).toHaveLength(counts.expired)
    expect(cards.filter(card => card.cardholderName.length > 30)).toHaveLength(counts.name)
    const wellFormed = cards.filter(card => card.cardNumber.length >= 12)
    expect(cards.length - wellFormed.length).toBe(counts.length)
    const valid = wellFormed.filter(card => passesLuhn(card.cardNumber))
    expect(wellFormed.length - valid.length).toBe(counts.luhn)
    expect(valid.length - new Set(valid.map(card => card.cardNumber)).size).toBe(counts.duplicate)
    const bad = counts.luhn + counts.length + counts.month + counts.name + counts.broken
    expect(bad).toBeGreaterThan(150)
    expect(bad).toBeLessThan(400)
  })

  it('comes out of its OpenPGP file as it went in', async () => {
    const { publicKey, privateKey } = await generateKey({ userIDs: [{ name: 'demo' }], format: 'armored' })
    await writeFile(path('demo.key'), privateKey)
    const options = { rows: 5_000, seed: 3, now: NOW }
    await writeSample(path('e.csv'), options)
    await writeSample(path('e.csv.pgp'), { ...options, encryptTo: publicKey })
    const source = { path: path('e.csv.pgp'), decryptKeyFile: path('demo.key') }
    const { digests, rows } = await validateFile(source, CSV)
    const clear = await validateFile({ path: path('e.csv') }, CSV)
    expect(rows).toBe(clear.rows)
    const decrypted = await collect(readRows((await openSource(source, digests)).bytes, CSV))
    expect(decrypted).toEqual(
      await collect(readRows((await openSource({ path: path('e.csv') }, clear.digests)).bytes, CSV)),
    )
  })
})

describe('progress', () => {
  const open = (isTTY: boolean, total?: number) => {
    const written: string[] = []
    let now = 0
    const stream = { isTTY, write: (text: string) => written.push(text) } as unknown as NodeJS.WriteStream
    const progress = openProgress({ stream, clock: () => now, total })
    const at = (ms: number, created: number) => {
      now = ms
      progress.update({ ...noCounts(), CREATED: created, REJECTED: 1 })
    }
    return { written, at, progress }
  }

  it('is a line every ten seconds where there is no terminal, and a last one at the end', () => {
    const { written, at, progress } = open(false, 1_000)
    at(5_000, 99)
    at(10_000, 199)
    at(15_000, 299)
    at(20_000, 499)
    progress.stop()
    expect(written).toEqual([
      '200 of 1000 rows, 20 rows/s, ETA 40 s: created 199, rejected 1\n',
      '500 of 1000 rows, 25 rows/s, ETA 20 s: created 499, rejected 1\n',
      '500 of 1000 rows, 25 rows/s, ETA 20 s: created 499, rejected 1\n',
    ])
  })

  it('promises no end where the number of rows is not known', () => {
    const { written, at } = open(false)
    at(10_000, 99)
    expect(written).toEqual(['100 rows, 10 rows/s, ETA ?: created 99, rejected 1\n'])
  })

  it('is a bar on a terminal, as wide as there is room, and narrower where the terminal becomes so', () => {
    const written: string[] = []
    const stream = Object.assign(new EventEmitter(), {
      isTTY: true,
      columns: 80,
      write: (text: string) => written.push(text),
    }) as unknown as NodeJS.WriteStream
    const progress = openProgress({ stream, clock: () => 0, total: 1_000 })
    progress.update({ ...noCounts(), CREATED: 500 })
    stream.columns = 44
    stream.emit('resize')
    const [, first, second] = written
    expect(first).toBe(`\r ${'░'.repeat(31)} 0% | 0/1000 rows | ETA ? | 0 rows/s | none yet\u001b[J`)
    // The wrapped line that stood there is drawn over from its beginning.
    expect(second).toBe('\u001b[1A')
    expect(written[3]).toBe(`\r ${'█'.repeat(7)}${'░'.repeat(7)} 50% | 500/1000 rows | ETA ?\u001b[J`)
    progress.stop()
    expect(written.at(-1)).toBe('\n\u001b[?25h')
    expect(stream.listenerCount('resize')).toBe(0)
  })

  it.each([1, 10, 20, 30, 44, 60, 80, 100, 200])('never fills a terminal of %i columns', columns => {
    const facts = {
      rows: 81_233,
      total: 1_000_000,
      rate: 9_000,
      left: '1 min 42 s',
      outcomes: 'created 81000, rejected 233',
    }
    const bar = barOf(facts, columns)
    expect(bar.length).toBeLessThan(columns)
    if (columns >= 10) expect(bar).toContain('8%')
  })

  it('does not count what an earlier run had done for its rate', () => {
    expect(measureRun({ rows: 600, done: 500, total: 8_000, ms: 1_000 })).toEqual({ rate: 100, left: '1 min 14 s' })
    expect(measureRun({ rows: 1, done: 0, total: 36_001, ms: 1_000 })).toEqual({ rate: 1, left: '10 h 0 min' })
    expect(measureRun({ rows: 0, done: 0, total: 10, ms: 0 })).toEqual({ rate: 0, left: '?' })
  })
})
