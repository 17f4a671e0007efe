// Says in the progress of a run which rows it waits for while later rows are done: the worker of that chunk may have
// vanished, and the queue gives the chunk to another worker once the lock has run out.
import type { Clock } from '../../../src/clock.ts'
import { duration } from '../../progress.ts'
import type { RowChunk } from '../../rows/chunks.ts'

interface Awaited {
  /** Takes the oldest unanswered chunk that later ones wait for; undefined if none do. */
  see(chunk: RowChunk | undefined): void
  text(): string | undefined
}

/** Chunks that take a little longer than later ones are common. */
const TOLD_MS = 5_000

export function openAwaited(clock: Clock): Awaited {
  let oldest: { position: number; lines: string; since: number } | undefined
  return {
    see(chunk) {
      if (chunk?.position === oldest?.position) return
      oldest = chunk && { position: chunk.position, lines: linesOf(chunk), since: clock() }
    },
    text() {
      if (oldest === undefined || clock() - oldest.since < TOLD_MS) return undefined
      const seconds = Math.floor((clock() - oldest.since) / 1000)
      return `no answer for ${oldest.lines} for ${duration(seconds)}, later lines go on`
    },
  }
}

function linesOf({ rows }: RowChunk): string {
  const [first, last] = [rows[0], rows.at(-1)].map(row => row?.fileLine ?? row?.line)
  return `lines ${first} to ${last}`
}
