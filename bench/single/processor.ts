// How much processor time the processes of a bench use: this one, its workers, PostgreSQL and Redis. Linux only; empty
// where there is no /proc.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { Installation } from '../../test/support/installation.ts'

/** In µs. `bench` is this process: for single jobs the sender. `command`: `migrate` and others, also those that have ended. */
export type ProcessorTime = Partial<
  Record<'bench' | 'command' | 'gateway' | 'workers' | 'PostgreSQL' | 'Redis', number>
>

const TICK_US = 10_000

/** Returns a function that tells the time since then, per piece of work. */
export async function watchProcessor({ vault }: Installation): Promise<(pieces: number) => ProcessorTime> {
  if (!existsSync('/proc/self/stat')) return () => ({})
  const { rows } = await vault.store.query<{ pid: number }>({ text: 'select pg_backend_pid() as pid' })
  const postmaster = parentOf(rows[0]?.pid ?? 0)
  const before = timesOf(postmaster)
  return pieces => {
    const after = timesOf(postmaster)
    const names = Object.keys(after) as (keyof ProcessorTime)[]
    return Object.fromEntries(
      names.map(name => [name, rounded(((after[name] ?? 0) - (before[name] ?? 0)) / Math.max(pieces, 1))]),
    )
  }
}

/** Of two measurements of the same work. */
export function meanOf(one: ProcessorTime, other: ProcessorTime): ProcessorTime {
  const names = Object.keys(one) as (keyof ProcessorTime)[]
  return Object.fromEntries(names.map(name => [name, rounded(((one[name] ?? 0) + (other[name] ?? 0)) / 2)]))
}

const rounded = (us: number) => (us < 100 ? Math.round(us * 10) / 10 : Math.round(us))

function timesOf(postmaster: number): ProcessorTime {
  const all = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
  const ours = all.filter(pid => parentOf(pid) === process.pid)
  const named = (part: string) => ours.filter(pid => commandOf(pid).includes(part))
  const sum = (pids: readonly number[]) => pids.reduce((total, pid) => total + ticksOf(pid), 0) * TICK_US
  const gateways = ours.filter(pid => / gateway\s*$/.test(commandOf(pid).replaceAll('\0', ' ')))
  const commands = named('cli/main.ts').filter(pid => !gateways.includes(pid))
  return {
    bench: sum([process.pid]),
    command: endedOf(process.pid) * TICK_US + sum(commands),
    gateway: sum(gateways),
    workers: sum(named('worker-process')) + sum(named('hops.ts')),
    // A backend that has ended counts in its parent's `cutime`.
    PostgreSQL: sum(all.filter(pid => pid === postmaster || parentOf(pid) === postmaster)),
    Redis: sum(named('redis-server')),
  }
}

const fieldsOf = (pid: number): string[] => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}
const parentOf = (pid: number) => Number(fieldsOf(pid)[1] ?? 0)
/** `utime`, `stime`, and those of children that have ended. This process's ended children are other cases. */
const ticksOf = (pid: number) =>
  fieldsOf(pid)
    .slice(11, pid === process.pid ? 13 : 15)
    .reduce((sum, field) => sum + Number(field), 0)
/** The same fields of children that have ended. */
const endedOf = (pid: number) =>
  fieldsOf(pid)
    .slice(13, 15)
    .reduce((sum, field) => sum + Number(field), 0)

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}
