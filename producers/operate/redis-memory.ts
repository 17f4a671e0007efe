// Whether Redis has room for further jobs: with `noeviction` a full one refuses each new job, and answers all else.
import type { RedisInfo } from '../../src/queue/redis-info.ts'
import { critical, type Verdict, warning } from './check.ts'
import { bytes } from './units.ts'

const NEARLY_FULL = 0.9
const NEXT = 'look for a results queue that nobody reads and for a backlog; or raise maxmemory'

/** Bytes; undefined where the server doesn't say. `most` is 0 where nothing limits it. */
export function memoryOf({ fields }: RedisInfo): { used: number; most: number } | undefined {
  const [used = Number.NaN, most = Number.NaN] = ['used_memory', 'maxmemory'].map(name =>
    Number(fields.get(name) ?? Number.NaN),
  )
  return Number.isNaN(used) || Number.isNaN(most) ? undefined : { used, most }
}

/** Undefined where it has room, or doesn't say. */
export function judgeRoom(info: RedisInfo): Verdict | undefined {
  const { used, most } = memoryOf(info) ?? { used: 0, most: 0 }
  if (most === 0) return undefined
  const of = `${bytes(used)} of ${bytes(most)}, ${info.server}`
  if (used >= most) return critical(`Redis is full and refuses jobs (${of})`, NEXT)
  return used >= most * NEARLY_FULL ? warning(`Redis is nearly full (${of})`, NEXT) : undefined
}
