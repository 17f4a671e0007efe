// Finds the host of DATABASE_URL that this process must use. There is one finder per URL and process. Its result is
// shared, kept for one second, and forgotten when a connection is lost. The finder asks the hosts over connections of
// its own.
import { ConfigError } from '../../config.ts'
import type { Logger } from '../../logger.ts'
import * as clusterRecord from './cluster-record.ts'
import { type Address, type Host, readAddress } from './hosts.ts'
import { PlacedClient } from './placed-client.ts'
import { type Answer, type Choice, choose, readServerState, type ServerState, Unfit } from './server-state.ts'

/** A connection that is cut when another server is seen with a higher timeline. */
export interface Watched {
  standing: ServerState | undefined
  cut(): void
}

export interface Finder {
  address: Address
  /**
   * The host to use; undefined if the URL has only one, which the driver knows. Throws `Unfit`, or the error of a host
   * (`reasonOf`).
   */
  find(): Promise<Host | undefined>
  /**
   * Forgets the result, so that all hosts are asked again. Call it after a connection was lost or could not be opened.
   */
  forget(): void
  /**
   * Throws `Unfit` if the server's timeline is lower than one that was seen. Cuts connections to servers whose timeline
   * is now too low.
   */
  admit(standing: ServerState): void
  watch(connection: Watched): void
  unwatch(connection: Watched): void
  /** How many servers took writes when they were last asked. */
  writable(): number
  /** The log for the warning that two servers take writes. */
  log: Logger | undefined
  /** Whether this process has ever opened and checked a connection. */
  proven: boolean
  /** Until when a pooler is trusted to keep sessions, in ms of `performance.now()`. */
  sessionsStayUntil: number
}

const KEEP_MS = 1_000
/** How long a process waits for all hosts, and then for one that it may use. */
const ASK_MS = { all: 2_000, one: 2_000 }
/**
 * The same of a process that has not worked on the store yet. It has seen no timeline, so it must not choose a primary
 * that was left behind because the other host answers late; and on a busy host its own first steps and the answers may take seconds.
 */
const FIRST_ASK_MS = { all: 10_000, one: 30_000 }
/** How often open connections are checked: a primary that was left behind, or hangs, may never close them. */
const WATCH_MS = 5_000

const RIGHTS =
  'DATABASE_URL: with several hosts the user needs EXECUTE on pg_control_system, pg_control_checkpoint and pg_control_recovery'

const finders = new Map<string, Finder>()
/** System id → the highest timeline that this process has seen. */
const timelines = new Map<string, number>()

/** The finder of a URL. Throws `ConfigError` for a URL that can't be read. */
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
    const judge = (answers: readonly Answer[]) => {
      for (const { standing } of answers) raise(standing)
      return choose(answers, seen)
    }
    const choice = await askAll(address, judge, finder.proven ? ASK_MS : FIRST_ASK_MS)
    const { standing } = choice.chosen
    system = standing.system
    // Logged only when this state begins; a metric shows how long it lasts.
    if (choice.writable.length > 1 && writable < 2) alarm(choice)
    writable = choice.writable.length
    finder.admit(standing)
    return choice
  }

  /** Records a timeline. A standby's timeline counts too: it shows a promotion, even though a standby can't be used. */
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

/**
 * Asks all hosts at the same time. After `all` ms it chooses among the hosts that have answered. If none of them may be
 * used, it waits for the others until `one` ms.
 */
async function askAll(
  address: Address,
  judge: (answers: readonly Answer[]) => Choice,
  ms: typeof ASK_MS,
): Promise<Choice> {
  const clients = address.hosts.map(host => ({ host, client: openProbe(address, host) }))
  const answers: Answer[] = []
  let isLate = false
  const cut = () => {
    for (const { client } of clients) client.cut()
  }
  const cutIfEnough = () => {
    if (isLate && isEnough(judge, answers)) cut()
  }
  const beLate = () => {
    isLate = true
    cutIfEnough()
  }
  const timers = [setTimeout(beLate, ms.all), setTimeout(cut, ms.one)]
  const ask = async ({ host, client }: (typeof clients)[number]) => {
    answers.push(await askOne(host, client))
    cutIfEnough()
  }
  try {
    const asked = await Promise.allSettled(clients.map(ask))
    if (answers.length === 0) throw reasonOf(asked.map(one => (one as PromiseRejectedResult).reason))
    const choice = judge(answers)
    const { host, standing, record } = choice.chosen
    const client = clients.find(one => one.host === host)?.client
    if (client && record && record.timeline < standing.timeline) await clusterRecord.advance(client, standing)
    return choice
  } finally {
    const ends = clients.map(({ client }) => client.end().catch(() => undefined))
    Promise.all(ends).then(() => timers.forEach(clearTimeout))
  }
}

function isEnough(judge: (answers: readonly Answer[]) => Choice, answers: readonly Answer[]): boolean {
  try {
    return Boolean(judge(answers))
  } catch {
    return false
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

/**
 * The error to report. A refusal (a wrong password, no such database, no right) may concern one host alone, so it is
 * reported only if every host refused.
 */
function reasonOf(reasons: readonly unknown[]): unknown {
  const isRefusal = (reason: unknown) =>
    reason instanceof ConfigError || /^(28|3D|42|08P01)/.test(String((reason as { code?: unknown }).code))
  return reasons.find(reason => !isRefusal(reason)) ?? reasons[0]
}
