// How much processor time a bench's processes use: the command, the workers, PostgreSQL and Redis. Linux only; empty
// where there is no /proc.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { Store } from '../../src/store/pool.ts'

/** In µs. */
export type ProcessorTime = Partial<Record<'command' | 'workers' | 'PostgreSQL' | 'Redis', number>>

const TICK_US = 10_000

/**
 * Returns a function that tells the time since then, per piece of work. `command`: this process's children that have
 * ended meanwhile.
 */
export async function watchProcessor(store: Store): Promise<(pieces: number) => ProcessorTime> {
  if (!existsSync('/proc/self/stat')) return () => ({})
  const { rows } = await store.query<{ pid: number }>({ text: 'select pg_backend_pid() as pid' })
  const postmaster = parentOf(rows[0]?.pid ?? 0)
  const before = timesOf(postmaster)
  return pieces => {
    const after = timesOf(postmaster)
    const names = Object.keys(after) as (keyof ProcessorTime)[]
    return Object.fromEntries(
      names.map(name => [name, Math.round(((after[name] ?? 0) - (before[name] ?? 0)) / pieces)]),
    )
  }
}

function timesOf(postmaster: number): ProcessorTime {
  const all = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
  const children = all.filter(pid => parentOf(pid) === process.pid)
  const named = (part: string) => children.filter(pid => commandOf(pid).includes(part))
  return {
    command: endedOf(process.pid),
    workers: timeOf(named('worker-process')),
    // A backend that has ended counts in its parent's time.
    PostgreSQL: timeOf(all.filter(pid => pid === postmaster || parentOf(pid) === postmaster)) + endedOf(postmaster),
    Redis: timeOf(named('redis-server')),
  }
}

/** The fields of `/proc/PID/stat` from the third on; none if the process has ended. */
function fieldsOf(pid: number): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}

const parentOf = (pid: number) => Number(fieldsOf(pid)[1] ?? 0)
const sum = (fields: readonly string[]) => fields.reduce((total, field) => total + Number(field), 0) * TICK_US
const timeOf = (pids: readonly number[]) => sum(pids.flatMap(pid => fieldsOf(pid).slice(11, 13)))
const endedOf = (pid: number) => sum(fieldsOf(pid).slice(13, 15))

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}
