// Finds settings that will cause trouble: of Redis, of PostgreSQL, of files and logins on this host. It judges what the
// servers report. What they don't report is unknown; a server that is away is critical. It changes nothing.
import type { RedisInfo } from '../../src/queue/redis-info.ts'
import { BEAT } from '../../src/store/access/beat.ts'
import * as logins from '../../src/store/access/logins.ts'
import * as processes from '../../src/store/access/processes.ts'
import { type ConnectionLimits, countPlanned, findShortage, type PlannedRow } from '../../src/store/connection/plan.ts'
import * as storeServer from '../../src/store/server.ts'
import * as padded from '../../src/store/token/padded-tokens.ts'
import { bytes, count } from '../../src/units.ts'
import { askAll, type Check, type Question, unknown, type Verdict, warning, well } from './check.ts'
import { type AuditSources, askAudit } from './checks/audit.ts'
import { askDurability } from './checks/durability.ts'
import { askGrants, type GrantSources } from './checks/grants.ts'
import { askKeyLives, type KeyLivesSources } from './checks/key-lives.ts'
import { askLocks } from './checks/locks.ts'
import { askFiles, type FileSources } from './checks/modes.ts'
import { askOwner } from './checks/owner.ts'
import { askReleases } from './checks/processes.ts'
import { askReceipts } from './checks/receipts.ts'
import { askSchemeReferences } from './checks/scheme-references.ts'
import { askClock, askQueues, askStore, type ServerSources } from './checks/servers.ts'
import { askCheckpoints, askWalCompression, askWalSize } from './checks/wal.ts'
import { judgeRoom, memoryOf } from './redis-memory.ts'

export interface DoctorSources
  extends FileSources,
    GrantSources,
    KeyLivesSources,
    Omit<AuditSources, 'store'>,
    Omit<ServerSources, 'openKeys'> {
  /** PostgreSQL is embedded: tokenmill chooses its settings and logins. */
  embedded: boolean
}

/** Longer than for `status`, because it may ask several servers and nobody is paged by it. */
const PATIENCE = { firstMs: 3_000, lastMs: 3_000 }
const REDIS_MIN = [6, 2] as const
/** Connections to keep free for commands and for people. */
const SPARE_CONNECTIONS = 10

/** docs/on-call.md lists them. */
const QUESTIONS: readonly Question<DoctorSources>[] = [
  { name: 'store', ask: askStore, server: 'the store' },
  { name: 'locks', ask: askLocks },
  { name: 'clock', ask: askClock },
  { name: 'queues', ask: askQueues, server: 'the queue server' },
  { name: 'redis version', ask: askRedis(judgeVersion) },
  { name: 'redis memory', ask: askRedis(judgeMemory) },
  { name: 'redis AOF', ask: askRedis(judgeAof) },
  { name: 'postgres durability', ask: askDurability },
  { name: 'postgres max_wal_size', ask: askWalSize },
  { name: 'postgres checkpoint_timeout', ask: askCheckpoints },
  { name: 'postgres wal_compression', ask: askWalCompression },
  { name: 'postgres connections', ask: askConnections },
  { name: 'gateway login', ask: askLogins },
  { name: 'worker login', ask: askWorkerLogins },
  { name: 'owner of the database', ask: askOwner },
  { name: 'releases', ask: askReleases },
  { name: 'key files', ask: askFiles },
  { name: 'audit', ask: askAudit },
  { name: 'granted rights', ask: askGrants },
  { name: 'receipts', ask: askReceipts },
  { name: 'scheme references', ask: askSchemeReferences },
  { name: 'lives of keys', ask: askKeyLives },
  { name: 'padded numbers', ask: askPadded },
]

export function examine(sources: DoctorSources): Promise<Check[]> {
  return askAll(QUESTIONS, sources, PATIENCE)
}

function askRedis(judge: (info: RedisInfo) => Verdict) {
  return async ({ redis }: DoctorSources): Promise<Verdict> => {
    if (!redis) return well('the queues are on PostgreSQL')
    const judged = (await redis()).map(judge)
    return (
      judged.find(({ state }) => state === 'critical') ??
      judged.find(({ state }) => state === 'warning') ??
      judged.find(({ state }) => state === 'unknown') ??
      judged[0] ??
      unknown('no server is named')
    )
  }
}

function judgeVersion({ server, fields }: RedisInfo): Verdict {
  // Valkey also reports redis_version, for clients of Redis.
  const version = fields.get('redis_version')
  if (version === undefined) return unknown(`${server} does not say it`)
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const isOld = major < REDIS_MIN[0] || (major === REDIS_MIN[0] && minor < REDIS_MIN[1])
  return isOld
    ? warning(`${server} is ${version}`, `use ${REDIS_MIN.join('.')} or newer`)
    : well(`${server} is ${version}`)
}

function judgeMemory(info: RedisInfo): Verdict {
  const { server, fields } = info
  const policy = fields.get('maxmemory_policy')
  if (policy === undefined) return unknown(`${server} does not say its maxmemory-policy`)
  if (policy !== 'noeviction')
    return warning(
      `${server} deletes jobs when it is full (maxmemory-policy ${policy})`,
      'set maxmemory-policy noeviction',
    )
  const memory = memoryOf(info)
  if (!memory) return unknown(`${server}: noeviction; it does not say its memory`)
  if (memory.most === 0)
    return warning(
      `${server} has no maxmemory: it takes memory until the host kills it`,
      'set maxmemory below the memory of its host',
    )
  return judgeRoom(info) ?? well(`${server}: noeviction, ${bytes(memory.used)} of ${bytes(memory.most)} used`)
}

function judgeAof({ server, fields }: RedisInfo): Verdict {
  const enabled = fields.get('aof_enabled')
  if (enabled === undefined) return unknown(`${server} does not say it`)
  return enabled === '1'
    ? well(`${server} writes its AOF`)
    : warning(`${server} writes no AOF: a crash of it loses queued jobs`, 'set appendonly yes')
}

/** Processes of a PostgreSQL behind a pooler count against the pooler; both limits have to suffice. */
async function askConnections({ store }: DoctorSources): Promise<Verdict> {
  const db = await store()
  const running = await processes.listPlanned(db, BEAT.deadMs)
  return judgeConnections(running, await storeServer.readConnectionLimits(db, countPlanned(running).byUser.keys()))
}

export function judgeConnections(running: readonly PlannedRow[], limits: ConnectionLimits): Verdict {
  const counted = countPlanned(running)
  const byRole = [...counted.byRole].map(([role, connections]) => `${role} ${connections}`).sort()
  const named = byRole.length > 1 ? ` (${byRole.join(', ')})` : ''
  const { ofServer, ofDatabase = ofServer } = limits
  const admits = ofDatabase < ofServer ? `this database admits ${ofDatabase}` : `the server admits ${ofServer}`
  const short = findShortage(counted, limits, SPARE_CONNECTIONS)
  const pools = `the pools of ${count(running.length, 'process', 'processes')}`
  const most = `${count(counted.connections, 'connection')}${named}`
  const says = `${pools} open at most ${most}, ${short?.admits ?? admits}`
  return short ? warning(says, short.next) : well(says)
}

async function askPadded({ store }: DoctorSources): Promise<Verdict> {
  const db = await store()
  return judgePadded(await db.transaction(padded.count))
}

export function judgePadded({ tokens, sampled }: padded.PaddedTokens): Verdict {
  const among = sampled === undefined ? '' : ` among ${count(sampled, 'token')} that were read as a sample`
  if (tokens === 0) return well(`no token of a card number with zeros in front${among}`)
  return warning(
    `${count(tokens, 'token')} of card numbers with zeros in front${among}, which no network takes`,
    'find them in the table of tokens by a bin that begins with 0; give each its number without the zeros (token-update), or delete it',
  )
}

async function askLogins({ store, embedded }: DoctorSources): Promise<Verdict> {
  if (embedded) return well('the embedded server is this installation’s own')
  const seeing = await logins.thatSeeCards(await store(), 'tokenmill gateway')
  return seeing.length > 0
    ? warning(`gateways log in as ${seeing.join(', ')}, who can read sealed cards`, '`tokenmill schema login gateway`')
    : well('no connected gateway logs in as a user who can read sealed cards')
}

const WORKERS = ['tokenmill worker%', 'tokenmill scheduler', 'tokenmill three-ds']

async function askWorkerLogins({ store, embedded }: DoctorSources): Promise<Verdict> {
  if (embedded) return well('the embedded server is this installation’s own')
  const able = await logins.thatRewriteAudit(await store(), WORKERS)
  return able.length > 0
    ? warning(`workers log in as ${able.join(', ')}, who can rewrite the audit`, '`tokenmill schema login worker`')
    : well('no connected worker logs in as a user who can rewrite the audit')
}
