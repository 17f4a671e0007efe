// Keys that are added and removed while a process holds them, and the seals that it reserves. The store is a list in
// memory.
import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { Fault } from '../../../src/errors.ts'
import { AFRESH_MS, holdKeys, type KeyRow, PENDING_WAIT_MS, SEALS } from '../../../src/vault/ring/held-keys.ts'

type State = KeyRow['state']
const PURPOSES = ['seal', 'digest'] as const
const UNAVAILABLE = expect.objectContaining({ code: 'key_unavailable' })

/** A store of keys: `rows` may be changed; it notes which keys were opened, and which seals were reserved. */
function storeOf(...first: [version: number, state: State][]) {
  const keys = new Map<string, KeyObject>()
  const store = {
    rows: [] as KeyRow[],
    opened: [] as string[],
    reserved: [] as string[],
    /** Thrown by the next load or open. */
    away: undefined as Error | undefined,
    locked: new Set<string>(),
    /** Opening this key waits for the promise. */
    slow: undefined as { name: string; until: Promise<void> } | undefined,
    isFull: false,
    /** Reserving seals for this purpose fails. */
    blocked: undefined as string | undefined,
    loads: 0,
    async load() {
      store.loads += 1
      const { rows } = store
      await Promise.resolve()
      if (store.away) throw store.away
      return [...rows, { purpose: 'digest', version: 1, state: 'ACTIVE' as const }]
    },
    async open({ purpose, version }: KeyRow) {
      const name = `${purpose}/${version}`
      if (store.locked.has(name)) throw new Fault('key_unavailable')
      if (store.slow?.name === name) await store.slow.until
      store.opened.push(name)
      const key = keys.get(name) ?? createSecretKey(randomBytes(32))
      keys.set(name, key)
      return key
    },
    /** How many seals are reserved under a key. */
    counted: new Map<string, number>(),
    async reserve(purpose: string, version: number, seals: number) {
      if (purpose === store.blocked) throw new Fault('store_away')
      const row = store.rows.find(one => one.purpose === purpose && one.version === version)
      if (store.isFull || (row?.state !== 'ACTIVE' && row?.state !== 'PENDING')) return undefined
      const name = `${purpose}/${version}`
      store.reserved.push(`${name} ${seals}`)
      const counted = (store.counted.get(name) ?? 0) + seals
      store.counted.set(name, counted)
      return counted
    },
    async raise(purpose: string, version: number, seals: number) {
      const name = `${purpose}/${version}`
      store.counted.set(name, Math.max(store.counted.get(name) ?? 0, seals))
      return store.isFull ? undefined : store.counted.get(name)
    },
    set(...states: [version: number, state: State][]) {
      store.rows = states.map(([version, state]) => ({ purpose: 'seal', version, state }))
    },
  }
  store.set(...first)
  return store
}

describe('a process that holds keys', () => {
  it('opens what is new, keeps what it has, and forgets what is destroyed', async () => {
    const store = storeOf([1, 'ACTIVE'])
    const held = await holdKeys(store, PURPOSES)
    expect(held.names()).toEqual(['seal/1', 'digest/1'])
    store.set([1, 'ACTIVE'], [2, 'PENDING'])
    await held.refresh()
    expect(held.names()).toEqual(['seal/1', 'seal/2', 'digest/1'])
    expect(held.current('seal').version).toBe(1)
    store.set([1, 'DECRYPT_ONLY'], [2, 'ACTIVE'])
    await held.refresh()
    expect(held.current('seal').version).toBe(2)
    expect(held.find('seal', 1)).toBeDefined()
    store.set([1, 'DESTROYED'], [2, 'ACTIVE'])
    await held.refresh()
    expect(held.names()).toEqual(['seal/2', 'digest/1'])
    expect(() => held.find('seal', 1)).toThrow(UNAVAILABLE)
    expect(store.opened).toEqual(['seal/1', 'digest/1', 'seal/2'])
  })

  it('goes on with the keys it has while the store is away, or has none or two in use', async () => {
    const store = storeOf([1, 'ACTIVE'])
    const held = await holdKeys(store, PURPOSES)
    await held.reserve('seal')
    store.away = new Fault('store_away')
    await expect(held.refresh()).rejects.toThrow(store.away)
    store.away = undefined
    for (const states of [
      [],
      [[1, 'DECRYPT_ONLY']],
      [
        [1, 'ACTIVE'],
        [2, 'ACTIVE'],
      ],
    ] as [number, State][][]) {
      store.set(...states)
      await expect(held.refresh()).rejects.toEqual(UNAVAILABLE)
      expect(held.forSeal('seal').version).toBe(1)
    }
  })

  it('tells of a PENDING key that it can not open, and works on without it', async () => {
    const store = storeOf([1, 'ACTIVE'])
    const told: string[] = []
    const held = await holdKeys(store, PURPOSES, { onUnopened: name => told.push(name) })
    store.locked.add('seal/2')
    store.set([1, 'ACTIVE'], [2, 'PENDING'])
    await held.refresh()
    expect({ told, names: held.names() }).toEqual({ told: ['seal/2'], names: ['seal/1', 'digest/1'] })
    store.locked.clear()
    await held.refresh()
    expect(held.names()).toContain('seal/2')
  })

  it('seals nothing under a key that the store has lost, opens with it, and goes on with the others', async () => {
    const store = storeOf([1, 'DECRYPT_ONLY'], [2, 'ACTIVE'])
    const held = await holdKeys(store, PURPOSES)
    await held.reserve('seal')
    store.rows = store.rows.map(row => ({ ...row, isLost: row.version === 2 }))
    await held.refresh()
    expect(() => held.forSeal('seal')).toThrow(UNAVAILABLE)
    expect(held.find('seal', 2)).toBeDefined()
    expect(held.current('digest').version).toBe(1)
    const late = await holdKeys(store, PURPOSES)
    expect(late.names()).toEqual(['seal/1', 'digest/1'])
    expect(() => late.current('seal')).toThrow(UNAVAILABLE)
  })

  it('does not open at all where it lacks a key in use', async () => {
    const store = storeOf([1, 'DECRYPT_ONLY'], [2, 'ACTIVE'])
    store.locked.add('seal/2')
    await expect(holdKeys(store, PURPOSES)).rejects.toEqual(UNAVAILABLE)
  })

  it('that reads the rows already reads them once more for all who ask meanwhile', async () => {
    const store = storeOf([1, 'ACTIVE'])
    const held = await holdKeys(store, PURPOSES)
    const first = held.refresh()
    store.set([1, 'DECRYPT_ONLY'], [2, 'ACTIVE'])
    await Promise.all([first, held.refresh(), held.refresh(), held.refresh()])
    expect({ loads: store.loads, version: held.current('seal').version }).toEqual({ loads: 3, version: 2 })
  })
})

describe('the count of seals', () => {
  it('is raised where it fell below what this process has seen, by a page more, and told', async () => {
    const store = storeOf([1, 'ACTIVE'])
    const told: string[] = []
    const held = await holdKeys(store, PURPOSES, { onLowered: name => told.push(name) })
    await held.reserve('seal')
    const seen = store.counted.get('seal/1') ?? 0
    expect(seen).toBe(SEALS.first)
    store.counted.set('seal/1', 0)
    held.forSeal('seal')
    await held.refresh()
    expect(told).toEqual(['seal/1'])
    expect(store.counted.get('seal/1')).toBe(seen + SEALS.second + SEALS.block)
    expect(held.forSeal('seal').version).toBe(1)
  })

  it('that can not be raised leaves the key with what was reserved before', async () => {
    const store = storeOf([1, 'ACTIVE'])
    const held = await holdKeys(store, PURPOSES)
    await held.reserve('seal')
    const { raise } = store
    store.raise = async (...words) => {
      await raise(...words)
      return undefined
    }
    store.counted.set('seal/1', 0)
    for (let seal = 0; seal < SEALS.first; seal += 1) held.forSeal('seal')
    await held.refresh()
    expect(() => held.forSeal('seal')).toThrow(UNAVAILABLE)
  })
})

describe('seals', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  it('are not made before any is reserved, nor by a process whose rows are old', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const store = storeOf([1, 'ACTIVE'])
    const held = await holdKeys(store, PURPOSES)
    expect(() => held.forSeal('seal')).toThrow(UNAVAILABLE)
    await held.reserve('seal')
    expect(held.forSeal('seal').version).toBe(1)
    vi.advanceTimersByTime(AFRESH_MS)
    expect(() => held.forSeal('seal')).toThrow(UNAVAILABLE)
    await held.refresh()
    expect(held.forSeal('seal').version).toBe(1)
  })

  it('go on while a PENDING key hangs that this process does not have', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const store = storeOf([1, 'ACTIVE'])
    const held = await holdKeys(store, PURPOSES)
    await held.reserve('seal')
    const { promise, resolve } = Promise.withResolvers<void>()
    store.slow = { name: 'seal/2', until: promise }
    store.set([1, 'ACTIVE'], [2, 'PENDING'])
    vi.advanceTimersByTime(AFRESH_MS - 1)
    const first = held.refresh()
    await vi.advanceTimersByTimeAsync(PENDING_WAIT_MS)
    await first
    for (let round = 0; round < 3; round++) {
      expect(held.forSeal('seal').version).toBe(1)
      expect(held.forHash('digest').version).toBe(1)
      vi.advanceTimersByTime(AFRESH_MS - PENDING_WAIT_MS - 1_000)
      expect(held.forSeal('seal').version).toBe(1)
      await held.refresh()
    }
    expect({ names: held.names(), isTurning: held.isTurning() }).toEqual({
      names: ['seal/1', 'digest/1'],
      isTurning: false,
    })
    resolve()
    await vi.waitFor(() => expect(held.names()).toContain('seal/2'))
    expect(held.isTurning()).toBe(true)
    expect(store.opened.filter(name => name === 'seal/2')).toHaveLength(1)
    store.set([1, 'DECRYPT_ONLY'], [2, 'ACTIVE'])
    await held.refresh()
    expect(held.forSeal('seal').version).toBe(2)
  })

  it('are reserved by the block: a small one at the start, and larger ones where they are used', async () => {
    const store = storeOf([1, 'ACTIVE'])
    const held = await holdKeys(store, PURPOSES)
    await held.reserve('seal')
    await held.refresh()
    expect(store.reserved).toEqual([`seal/1 ${SEALS.first}`])
    held.forSeal('seal')
    await held.refresh()
    expect(store.reserved).toEqual([`seal/1 ${SEALS.first}`, `seal/1 ${SEALS.second}`])
    for (let made = 1; made < SEALS.first + SEALS.second / 2 - 1; made++) held.forSeal('seal')
    await held.refresh()
    expect(store.reserved).toHaveLength(2)
    held.forSeal('seal')
    await held.refresh()
    expect(store.reserved.slice(2)).toEqual([`seal/1 ${SEALS.block}`])
  })

  it('end with the block where no more are to be had, and not one is made beyond it', async () => {
    const store = storeOf([1, 'ACTIVE'])
    const held = await holdKeys(store, PURPOSES)
    await held.reserve('seal')
    store.isFull = true
    for (let made = 0; made < SEALS.first; made++) held.forSeal('seal')
    await held.refresh()
    expect(() => held.forSeal('seal')).toThrow(UNAVAILABLE)
  })

  it('of one purpose that can not be reserved keep neither another purpose nor the new keys from use', async () => {
    const store = storeOf([1, 'ACTIVE'])
    const told: string[] = []
    const held = await holdKeys(store, PURPOSES, { onUnreserved: name => told.push(name) })
    store.blocked = 'digest'
    await held.reserve('digest', 'seal')
    expect(held.forSeal('seal').version).toBe(1)
    expect(() => held.forSeal('digest')).toThrow(UNAVAILABLE)
    store.set([1, 'DECRYPT_ONLY'], [2, 'ACTIVE'])
    await held.refresh()
    expect(held.forSeal('seal').version).toBe(2)
    expect(told).toEqual(['digest/1', 'digest/1'])
  })

  it('are reserved under a PENDING key, so that the first one under it waits for nothing', async () => {
    const store = storeOf([1, 'ACTIVE'], [2, 'PENDING'])
    const held = await holdKeys(store, PURPOSES)
    await held.reserve('seal')
    store.set([1, 'DECRYPT_ONLY'], [2, 'ACTIVE'])
    store.isFull = true
    await held.refresh()
    expect(held.forSeal('seal').version).toBe(2)
  })
})
