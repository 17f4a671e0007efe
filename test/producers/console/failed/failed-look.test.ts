// Looking through the failed set: each copy is listed once, also where very many fail within seconds or reading takes long, and a
// process looks once at a time.

import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { From } from '../../../../producers/console/failed/place.ts'
import { look } from '../../../../producers/console/failed/set.ts'
import { openTurns } from '../../../../producers/console/failed/turns.ts'
import { CATALOGUE } from '../../../../src/job/composition.ts'
import { failedDiscard, failedList } from '../../../../src/queue/failed.ts'
import { failCopy, KIND } from '../../../workers/act/failed-copies.ts'
import { type ConsoleBundle, openConsoleBundle } from '../bundle.ts'

const KINDS = [KIND, undefined] as const

/** A page that may take as long as it needs. */
const PATIENT = { ms: 60_000, least: 20, most: 200 } as const

type Bound = Record<'ms' | 'least' | 'most', number>

describe('looking', () => {
  let bundle: ConsoleBundle
  beforeAll(async () => {
    bundle = await openConsoleBundle()
  })
  afterAll(() => bundle?.close())
  beforeEach(async () => {
    for (const { id } of await failedList(queues(), KIND)) await failedDiscard(queues(), KIND, id)
  })

  const queues = () => bundle.installation.queues
  /** Copies as workers made them one after the other; `at(n)` is the moment that the worker's clock said. */
  async function fail(count: number, at: (n: number) => number): Promise<string[]> {
    const { credentials } = bundle.installation
    const made: string[] = []
    for (let n = 0; n < count; n += 1) made.push((await failCopy(queues(), { credentials, failedAt: at(n) })).id)
    return made
  }
  /** The ids on each page, from the newest on. Reading a block of copies takes `readMs`, but for the first `fast` pages. */
  async function pagesOf(
    kind: (typeof KINDS)[number],
    { bound, readMs = 0, fast = 0 }: { bound?: Bound; readMs?: number; fast?: number },
  ): Promise<string[][]> {
    const pages: string[][] = []
    const slow = async (...asked: Parameters<ReturnType<typeof queues>['list']>) => {
      if (pages.length >= fast) await pause(readMs)
      return queues().list(...asked)
    }
    const { store } = bundle.installation.vault
    const deps = {
      store,
      queues: readMs > 0 ? { ...queues(), list: slow } : queues(),
      catalogue: CATALOGUE,
      clock: Date.now,
    }
    let from: From | undefined
    do {
      // A busy machine may be slow on a page that is to be full.
      const own = pages.length < fast ? PATIENT : bound
      const looked = await look(deps, { entities: null }, { kind }, { from, limit: 50, ...(own && { bound: own }) })
      pages.push(looked.listed.map(({ id }) => id))
      from = looked.next
    } while (from && pages.length < 1_000)
    return pages
  }

  it('lists copies on each page when many fail within seconds and reading is slow', async () => {
    const now = Date.now() - 60_000
    const made = await fail(300, n => now + n * 20)
    for (const kind of KINDS) {
      const pages = await pagesOf(kind, { readMs: 40 })
      expect(pages.every(ids => ids.length > 0)).toBe(true)
      // However slow the reading is, a page looks at 20 copies at least.
      expect(pages.length).toBeLessThanOrEqual(300 / 20 + 1)
      expect(pages.flat().toSorted()).toEqual(made.toSorted())
    }
  })

  it('lists copies on each page, also where reading gets slow after a page that was full', async () => {
    const now = Date.now() - 60_000
    const made = await fail(110, n => now + n * 200)
    for (const kind of KINDS) {
      const pages = await pagesOf(kind, { readMs: 160, fast: 1 })
      expect(pages[0]).toHaveLength(50)
      expect(pages.every(ids => ids.length > 0)).toBe(true)
      expect(pages.flat().toSorted()).toEqual(made.toSorted())
    }
  })

  it('lists each copy once, wherever it stops and however clocks differ', async () => {
    const now = Date.now() - 600_000
    const made = await fail(150, n => now + n * 400 + ((n * 7_919) % 9_000))
    const bounds = [
      { ms: -1, least: 1, most: 200 },
      { ms: -1, least: 33, most: 200 },
      { ms: -1, least: 70, most: 200 },
      { ms: 60_000, least: 1, most: 60 },
      { ms: 60_000, least: 1, most: 200 },
    ]
    for (const bound of bounds) {
      const pages = await pagesOf(KIND, { bound })
      expect(pages.flat().toSorted(), JSON.stringify(bound)).toEqual(made.toSorted())
      expect(pages.every(ids => ids.length > 0)).toBe(true)
    }
  })

  it('stays possible from the address of the page, with the acts on all', async () => {
    const now = Date.now() - 60_000
    const made = await fail(320, n => now + n * 10)
    const { cookie } = await bundle.addPerson('ada')
    const found: string[] = []
    let path = '/failed?kind=report'
    for (let times = 0; times < 20; times += 1) {
      const { text } = await bundle.call('GET', path, { cookie })
      const ids = [...text.matchAll(/href="\/failed\/report\/(f_[\w-]{43})"/g)].map(([, id]) => id ?? '')
      expect(ids.length).toBeGreaterThan(0)
      expect(text).toContain('Retry all of these')
      found.push(...ids)
      const next = /href="([^"]*)">(?:Look further|Older)</.exec(text)?.[1]
      if (next === undefined) break
      path = next.replaceAll('&#38;', '&')
    }
    expect(found.toSorted()).toEqual(made.toSorted())
    for (const odd of ['first~', 'first~zz-1', 'first~0', '~1', 'mc000000.x~1', 'first~zzzzzz'])
      expect((await bundle.call('GET', `/failed?kind=report&before=${odd}`, { cookie })).status).toBe(200)
  })

  it('is limited for each person', async () => {
    const [ben, cleo] = [await bundle.addPerson('ben'), await bundle.addPerson('cleo')]
    const get = async ({ cookie }: typeof ben) => (await bundle.call('GET', '/failed', { cookie })).status
    for (let n = 0; n < 60; n += 1) expect(await get(ben)).toBe(200)
    expect([await get(ben), await get(cleo)]).toEqual([429, 200])
  })
})

describe('turns', () => {
  it('are one at a time, in order, also after one that failed', async () => {
    const turns = openTurns({ most: 5, mostOfOne: 5 })
    const told: string[] = []
    const work = (name: string) => async () => {
      told.push(`${name} begins`)
      await pause(5)
      told.push(`${name} ends`)
      if (name === 'b') throw new Error('b failed')
      return name
    }
    const all = await Promise.allSettled(['a', 'b', 'c'].map(name => turns('ada', work(name))))
    expect(all.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(told).toEqual(['a', 'b', 'c'].flatMap(name => [`${name} begins`, `${name} ends`]))
  })

  it('are refused to whoever has enough of them, and to everybody when too many wait', async () => {
    const turns = openTurns({ most: 3, mostOfOne: 2 })
    const gate = Promise.withResolvers<string>()
    const ask = (person: string) => turns(person, () => gate.promise)
    const asked = [ask('ada'), ask('ada')]
    expect(await ask('ada')).toBe('busy')
    asked.push(ask('ben'))
    expect(await ask('cleo')).toBe('busy')
    gate.resolve('looked')
    expect(await Promise.all(asked)).toEqual(['looked', 'looked', 'looked'])
    expect(await ask('ada')).toBe('looked')
  })
})
