// Damaged jobs on Redis: fields that aren't JSON, counters that aren't numbers. A job that can't be read is handed out
// until it has stalled more than `STALLED_MAX` times. A job whose stalls or attempts can't be counted is removed at
// once.
import type { Cluster, Redis } from 'ioredis'
import { STALLED_MAX } from './damage.ts'

type Client = Redis | Cluster

/** The fields that are read, in this order. */
const FIELDS = ['opts', 'progress', 'parent', 'ats', 'atm', 'stc'] as const

/**
 * Removes damaged jobs among those in work, and returns how many. `keyOf` makes the Redis key of a list (by its word)
 * or a job (by its id).
 */
export async function discardDamaged(client: Client, keyOf: (name: string) => string): Promise<number> {
  const active = await client.lrange(keyOf('active'), 0, -1)
  const fields = await Promise.all(active.map(id => client.hmget(keyOf(id), ...FIELDS)))
  const damaged = active.filter((_, index) => isOver(fields[index] ?? []))
  for (const id of damaged) await discard(client, keyOf, id)
  return damaged.length
}

/**
 * Removes a job whose attempts can't be counted, so that no worker can finish it. False if there is no such job: another
 * one may have got the id since, and stays.
 */
export async function discardUnfinishable(
  client: Client,
  keyOf: (name: string) => string,
  id: string,
): Promise<boolean> {
  return !isCount(await client.hget(keyOf(id), 'atm')) && discard(client, keyOf, id)
}

/** Removes the job from every list and frees its id. False if there was no such job. */
async function discard(client: Client, keyOf: (name: string) => string, id: string): Promise<boolean> {
  const lists = ['active', 'wait', 'paused'].map(list => client.lrem(keyOf(list), 0, id))
  const sets = ['delayed', 'prioritized'].map(set => client.zrem(keyOf(set), id))
  await Promise.all([...lists, ...sets, client.srem(keyOf('stalled'), id)])
  await client.del(`${keyOf(id)}:lock`, `${keyOf(id)}:logs`)
  return (await client.del(keyOf(id))) > 0
}

function isOver([opts, progress, parent, started, made, stalled]: (string | null)[]): boolean {
  if (!isCount(stalled) || !isCount(made)) return true
  const isReadable = isObject(opts) && isJson(progress) && isJson(parent) && isCount(started)
  return !isReadable && Number(stalled ?? 0) > STALLED_MAX
}

function isCount(field: string | null | undefined): boolean {
  return field === null || field === undefined || /^-?\d{1,15}$/.test(field)
}

function isJson(field: string | null | undefined): boolean {
  return !field || parse(field) !== undefined
}

function isObject(field: string | null | undefined): boolean {
  return !field || (parse(field) ?? null) !== null
}

function parse(field: string): unknown {
  try {
    return JSON.parse(field)
  } catch {
    return undefined
  }
}
