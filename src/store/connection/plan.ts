// How many connections to PostgreSQL each process may open, as a function of its settings, and whether a server permits
// them. Pools are made from it; `doctor`, the start of each role and docs/running.md tell it. It opens nothing.

export type ProcessRole = 'interactive' | 'bulk' | 'scheduler' | 'gateway' | 'three-ds' | 'console'

/** `workers`: the supervisor of worker processes. `report`: the process that makes one report. */
export type PlannedProcess = ProcessRole | 'workers' | 'cell' | 'report' | 'command'

/** What a process that runs may open. `login`: its database user. */
export interface PlannedRow {
  role: ProcessRole
  host: string
  connections: number
  login: string
}

/** The most connections of each pool of a process. */
export interface Pools {
  store: number
  /** A second pool of the store, for what must not wait for the first. */
  beside: number
  /** The queues' own. */
  queues: number
}

export interface PlanSettings {
  engine: 'redis' | 'postgres'
  /** A worker: how many kinds of job it takes, and how many jobs of a kind at once. */
  kinds?: number
  concurrency?: number
}

/** A worker also reads the results of its own client. */
const OWN_RESULTS = 1
const NO_QUEUES = -1

interface Need {
  store: (concurrency: number) => number
  beside?: number
  /** How many queues it listens to, beside a worker's kinds; `NO_QUEUES`: it opens none, or only for a moment. */
  listeners: number
}

const NEEDS: Record<PlannedProcess, Need> = {
  // It reads keys, one statement at a time.
  workers: { store: () => 2, listeners: NO_QUEUES },
  // Its jobs share transactions, whose number is limited (workers/set/write-set.ts), so it doesn't grow with them.
  interactive: { store: () => 20, listeners: OWN_RESULTS },
  // A chunk is one transaction; others read what the next chunks need, and progress, audit and heartbeat take turns.
  bulk: { store: concurrency => 2 * concurrency + 2, listeners: OWN_RESULTS },
  // It runs one job at a time and takes none from a queue, as a command.
  cell: { store: () => 4, listeners: 1 },
  report: { store: () => 1, listeners: NO_QUEUES },
  // It listens to ticks, and to the results of `scheduler` and `worker`. Beside: it measures who waits for locks.
  scheduler: { store: () => 4, beside: 1, listeners: 3 },
  // Its own results, and those that all gateways share.
  gateway: { store: () => 12, listeners: 2 },
  // Beside: its keys.
  'three-ds': { store: () => 10, beside: 2, listeners: NO_QUEUES },
  console: { store: () => 8, listeners: 1 },
  command: { store: () => 4, listeners: 1 },
}

export function planPools(process: PlannedProcess, { engine, kinds = 0, concurrency = 1 }: PlanSettings): Pools {
  const { store, beside = 0, listeners } = NEEDS[process]
  const queues = engine === 'redis' || listeners === NO_QUEUES ? 0 : queueConnections(kinds + listeners)
  return { store: store(concurrency), beside, queues }
}

/** All connections of a process. */
export function planConnections(process: PlannedProcess, settings: PlanSettings): number {
  const { store, beside, queues } = planPools(process, settings)
  return store + beside + queues
}

/** How many connections the PostgreSQL engine needs: three per worker, one that listens for all, and two for producers. */
export function queueConnections(workers: number): number {
  return workers > 0 ? 3 * workers + 3 : 2
}

/** What PostgreSQL permits. undefined: no limit of its own. */
export interface ConnectionLimits {
  /** max_connections. */
  most: number
  /** max_connections without what the server keeps for administrators. */
  ofServer: number
  ofDatabase: number | undefined
  /** By the name of a user. */
  ofUsers: ReadonlyMap<string, number>
}

export interface Counted {
  connections: number
  byRole: ReadonlyMap<string, number>
  byUser: ReadonlyMap<string, number>
}

/** Adds up what running processes may open. A supervisor has no heartbeat: each host with workers has one. */
export function countPlanned(rows: readonly PlannedRow[]): Counted {
  const byRole = new Map<string, number>()
  const byUser = new Map<string, number>()
  const supervised = new Set<string>()
  const add = (role: string, login: string, connections: number) => {
    byRole.set(role, (byRole.get(role) ?? 0) + connections)
    byUser.set(login, (byUser.get(login) ?? 0) + connections)
  }
  for (const { role, host, login, connections } of rows) {
    add(role, login, connections)
    if ((role !== 'interactive' && role !== 'bulk') || supervised.has(host)) continue
    supervised.add(host)
    add('workers', login, planConnections('workers', { engine: 'redis' }))
  }
  return { connections: [...byRole.values()].reduce((sum, n) => sum + n, 0), byRole, byUser }
}

/** `admits`: the limit that is too low, in words. */
export interface Shortage {
  admits: string
  next: string
}

/** The limit that processes may pass; undefined if all suffice. `spare`: to be kept free, of what no user's limit bounds. */
export function findShortage(
  { connections, byUser }: Pick<Counted, 'connections' | 'byUser'>,
  { most, ofServer, ofDatabase, ofUsers }: ConnectionLimits,
  spare = 0,
): Shortage | undefined {
  const needed = connections + spare
  if (needed > ofServer)
    return {
      admits: `the server admits ${ofServer}`,
      next: `set max_connections to ${most - ofServer + needed} or more`,
    }
  if (ofDatabase !== undefined && needed > ofDatabase)
    return {
      admits: `this database admits ${ofDatabase}`,
      next: `\`alter database … connection limit ${needed}\` or more, or -1 for no limit of its own`,
    }
  for (const [user, limit] of ofUsers) {
    const own = byUser.get(user) ?? 0
    if (own > limit)
      return {
        admits: `the user ${user} may open ${limit} and its processes open ${own}`,
        next: `\`alter role ${user} connection limit ${own}\` or more, or -1 for no limit of its own`,
      }
  }
  return undefined
}
