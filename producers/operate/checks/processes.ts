// Which processes are alive, which kinds they work, and whether they are of one release.
import type { Catalogue } from '../../../src/job/catalogue.ts'
import { BEAT } from '../../../src/store/access/beat.ts'
import * as processes from '../../../src/store/access/processes.ts'
import * as installation from '../../../src/store/installation.ts'
import type { Db } from '../../../src/store/pool.ts'
import { count, duration } from '../../../src/units.ts'
import { critical, unknown, type Verdict, warning, well } from '../check.ts'

/** Every process that makes reports records that about once a minute. */
const REPORTS_MADE_MS = 90_000
const UPGRADE = 'end the upgrade on every host'

export interface ProcessFacts {
  host: string
  role: string
  version: string
  /** Only for workers: the kinds whose queues the process works. */
  kinds?: string[]
  alive: boolean
  /** RFC 3339. */
  started_at: string
  seen_seconds_ago: number
}

interface ProcessSources {
  store(): Promise<Db>
}

export async function askWorkers({ store, catalogue }: ProcessSources & { catalogue: Catalogue }): Promise<Verdict> {
  const db = await store()
  const workers = (await listAlive(db)).filter(({ kinds }) => kinds.length > 0)
  if (workers.length === 0) return critical('no worker process lives', 'start workers: `tokenmill workers`')
  const taken = new Set(workers.flatMap(({ kinds }) => kinds))
  const left = catalogue.kinds.filter(kind => !taken.has(kind))
  const hosts = new Set(workers.map(({ host }) => host)).size
  const says = `${count(workers.length, 'process', 'processes')} on ${count(hosts, 'host')}`
  const start = 'start workers that take them; see --kinds'
  if (left.some(kind => catalogue.entry(kind).urgent))
    return critical(`${says}; nobody takes ${left.join(', ')}`, start)
  if (left.length > 0) return warning(`${says}; nobody takes ${left.join(', ')}`, start)
  if (!(await installation.areReportsMade(db, REPORTS_MADE_MS)))
    return warning(`${says}; none makes reports`, 'set REPORTS_URL where workers run')
  return well(`${says} take every kind`)
}

export async function askScheduler({ store }: ProcessSources): Promise<Verdict> {
  const alive = (await listAlive(await store())).filter(({ role }) => role === 'scheduler')
  return alive.length === 0
    ? critical('no scheduler lives: no schedules, no retention', 'start it: `tokenmill scheduler`')
    : well(`${count(alive.length, 'process', 'processes')} on ${alive.map(({ host }) => host).join(', ')}`)
}

/** Checks every role: processes that stopped without saying so, and differing releases. */
export async function askProcesses({ store }: ProcessSources): Promise<Verdict> {
  const all = await processes.list(await store())
  const alive = all.filter(({ silentMs }) => silentMs <= BEAT.deadMs)
  const roles = [...new Set(alive.map(({ role }) => role))]
  const says =
    roles.map(role => `${alive.filter(one => one.role === role).length} ${role}`).join(', ') || 'no process lives'
  const lost = all.filter(one => one.silentMs > BEAT.lateMs && !processes.isReplaced(one, alive))
  if (lost.length > 0) {
    const named = lost.slice(0, 5).map(({ role, host, silentMs }) => `${role} on ${host} (${duration(silentMs)} ago)`)
    return warning(`${says}; seen last: ${named.join(', ')}`, 'look at that host; start the role there again')
  }
  const releases = releasesOf(alive)
  if (releases.length > 1) return warning(`${says}; of releases ${releases.join(', ')}: ${oddOnes(alive)}`, UPGRADE)
  return well(releases.length === 0 ? says : `${says}, all of release ${releases.join()}`)
}

export async function askReleases({ store }: ProcessSources): Promise<Verdict> {
  const alive = await listAlive(await store())
  const releases = releasesOf(alive)
  if (releases.length === 0) return unknown('no process lives')
  if (releases.length > 1)
    return warning(`processes of releases ${releases.join(', ')} live: ${oddOnes(alive)}`, UPGRADE)
  return well(`every process is of release ${releases.join()}`)
}

function releasesOf(alive: readonly processes.ProcessRow[]): string[] {
  return [...new Set(alive.map(({ version }) => version))].sort()
}

const ODD_MAX = 5

/** Role and host of the processes that are not of the release of most. */
function oddOnes(alive: readonly processes.ProcessRow[]): string {
  const countOf = (version: string) => alive.filter(one => one.version === version).length
  const [usual] = releasesOf(alive).sort((one, other) => countOf(other) - countOf(one))
  const odd = alive.filter(({ version }) => version !== usual)
  const named = [...new Set(odd.map(({ role, host, version }) => `${role} on ${host} runs ${version}`))]
  const more = named.length > ODD_MAX ? ` and ${named.length - ODD_MAX} more` : ''
  return `${named.slice(0, ODD_MAX).join(', ')}${more}`
}

export async function listProcesses({ store }: ProcessSources): Promise<ProcessFacts[]> {
  return (await processes.list(await store())).map(({ host, role, version, kinds, startedAt, silentMs }) => ({
    host,
    role,
    version,
    ...(kinds.length > 0 ? { kinds: [...kinds] } : {}),
    alive: silentMs <= BEAT.deadMs,
    started_at: new Date(startedAt).toISOString(),
    seen_seconds_ago: Math.round(silentMs / 1_000),
  }))
}

async function listAlive(db: Db): Promise<processes.ProcessRow[]> {
  return (await processes.list(db)).filter(({ silentMs }) => silentMs <= BEAT.deadMs)
}
