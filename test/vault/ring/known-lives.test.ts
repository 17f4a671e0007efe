// What a process believes of the lives of keys, whatever lies in the store. The store is a variable.
import { randomBytes, randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { Fault } from '../../../src/errors.ts'
import type { KeyProvider } from '../../../src/vault/kek/provider.ts'
import { keksOf } from '../../../src/vault/kek/provider.ts'
import {
  activating,
  adding,
  firstLives,
  type KeyLives,
  type LivesRow,
  proveLives,
  setting,
  withKeys,
} from '../../../src/vault/ring/key-lives.ts'
import { ASK_MS, type KnownLives, openKnownLives } from '../../../src/vault/ring/known-lives.ts'
import { openKek } from '../bundle.ts'

const INSTALLATION = randomUUID()
const UNAVAILABLE = expect.objectContaining({ code: 'key_unavailable' })

let kek: KeyProvider
let stored: LivesRow | undefined
let kept: LivesRow | undefined
const first = firstLives([
  { purpose: 'seal', version: 1 },
  { purpose: 'grant', version: 1 },
])
const rotated = withKeys(first, 'seal', (keys, epoch) => activating(2)(adding('seal', 2)(keys, epoch)))
const destroyed = withKeys(rotated, 'seal', setting(1, { state: 'DESTROYED' }))

beforeEach(async () => {
  kek = await openKek()
  stored = await prove(first)
  kept = undefined
})

const prove = (lives: KeyLives) => proveLives(kek, INSTALLATION, lives)

function open(floor?: number): KnownLives {
  return openKnownLives({
    installationId: INSTALLATION,
    keks: keksOf(kek),
    load: async () => stored,
    kept: {
      read: async () => kept,
      write: async row => {
        kept = row
      },
    },
    floor: floor === undefined ? undefined : async () => floor,
  })
}

const stateOf = ({ keys }: KeyLives, version: number) =>
  keys.find(key => key.purpose === 'seal' && key.version === version)?.state

describe('what a process knows of the lives of keys', () => {
  it('follows each row that the key-encryption key proves', async () => {
    const lives = open()
    expect(await lives.read()).toEqual(first)
    stored = await prove(rotated)
    expect(await lives.read()).toEqual(rotated)
    expect(lives.trouble()).toBeUndefined()
  })

  it.each([
    ['its keys', (row: LivesRow) => ({ ...row, keys: row.keys.replace('DECRYPT_ONLY', 'ACTIVE') })],
    ['its phase', (row: LivesRow) => ({ ...row, phase: row.phase.replace('"turn":1', '"turn":2') })],
    ['its epoch', (row: LivesRow) => ({ ...row, epoch: row.epoch + 1 })],
    ['its proof', (row: LivesRow) => ({ ...row, proof: randomBytes(row.proof.length) })],
    ['the name of its key', (row: LivesRow) => ({ ...row, kekId: 'kek-0000000000000000' })],
  ])('goes on by what it knew where somebody changed %s', async (_, change) => {
    stored = await prove(rotated)
    const lives = open()
    await lives.read()
    stored = change(stored)
    expect(await lives.read()).toEqual(rotated)
    expect(lives.trouble()).toBe('unproved')
    stored = await prove(destroyed)
    expect(stateOf(await lives.read(), 1)).toBe('DESTROYED')
    expect(lives.trouble()).toBeUndefined()
  })

  it('goes on where the row is gone, and never believes a former one', async () => {
    const former = await prove(rotated)
    stored = await prove(destroyed)
    const lives = open()
    await lives.read()
    stored = undefined
    expect(stateOf(await lives.read(), 1)).toBe('DESTROYED')
    expect(lives.trouble()).toBe('missing')
    stored = former
    expect(stateOf(await lives.read(), 1)).toBe('DESTROYED')
    expect(lives.trouble()).toBe('older')
  })

  it('takes another row of the same epoch for an older one, and the same lives under another key for the same', async () => {
    stored = await prove(rotated)
    const lives = open()
    await lives.read()
    stored = await prove({ ...withKeys(first, 'seal', setting(1, { compromised: 2 })) })
    expect(await lives.read()).toEqual(rotated)
    expect(lives.trouble()).toBe('older')
    stored = await prove(rotated)
    expect(await lives.read()).toEqual(rotated)
    expect(lives.trouble()).toBeUndefined()
  })

  it('keeps the newest row over its own end, and another process of the host goes by it', async () => {
    const former = stored
    stored = await prove(destroyed)
    await open().read()
    stored = former
    const next = open()
    expect(stateOf(await next.read(), 1)).toBe('DESTROYED')
    expect(next.trouble()).toBe('older')
    // As an operator says that the restored row holds.
    stored = await prove({ ...first, epoch: destroyed.epoch + 1_000 })
    expect(stateOf(await next.read(), 1)).toBe('ACTIVE')
    expect(kept?.epoch).toBe(destroyed.epoch + 1_000)
  })

  it('does not begin with a row that is older than what others have seen, where nothing is kept', async () => {
    await expect(open(rotated.epoch).read()).rejects.toEqual(UNAVAILABLE)
    expect(await open(first.epoch).read()).toEqual(first)
    // Nor one that has missed what others have seen: what it kept is no more than what is stored now.
    await expect(open(rotated.epoch).read()).rejects.toEqual(UNAVAILABLE)
    stored = await prove(rotated)
    expect(await open(rotated.epoch).read()).toEqual(rotated)
  })

  describe('of a process that runs, and was cut off from the store while a key turned', () => {
    let now: number
    let isAway: boolean
    let seen: number
    let lives: KnownLives
    beforeEach(async () => {
      now = 0
      isAway = false
      seen = first.epoch
      lives = openKnownLives({
        installationId: INSTALLATION,
        keks: keksOf(kek),
        load: async () => {
          if (isAway) throw new Fault('store_away')
          return stored
        },
        floor: async () => seen,
        clock: () => now,
      })
      await lives.read()
      now += 2 * ASK_MS
      await lives.read()
      now += 2 * ASK_MS
    })
    const cutOff = async () => {
      isAway = true
      await expect(lives.read()).rejects.toThrow()
      isAway = false
    }

    it('is the turning, as soon as it reads the row again', async () => {
      await cutOff()
      stored = await prove(rotated)
      expect(await lives.read()).toEqual(rotated)
    })

    it('is nothing where a failover lost the turning that others have seen, until an operator says what holds', async () => {
      await cutOff()
      seen = rotated.epoch
      for (let n = 0; n < 3; n += 1) {
        await expect(lives.read()).rejects.toEqual(UNAVAILABLE)
        expect(lives.trouble()).toBe('older')
        now += 2 * ASK_MS
      }
      stored = await prove({ ...first, epoch: rotated.epoch + 1_000 })
      expect((await lives.read()).epoch).toBe(rotated.epoch + 1_000)
      expect(lives.trouble()).toBeUndefined()
    })

    it('is nothing, too, where the others come back later than this process', async () => {
      await cutOff()
      expect(await lives.read()).toEqual(first)
      now += ASK_MS / 2
      seen = rotated.epoch
      await expect(lives.read()).rejects.toEqual(UNAVAILABLE)
    })

    it('is asked of others where the process stood still, and not where it read on', async () => {
      seen = rotated.epoch
      await expect(lives.read()).rejects.toEqual(UNAVAILABLE)
      seen = first.epoch
      for (const end = now + 2 * ASK_MS; now < end; now += 5_000) expect(await lives.read()).toEqual(first)
      seen = rotated.epoch
      expect(await lives.read()).toEqual(first)
    })

    it('is what it knows, where it knows as much as the others', async () => {
      stored = await prove(rotated)
      await lives.read()
      await cutOff()
      seen = rotated.epoch
      stored = await prove(first)
      expect(await lives.read()).toEqual(rotated)
      expect(lives.trouble()).toBe('older')
    })
  })

  it('believes no row of another installation, and no kept row that this key does not prove', async () => {
    stored = await proveLives(kek, randomUUID(), first)
    await expect(open().read()).rejects.toEqual(UNAVAILABLE)
    kept = await proveLives(await openKek(), INSTALLATION, destroyed)
    stored = await prove(rotated)
    expect(await open().read()).toEqual(rotated)
  })

  it('goes on while the key-encryption key is away, and follows when it is back', async () => {
    let isAway = false
    const here = kek
    const lives = openKnownLives({
      installationId: INSTALLATION,
      keks: {
        find: () => ({
          ...here,
          unwrap: (wrapped, purpose) =>
            isAway ? Promise.reject(new Fault('kek_away')) : here.unwrap(wrapped, purpose),
        }),
      },
      load: async () => stored,
    })
    await lives.read()
    isAway = true
    stored = await prove(rotated)
    expect(await lives.read()).toEqual(first)
    expect(lives.trouble()).toBe('unread')
    isAway = false
    expect(await lives.read()).toEqual(rotated)
  })
})
