// Whether Redis has room for more jobs. With `noeviction` a full Redis refuses new jobs but answers other commands.
import type { RedisInfo } from '../../src/queue/redis-info.ts'
import { bytes } from '../../src/units.ts'
import { critical, type Verdict, warning } from './check.ts'

const NEARLY_FULL = 0.9
const NEXT = 'look for a results queue that nobody reads and for a backlog; or raise maxmemory'

/** Memory in bytes; undefined if the server doesn't say. `most` is 0 if there is no limit. */
export function memoryOf({ fields }: RedisInfo): { used: number; most: number } | undefined {
  const [used = Number.NaN, most = Number.NaN] = ['used_memory', 'maxmemory'].map(name =>
    Number(fields.get(name) ?? Number.NaN),
  )
  return Number.isNaN(used) || Number.isNaN(most) ? undefined : { used, most }
}

/** The verdict on a Redis that is nearly full; undefined if it has room or doesn't say. */
export function judgeRoom(info: RedisInfo): Verdict | undefined {
  const { used, most } = memoryOf(info) ?? { used: 0, most: 0 }
  if (most === 0) return undefined
  const of = `${bytes(used)} of ${bytes(most)}, ${info.server}`
  if (used >= most) return critical(`Redis is full and refuses jobs (${of})`, NEXT)
  return used >= most * NEARLY_FULL ? warning(`Redis is nearly full (${of})`, NEXT) : undefined
}
