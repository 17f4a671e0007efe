// Reads the state of a PostgreSQL server, and chooses between several servers. finder.ts decides when to ask.
import type pg from 'pg'
import type { Host } from './hosts.ts'

/**
 * A server must not be used, or no server can be. The message is tokenmill's own text, without secrets, so it may be
 * shown.
 */
export class Unfit extends Error {
  override name = 'Unfit'
  /** `toStoreFault` recognises this code: the fault is that the store is away. */
  readonly code = 'UNFIT'
}

export interface ServerState {
  /** The server takes writes: it is no standby and isn't read-only. */
  writable: boolean
  /** The system id. It is the same for a primary and every physical copy of it. */
  system: string
  /** A number that grows by each promotion. */
  timeline: number
  /** When the server was started. Two addresses with the same value belong to one server. */
  started: string
}

export interface Recorded {
  system: string
  timeline: number
}

/** What a host answered. */
export interface Answer {
  host: Host
  standing: ServerState
  /** The row `tokenmill.cluster` in the host's store; undefined if there is none, or this user may not read it. */
  record: Recorded | undefined
}

export interface Choice {
  chosen: Answer
  /** The different servers that take writes. More than one raises an alarm. */
  writable: Answer[]
}

type Asking = Pick<pg.Client, 'query'>

// A promoted server writes its new timeline into the WAL at once, but into the control file only at its next
// checkpoint. So a primary's timeline is read from the WAL. A standby's is the one that it follows, which it knows
// before its next restart point.
const STANDING = `select
    not (pg_is_in_recovery() or current_setting('transaction_read_only') = 'on') as writable,
    control.system_identifier::text as system,
    greatest(last.timeline_id, recovery.min_recovery_end_timeline, case when not pg_is_in_recovery()
    then ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int end) as timeline,
    pg_postmaster_start_time()::text as started
  from pg_control_system() as control, pg_control_checkpoint() as last, pg_control_recovery() as recovery`

/** Reads the server's state. Throws the driver's error: 42501 if the user may not call these functions. */
export async function readServerState(client: Asking): Promise<ServerState> {
  const { rows } = await client.query<ServerState>(STANDING)
  const standing = rows[0]
  if (!standing) throw new Unfit('the server does not report its state')
  return standing
}

/**
 * SQLSTATEs that mean "the server doesn't say": no right, no such function, not supported. Some hosting providers don't
 * let users ask.
 */
const MUTE = new Set(['42501', '42883', '0A000'])

/** The server's state; undefined if the server doesn't say. */
export function readServerStateIfAllowed(client: Asking): Promise<ServerState | undefined> {
  return readServerState(client).catch(error => {
    if (MUTE.has((error as { code?: string }).code ?? '')) return undefined
    throw error
  })
}

/**
 * Chooses the server to use: of those that take writes and belong to this installation, the one with the highest
 * timeline. `seen`: the system that this process works on, if known, and the highest timeline that it has seen. Throws
 * `Unfit` if there is none.
 */
export function choose(answers: readonly Answer[], seen: Recorded | undefined): Choice {
  const writable = answers.filter(({ standing }, index) => {
    const first = answers.findIndex(other => isSameServer(other.standing, standing))
    return standing.writable && first === index
  })
  if (writable.length === 0) throw new Unfit('no host of DATABASE_URL takes writes')
  const own = ownOf(writable, seen)
  const timeline = Math.max(...own.map(({ standing }) => standing.timeline))
  const [chosen, other] = own.filter(({ standing }) => standing.timeline === timeline)
  if (!chosen) throw new Unfit("no host of DATABASE_URL that takes writes is this installation's")
  if (other) throw new Unfit(`two hosts of DATABASE_URL take writes on the same timeline (${timeline}); stop one`)
  const highest = highestSeen(chosen.standing.system, answers, seen)
  if (timeline < highest)
    throw new Unfit(`the host that takes writes was left behind: its timeline is ${timeline}, ${highest} was seen`)
  return { chosen, writable }
}

function isSameServer(a: ServerState, b: ServerState): boolean {
  return a.system === b.system && a.started === b.started
}

/**
 * The servers that belong to this installation. A store that was restored from a dump names the server of the dump, so
 * it counts as a copy until `schema upgrade` records the new server.
 */
function ownOf(writable: readonly Answer[], seen: Recorded | undefined): Answer[] {
  const known = writable.filter(({ standing, record }) => record?.system === standing.system)
  const unknown = writable.filter(({ record }) => record === undefined)
  const own = (known.length > 0 ? known : unknown).filter(({ standing }) =>
    seen === undefined ? true : standing.system === seen.system,
  )
  if (new Set(own.map(({ standing }) => standing.system)).size > 1)
    throw new Unfit('two hosts of DATABASE_URL take writes and hold different databases; remove one')
  return own
}

function highestSeen(system: string, answers: readonly Answer[], seen: Recorded | undefined): number {
  const told = answers.flatMap(({ standing, record }) => [standing, ...(record ? [record] : [])])
  const own = [...told, ...(seen ? [seen] : [])].filter(one => one.system === system)
  return Math.max(...own.map(one => one.timeline))
}
