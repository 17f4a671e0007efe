// The data keys that a process holds while it works: it reads their rows again and again, opens the keys that are new,
// and forgets the ones that were destroyed. A key seals only what the process has reserved beforehand, because random
// nonces are safe for a limited number of seals. The caller passes the functions that load and open keys.
import type { KeyObject } from 'node:crypto'
import { Fault } from '../../errors.ts'

/** The members of a key's row. A purpose has exactly one ACTIVE key. */
export interface KeyRow {
  purpose: string
  version: number
  /** PENDING: every process opens it and none uses it yet, but a `fingerprint` that the phase of cards names. */
  state: 'PENDING' | 'ACTIVE' | 'DECRYPT_ONLY' | 'DESTROYED'
  /** A compromise of the key has ended: nothing that tokenmill wrote needs it any more. */
  isEnded?: boolean
  /** The store has lost the key. A process that holds it opens with it and seals nothing: nobody else could open that. */
  isLost?: boolean
}

export interface KeySource<Row extends KeyRow> {
  /** All rows. */
  load(): Promise<readonly Row[]>
  /** Opens one key. Throws `Fault('key_unavailable')` if this host can't. */
  open(row: Row): Promise<KeyObject>
  /**
   * Reserves seals for this process. Returns how many are reserved under the key then, by all processes; undefined if the key
   * isn't used for sealing any more, or was used too often. Without this function seals aren't counted (for a process that
   * only opens).
   */
  reserve?: ((purpose: string, version: number, seals: number) => Promise<number | undefined>) | undefined
  /**
   * Raises the count of reserved seals to `seals`, if it is lower. Returns the count then; undefined as `reserve` does.
   */
  raise?: ((purpose: string, version: number, seals: number) => Promise<number | undefined>) | undefined
  /**
   * Set if the process calls `refresh` again and again though it reserves no seals. Then `forHash` refuses a key after
   * `AFRESH_MS` without a `refresh`, as it does with `reserve`.
   */
  isFollowed?: boolean
}

export interface CurrentKey {
  key: KeyObject
  version: number
}

/** A keyed hash of 32 bytes, and the version of its key. */
export interface Hashed {
  hash: Buffer
  keyVersion: number
}

export interface HeldKeys<Purpose extends string> {
  /** The keys, as `purpose/version`. */
  names(): string[]
  /** The ACTIVE key. */
  current(purpose: Purpose): CurrentKey
  /**
   * The ACTIVE key, for a keyed hash that is stored. Throws `Fault('key_unavailable')` if the rows weren't read for
   * `AFRESH_MS`: this key may have been destroyed since. Then call `refresh`.
   */
  forHash(purpose: Purpose): CurrentKey
  /** The versions that are held, oldest first. */
  versions(purpose: Purpose): number[]
  /** Whether a compromise of this version has ended (`KeyRow`). */
  isEnded(purpose: Purpose, version: number): boolean
  /** Whether the rows were read less than `AFRESH_MS` ago; else a compromise may have ended without this process. */
  isAfresh(): boolean
  /** Whether a key is held that isn't in use yet. */
  isTurning(): boolean
  /**
   * The ACTIVE key for one seal. Throws `Fault('key_unavailable')` if no seal is reserved, or if the rows weren't read
   * for `AFRESH_MS`: then another key may have taken its place. In both cases call `refresh`.
   */
  forSeal(purpose: Purpose): CurrentKey
  /** Throws `Fault('key_unavailable')` for a key that isn't held; it may be new (`refresh`). */
  find(purpose: Purpose, version: number): KeyObject
  /**
   * Reads the rows: afterwards each key that was there when this was called is held, save a PENDING one that this host
   * can't open, or not within `PENDING_WAIT_MS`. Reserves seals where few are left.
   */
  refresh(): Promise<void>
  /** Reserves seals for these purposes, now and at each `refresh` from now on. Needed before the first seal. */
  reserve(...purposes: Purpose[]): Promise<void>
}

export const SEALS = {
  /** The first block of a process under one key: enough for the chunks in work. What the process doesn’t use is lost. */
  first: 2 ** 13,
  /** The next one, after the first seal: most processes need no more. */
  second: 2 ** 16,
  /** Every further one, when half of the former is used. */
  block: 2 ** 20,
} as const

/** A process that read the rows longer ago doesn't seal. */
export const AFRESH_MS = 30_000

/** How long a `refresh` waits for PENDING keys. A key that takes longer to open is held as soon as it is open. */
export const PENDING_WAIT_MS = 5_000

interface Held {
  key: KeyObject
  version: number
  /** Seals that are reserved and unused. */
  left: number
  /** The size of the last block; 0 before the first. */
  block: number
  /** The most seals that all processes had reserved under it, as far as this process has seen. */
  counted: number
}

interface Slot {
  /** Undefined if the store has lost it. */
  active: Held | undefined
  /** The keys that seal, now or soon. */
  sealing: Held[]
  versions: Map<number, Held>
  ended: Set<number>
}

interface HeldOptions {
  /** Called with the name of a PENDING key that this host can't open, and why. */
  onUnopened?: (name: string, error: unknown) => void
  /** Called with the name of a key under which no seals can be reserved now, and why. The next `refresh` tries again. */
  onUnreserved?: (name: string, error: unknown) => void
  /** Called with the name of a key whose count of seals was lower than this process had seen, and was raised again. */
  onLowered?: (name: string) => void
}

/** Opens the keys of these purposes. Throws `Fault('key_unavailable')` if one in use can't be opened. */
export async function holdKeys<Row extends KeyRow, Purpose extends string>(
  source: KeySource<Row>,
  purposes: readonly Purpose[],
  { onUnopened = () => {}, onUnreserved = () => {}, onLowered = () => {} }: HeldOptions = {},
): Promise<HeldKeys<Purpose>> {
  const reserved = new Set<Purpose>()
  /** The names of PENDING keys that are being opened. */
  const opening = new Set<string>()
  let slots = new Map<Purpose, Slot>()
  // A timer, because to read a clock for each seal takes a fifteenth of the seal's own time.
  let isStale = true
  let timer: NodeJS.Timeout | undefined

  async function read(): Promise<void> {
    const begunAt = performance.now()
    const rows = (await source.load()).filter(({ state }) => state !== 'DESTROYED')
    const opened = await openInUse(rows)
    // Without a wait in between, because a PENDING key may come in at any time.
    const next = new Map(
      purposes.map(purpose => [purpose, slotOf(purpose, rows, { opened, former: slots.get(purpose) })]),
    )
    // Set before seals are reserved and PENDING keys are opened: a key for which that fails or waits doesn't hold up the others.
    slots = next
    isStale = false
    clearTimeout(timer)
    timer = setTimeout(becomeStale, AFRESH_MS - (performance.now() - begunAt)).unref()
    await Promise.all([...[...reserved].flatMap(purpose => fillAll(purpose, next)), openPending(rows)])
  }

  function becomeStale(): void {
    isStale = true
  }

  function fillAll(purpose: Purpose, from: Map<Purpose, Slot>): Promise<void>[] {
    return slotIn(from, purpose).sealing.map(held => fill(purpose, held))
  }

  /** The keys in use, and those that were, which aren't held yet. */
  async function openInUse(rows: readonly Row[]): Promise<Map<Row, Held>> {
    const opened = new Map<Row, Held>()
    for (const purpose of purposes)
      for (const row of rows)
        if (row.purpose === purpose && row.state !== 'PENDING' && !row.isLost && !isHeld(purpose, row))
          opened.set(row, await open(row))
    return opened
  }

  /** Opens PENDING keys. It waits for a limited time, and not for a key that an earlier read began to open. */
  async function openPending(rows: readonly Row[]): Promise<void> {
    const begun = purposes.flatMap(purpose =>
      rows
        .filter(row => row.purpose === purpose && row.state === 'PENDING' && !row.isLost)
        .filter(row => !isHeld(purpose, row) && !opening.has(nameOf(row)))
        .map(row => openOne(purpose, row)),
    )
    if (begun.length > 0) await within(PENDING_WAIT_MS, Promise.all(begun))
  }

  async function openOne(purpose: Purpose, row: Row): Promise<void> {
    const name = nameOf(row)
    opening.add(name)
    try {
      const held = await open(row)
      const slot = slotIn(slots, purpose)
      // The key may have come into use meanwhile; then another read has opened it.
      if (slot.versions.has(row.version)) return
      slot.versions.set(row.version, held)
      slot.sealing.push(held)
      if (reserved.has(purpose)) await fill(purpose, held)
    } catch (error) {
      onUnopened(name, error)
    } finally {
      opening.delete(name)
    }
  }

  function isHeld(purpose: Purpose, { version }: Row): boolean {
    return slots.get(purpose)?.versions.has(version) === true
  }

  async function open(row: Row): Promise<Held> {
    return { key: await source.open(row), version: row.version, left: 0, block: 0, counted: 0 }
  }

  async function fill(purpose: Purpose, held: Held): Promise<void> {
    const block = nextBlock(held)
    if (block === 0 || !source.reserve) return
    const name = `${purpose}/${held.version}`
    try {
      const counted = await reserveBlock(source, { purpose, ...held }, { block, onLowered: () => onLowered(name) })
      if (counted === undefined) return
      held.counted = counted
    } catch (error) {
      onUnreserved(name, error)
      return
    }
    held.left += block
    held.block = block
  }

  const refresh = oneAtATime(read)
  await refresh()
  return {
    names: () =>
      [...slots].flatMap(([purpose, { versions }]) => [...versions.keys()].map(version => `${purpose}/${version}`)),
    isEnded: (purpose, version) => slotIn(slots, purpose).ended.has(version),
    isAfresh: () => !isStale,
    isTurning: () => [...slots.values()].some(({ sealing }) => sealing.length > 1),
    current: purpose => activeIn(slots, purpose),
    forHash: purpose => {
      if (isStale && (source.reserve || source.isFollowed)) throw new Fault('key_unavailable')
      return activeIn(slots, purpose)
    },
    versions: purpose => [...slotIn(slots, purpose).versions.keys()].sort((a, b) => a - b),
    forSeal: purpose => {
      const active = activeIn(slots, purpose)
      if (!source.reserve) return active
      if (active.left <= 0 || isStale) throw new Fault('key_unavailable')
      active.left -= 1
      return active
    },
    find: (purpose, version) => {
      const held = slots.get(purpose)?.versions.get(version)
      if (!held) throw new Fault('key_unavailable')
      return held.key
    },
    refresh,
    reserve: (...more) => {
      for (const purpose of more) reserved.add(purpose)
      return refresh()
    },
  }
}

/** Returns how many seals all processes have reserved then; undefined if none can be reserved. */
async function reserveBlock<Row extends KeyRow>(
  { reserve, raise }: KeySource<Row>,
  { purpose, version, counted: seen }: Pick<Held, 'version' | 'counted'> & { purpose: string },
  { block, onLowered }: { block: number; onLowered: () => void },
): Promise<number | undefined> {
  const counted = await reserve?.(purpose, version, block)
  if (counted === undefined || counted >= seen + block || !raise) return counted
  // A backup was restored, a standby has lost the last reservations, or somebody lowers the count. Others may have reserved more
  // than this process has seen: a page more.
  onLowered()
  return raise(purpose, version, seen + block + SEALS.block)
}

/** The slot of a purpose by its rows. `former`: what was held before. */
function slotOf<Row extends KeyRow>(
  purpose: string,
  rows: readonly Row[],
  { opened, former }: { opened: ReadonlyMap<Row, Held>; former: Slot | undefined },
): Slot {
  const versions = new Map<number, Held>()
  const sealing: Held[] = []
  const active: (Held | undefined)[] = []
  for (const row of rows) {
    if (row.purpose !== purpose) continue
    if (row.state === 'ACTIVE' && row.isLost) active.push(undefined)
    const held = former?.versions.get(row.version) ?? opened.get(row)
    if (!held) continue
    versions.set(row.version, held)
    if (row.isLost) continue
    if (row.state !== 'DECRYPT_ONLY') sealing.push(held)
    if (row.state === 'ACTIVE') active.push(held)
  }
  if (active.length !== 1) throw new Fault('key_unavailable')
  return { active: active[0], sealing, versions, ended: endedOf(purpose, rows) }
}

/** How many seals to reserve now. */
function nextBlock({ left, block }: Held): number {
  if (block === 0) return SEALS.first
  if (block === SEALS.first) return left < block ? SEALS.second : 0
  return left <= block / 2 ? SEALS.block : 0
}

function endedOf(purpose: string, rows: readonly KeyRow[]): Set<number> {
  return new Set(rows.filter(row => row.purpose === purpose && row.isEnded).map(({ version }) => version))
}

const nameOf = ({ purpose, version }: KeyRow) => `${purpose}/${version}`

function slotIn<Purpose>(slots: Map<Purpose, Slot>, purpose: Purpose): Slot {
  const slot = slots.get(purpose)
  if (!slot) throw new Fault('key_unavailable')
  return slot
}

function activeIn<Purpose>(slots: Map<Purpose, Slot>, purpose: Purpose): Held {
  const { active } = slotIn(slots, purpose)
  if (!active) throw new Fault('key_unavailable')
  return active
}

/** Runs `work` once at a time. A call during a run waits for the next run, which all callers of that time share. */
function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  let next: Promise<void> | undefined
  const start = () => {
    running = work().finally(() => {
      running = undefined
    })
    return running
  }
  return () => {
    if (next) return next
    if (!running) return start()
    next = running
      .catch(() => undefined)
      .then(() => {
        next = undefined
        return start()
      })
    return next
  }
}

/** Waits for `work`, and no longer than `ms`. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>(resolve => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([work, late]).finally(() => clearTimeout(timer))
}
