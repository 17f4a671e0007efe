// Finds the one host of DATABASE_URL to work on. There is one finder per URL and process: its result is shared, kept
// for a second, and forgotten when a connection is lost. Nobody else uses its connections.
import { ConfigError } from '../../config.ts'
import type { Logger } from '../../log.ts'
import * as clusterRecord from './cluster-record.ts'
import { type Address, type Host, readAddress } from './hosts.ts'
import { PlacedClient } from './placed-client.ts'
import { type Answer, type Choice, choose, readServerState, type ServerState, Unfit } from './server-state.ts'

/** A connection that a later timeline may cut off. */
export interface Watched {
  standing: ServerState | undefined
  cut(): void
}

export interface Finder {
  address: Address
  /** Undefined: there is only one host, and the driver knows it. Throws `Unfit`, or the error of most hosts. */
  find(): Promise<Host | undefined>
  /** Call after a connection was lost, or none could be opened: everything is asked again. */
  forget(): void
  /**
   * Throws `Unfit` for a server whose timeline is lower than one that was seen; cuts connections to servers that are
   * now lower.
   */
  admit(standing: ServerState): void
  watch(connection: Watched): void
  unwatch(connection: Watched): void
  /** Servers that took writes when last asked. */
  writable(): number
  /** The log for alarms. */
  log: Logger | undefined
  /** Whether a connection of this process was ever opened and proven. */
  proven: boolean
  /** Until when a pooler is trusted to keep sessions, by `performance.now()`. */
  sessionsStayUntil: number
}

const KEEP_MS = 1_000
const ASK_MS = 2_000
/** A primary that was left behind, or hangs, may keep connections that nobody breaks: they are checked this often. */
const WATCH_MS = 5_000

const RIGHTS =
  'DATABASE_URL: with several hosts the user needs EXECUTE on pg_control_system, pg_control_checkpoint and pg_control_recovery'

const finders = new Map<string, Finder>()
/** system → the highest timeline that this process saw. */
const timelines = new Map<string, number>()

/** Throws `ConfigError` for a URL that can't be read. */
export function finderOf(url: string): Finder {
  const known = finders.get(url)
  if (known) return known
  const finder = openFinder(readAddress(url))
  finders.set(url, finder)
  return finder
}

function openFinder(address: Address): Finder {
  const { hosts } = address
  const watched = new Set<Watched>()
  let found: { promise: Promise<Choice>; until: number } | undefined
  let system: string | undefined
  let writable = 1
  let timer: NodeJS.Timeout | undefined

  async function ask(): Promise<Choice> {
    const seen = system === undefined ? undefined : { system, timeline: timelines.get(system) ?? 0 }
    const choice = await askAll(address, answers => {
      for (const { standing } of answers) raise(standing)
      return choose(answers, seen)
    })
    const { standing } = choice.chosen
    system = standing.system
    // Logged when it begins; the metric says how long it lasts.
    if (choice.writable.length > 1 && writable < 2) alarm(choice)
    writable = choice.writable.length
    finder.admit(standing)
    return choice
  }

  /** A standby tells of a promotion, too: what it follows is seen, though it can't be worked on. */
  function raise({ system: raised, timeline }: ServerState): void {
    timelines.set(raised, Math.max(timeline, timelines.get(raised) ?? 0))
    for (const connection of watched) {
      const { standing } = connection
      if (standing?.system === raised && standing.timeline < timeline) connection.cut()
    }
  }

  function alarm(choice: Choice): void {
    const servers = choice.writable.map(({ host, standing }) => ({ ...host, timeline: standing.timeline }))
    finder.log?.error({ servers }, 'two PostgreSQL servers take writes; that of the highest timeline is used')
  }

  const finder: Finder = {
    address,
    log: undefined,
    proven: false,
    sessionsStayUntil: 0,
    async find() {
      if (hosts.length === 0) return undefined
      if (!found || performance.now() > found.until) {
        const asked = { promise: ask(), until: Number.POSITIVE_INFINITY }
        found = asked
        asked.promise.then(
          () => {
            asked.until = performance.now() + KEEP_MS
          },
          () => {
            if (found === asked) found = undefined
          },
        )
      }
      return (await found.promise).chosen.host
    },
    forget() {
      found = undefined
      finder.sessionsStayUntil = 0
    },
    admit(standing) {
      const highest = timelines.get(standing.system) ?? 0
      if (standing.timeline < highest)
        throw new Unfit(`this server was left behind: its timeline is ${standing.timeline}, ${highest} was seen`)
      raise(standing)
    },
    watch(connection) {
      watched.add(connection)
      if (hosts.length > 0) timer ??= setInterval(() => void finder.find().catch(() => undefined), WATCH_MS).unref()
    },
    unwatch(connection) {
      watched.delete(connection)
      if (watched.size > 0) return
      clearInterval(timer)
      timer = undefined
    },
    writable: () => writable,
  }
  return finder
}

async function askAll(address: Address, judge: (answers: Answer[]) => Choice): Promise<Choice> {
  const clients = address.hosts.map(host => ({ host, client: openProbe(address, host) }))
  const late = setTimeout(() => {
    for (const { client } of clients) client.cut()
  }, ASK_MS)
  try {
    const asked = await Promise.allSettled(clients.map(({ host, client }) => askOne(host, client)))
    const answers = asked.flatMap(one => (one.status === 'fulfilled' ? [one.value] : []))
    if (answers.length === 0) throw reasonOf(asked.map(one => (one as PromiseRejectedResult).reason))
    const choice = judge(answers)
    const { host, standing, record } = choice.chosen
    const client = clients.find(one => one.host === host)?.client
    if (client && record && record.timeline < standing.timeline) await clusterRecord.advance(client, standing)
    return choice
  } finally {
    const ends = clients.map(({ client }) => client.end().catch(() => undefined))
    Promise.all(ends).then(() => clearTimeout(late))
  }
}

function openProbe({ url }: Address, host: Host): PlacedClient {
  return new PlacedClient({ connectionString: url, keepAlive: true }, host)
}

async function askOne(host: Host, client: PlacedClient): Promise<Answer> {
  await client.connect()
  const standing = await readServerState(client).catch(error => {
    throw (error as { code?: string }).code === '42501' ? new ConfigError(RIGHTS) : error
  })
  return { host, standing, record: await clusterRecord.read(client) }
}

/** The error of one host may be its own trouble: it is reported only if no host was merely away. */
function reasonOf(reasons: readonly unknown[]): unknown {
  const isRefusal = (reason: unknown) =>
    reason instanceof ConfigError || /^(28|3D|42|08P01)/.test(String((reason as { code?: unknown }).code))
  return reasons.find(reason => !isRefusal(reason)) ?? reasons[0]
}
