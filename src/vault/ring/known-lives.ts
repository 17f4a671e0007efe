// What a process knows of the lives of the data keys. It believes a row only with the proof of the key-encryption key, and
// never an older one than it has seen: what the owner of the database puts back, or a restored backup brings back, doesn't
// let a rotated key seal again. Then the process goes on by what it knows.
import { Fault } from '../../errors.ts'
import type { Keks } from '../kek/provider.ts'
import { type KeyLives, type LivesRow, livesDigest, openLives } from './key-lives.ts'

/**
 * Why a process doesn't go by the stored row. `missing`: there is none. `unproved`: nobody with the KEK wrote it. `older`: the
 * process has seen a later one. `unread`: the KEK that proves it can't be reached now.
 */
export type LivesTrouble = 'missing' | 'unproved' | 'older' | 'unread'

export interface KnownLives {
  /**
   * Reads the stored row, and gives what this process goes by now. Throws `Fault('key_unavailable')` or `Fault('kek_away')`
   * if the process knows no lives yet and the row gives none, or if others have seen later ones than both.
   */
  read(): Promise<KeyLives>
  /** The row that the process goes by: its bytes, and what they say. Undefined before the first `read`. */
  current(): { row: LivesRow; lives: KeyLives } | undefined
  /** What is wrong with the stored row, as of the last `read`. */
  trouble(): LivesTrouble | undefined
}

export interface LivesSource {
  installationId: string
  keks: Pick<Keks, 'find'>
  load(): Promise<LivesRow | undefined>
  /** Where the process keeps the newest row over its own end; nothing is kept without it. */
  kept?: KeptLives | undefined
  /** The highest epoch that others have seen. Asked when the process begins, and after it could not read the row for a while. */
  floor?: (() => Promise<number>) | undefined
  /** ms, monotonic. */
  clock?: (() => number) | undefined
}

/** A process that has not read the row for so long may have missed a change, in ms. */
const MISSED_MS = 30_000
/**
 * For how long the process asks what others have seen: after a failover they need a moment to say so again, as the new primary
 * may have lost what they said before.
 */
export const ASK_MS = 60_000

/** Keeps the newest row that processes with this data directory have seen. */
export interface KeptLives {
  /** Undefined if none is kept, or one of another installation. */
  read(): Promise<LivesRow | undefined>
  /** Keeps this row, unless a later one is kept. */
  write(row: LivesRow): Promise<void>
}

export function openKnownLives({
  installationId,
  keks,
  load,
  kept,
  floor,
  clock = () => performance.now(),
}: LivesSource): KnownLives {
  let known: { row: LivesRow; lives: KeyLives } | undefined
  let trouble: LivesTrouble | undefined
  /** When the row was last read; undefined before the first time, and while it can't be read. */
  let readAt: number | undefined
  let asksUntil = 0
  /** The epoch behind which the process doesn't go. */
  let lowest = 0

  const open = async (row: LivesRow) => ({ row, lives: await openLives(keks, installationId, row) })

  /**
   * Takes what the host has kept. A kept row that this KEK doesn't prove says nothing, nor does one that others are ahead of:
   * this host has missed a change, and would write cards in a phase that the others have left.
   */
  async function askOthers(): Promise<void> {
    lowest = (await floor?.()) ?? 0
    const row = await kept?.read()
    if (row && row.epoch >= lowest && row.epoch > (known?.row.epoch ?? 0))
      known = (await open(row).catch(ignoring('key_unavailable'))) ?? known
  }

  const isBehind = () => !known || known.row.epoch < lowest

  /** Reads the row. A process that could not do so for a while begins anew: others may have seen a change that is lost by now. */
  async function loadRow(): Promise<LivesRow | undefined> {
    const begunAt = clock()
    if (readAt === undefined || begunAt - readAt > MISSED_MS) asksUntil = Number.POSITIVE_INFINITY
    readAt = undefined
    if (begunAt < asksUntil) await askOthers()
    const row = await load()
    readAt = clock()
    asksUntil = Math.min(asksUntil, readAt + ASK_MS)
    return row
  }

  function isOlder({ epoch }: LivesRow, digest: Buffer): boolean {
    if (epoch < lowest) return true
    if (!known) return false
    if (epoch !== known.row.epoch) return epoch < known.row.epoch
    return !digest.equals(livesDigest(installationId, known.row))
  }

  async function read(): Promise<KeyLives> {
    const row = await loadRow()
    if (!row) return goOn('missing')
    if (known && isSameRow(row, known.row)) return isBehind() ? goOn('older') : accepted(known)
    let opened: typeof known
    try {
      opened = await open(row)
    } catch (error) {
      if (isBehind() || !(error instanceof Fault)) throw error
      return goOn(error.code === 'kek_away' ? 'unread' : 'unproved')
    }
    if (isOlder(row, livesDigest(installationId, row))) return goOn('older')
    known = opened
    await kept?.write(row)
    return accepted(opened)
  }

  function accepted({ lives }: { lives: KeyLives }): KeyLives {
    trouble = undefined
    return lives
  }

  function goOn(why: LivesTrouble): KeyLives {
    trouble = why
    if (known && !isBehind()) return known.lives
    // It asks again as long as others are ahead.
    readAt = undefined
    throw new Fault('key_unavailable', new Error(LIVES_TROUBLE[why]))
  }

  return { read, current: () => known, trouble: () => trouble }
}

/** What is wrong, as a sentence. */
export const LIVES_TROUBLE: Readonly<Record<LivesTrouble, string>> = {
  missing: 'the row of the lives of the data keys is missing (table key_lives)',
  unproved: 'the row of the lives of the data keys was not written by tokenmill (table key_lives)',
  older: 'the row of the lives of the data keys is older than one that was seen before (table key_lives)',
  unread: 'the row of the lives of the data keys has changed, and the key-encryption key that proves it is away',
}

/** Why a process that goes by other lives than the stored ones isn't ready; empty if it isn't so. */
export function livesReasons(lives: Pick<KnownLives, 'trouble'>): string[] {
  const trouble = lives.trouble()
  return trouble === undefined ? [] : [LIVES_TROUBLE[trouble]]
}

function isSameRow(one: LivesRow, other: LivesRow): boolean {
  return (
    one.epoch === other.epoch &&
    one.keys === other.keys &&
    one.phase === other.phase &&
    one.kekId === other.kekId &&
    one.proof.equals(other.proof)
  )
}

function ignoring(code: Fault['code']): (error: unknown) => undefined {
  return error => {
    if (error instanceof Fault && error.code === code) return undefined
    throw error
  }
}
