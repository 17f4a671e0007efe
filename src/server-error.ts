// What a server answers instead of doing what it was asked: Redis, PostgreSQL or a pooler before it is full, read-only, short
// of something or denies a right. The one table from such an error to a cause with the server's own word and a remedy; checks,
// logs, metrics and commands read it. What one server refused lately is kept here, too, and logged by one line a minute and
// cause, however many calls fail. A server that says nothing has no cause.
import { type Clock, systemClock } from './clock.ts'
import type { Logger } from './logger.ts'

export interface Cause {
  server: 'PostgreSQL' | 'Redis'
  /** The server's own code: the first word of an error of Redis, an SQLSTATE of PostgreSQL. */
  code: string
  /** A sentence that holds the server's own word, shortened. */
  says: string
  /** What to do. */
  next: string
  /** Surely nothing was done of what was asked. If false, its fate is unknown. */
  isRefused: boolean
  /** Whether a server in this state refuses a small write that tries it, too: its success then shows that the state is over. */
  isProbed: boolean
}

interface Row {
  /** Follows the name of the server. */
  is: string
  next: string
  isUnknown?: true
  isUnprobed?: true
}

const RIGHTS_REDIS = 'give this user the rights that docs/running.md lists; see REDIS_URL'

const REDIS = {
  OOM: {
    is: 'is full and refuses jobs',
    next: 'raise maxmemory; or look for a results queue that nobody reads and for a backlog (`tokenmill status`)',
  },
  MISCONF: {
    is: 'takes no writes, because it can’t save to its disk',
    next: 'make room on the disk of Redis and see its log; then `redis-cli bgsave`',
  },
  READONLY: { is: 'is a replica and takes no writes', next: 'let REDIS_URL name the primary, or promote this server' },
  LOADING: { is: 'is loading its data', next: 'wait; if it takes long, see the log of Redis' },
  NOREPLICAS: {
    is: 'has too few replicas and takes no writes',
    next: 'bring the replicas back, or lower min-replicas-to-write',
  },
  MASTERDOWN: {
    is: 'is a replica whose primary is away',
    next: 'let REDIS_URL name the primary, or promote this server',
  },
  CLUSTERDOWN: { is: 'is a cluster that is down', next: 'bring the absent nodes of the cluster back (`cluster info`)' },
  BUSY: { is: 'is busy with a script', next: 'see `redis-cli slowlog`; `script kill` ends a script that is not ours' },
  NOAUTH: { is: 'wants a password', next: 'write user and password into REDIS_URL' },
  WRONGPASS: { is: 'does not accept this user or password', next: 'correct REDIS_URL' },
  NOPERM: { is: 'does not permit a command to this user', next: RIGHTS_REDIS, isUnprobed: true },
  MAXCLIENTS: { is: 'has no connection left', next: 'raise maxclients, or look for clients that leak connections' },
} satisfies Record<string, Row>

const RIGHTS =
  'let DATABASE_URL of each role name the user that `schema login` made; if that user lost a right, run `schema upgrade`'
const PASSWORD = 'correct user and password in DATABASE_URL, or admit this user (pg_hba.conf)'
const DISK = 'make room on the disk of PostgreSQL'
const WAIT = 'wait until it is up; if it takes long, see the log of PostgreSQL'

/** By SQLSTATE. */
const POSTGRES: Record<string, Row & { name: string }> = {
  '25006': {
    name: 'read_only_sql_transaction',
    is: 'is read-only',
    next: 'let DATABASE_URL name the primary; or see who set default_transaction_read_only, and reset it',
  },
  '53100': { name: 'disk_full', is: 'has no room on its disk', next: DISK, isUnprobed: true },
  '53200': {
    name: 'out_of_memory',
    is: 'has no memory left',
    next: 'see the memory of its host, and its work_mem and shared_buffers',
    isUnprobed: true,
  },
  '53300': {
    name: 'too_many_connections',
    is: 'has no connection left',
    next: 'raise max_connections or the connection limit of this user or database; `tokenmill doctor` counts what is needed',
    isUnprobed: true,
  },
  '53400': {
    name: 'configuration_limit_exceeded',
    is: 'refuses more than its settings permit',
    next: 'see the log of PostgreSQL and temp_file_limit',
    isUnprobed: true,
  },
  '57P01': { name: 'admin_shutdown', is: 'was shut down or ended this connection', next: WAIT, isUnknown: true },
  '57P02': { name: 'crash_shutdown', is: 'crashed and starts again', next: WAIT, isUnknown: true },
  '57P03': { name: 'cannot_connect_now', is: 'takes no connections now', next: WAIT },
  '57P04': { name: 'database_dropped', is: 'has dropped this database', next: 'correct DATABASE_URL', isUnknown: true },
  '58000': {
    name: 'system_error',
    is: 'fails by an error of its host',
    next: 'see the log of PostgreSQL',
    isUnprobed: true,
  },
  '58030': {
    name: 'io_error',
    is: 'can’t read or write its files',
    next: 'see the log of PostgreSQL and its disk',
    isUnprobed: true,
  },
  '58P01': {
    name: 'undefined_file',
    is: 'misses a file of its own',
    next: 'see the log of PostgreSQL',
    isUnprobed: true,
  },
  XX001: {
    name: 'data_corrupted',
    is: 'has damaged data',
    next: 'see the log of PostgreSQL; restore',
    isUnprobed: true,
  },
  XX002: {
    name: 'index_corrupted',
    is: 'has a damaged index',
    next: 'see the log of PostgreSQL; reindex',
    isUnprobed: true,
  },
  '42501': { name: 'insufficient_privilege', is: 'denies this user a right', next: RIGHTS, isUnprobed: true },
  '28000': { name: 'invalid_authorization', is: 'does not admit this user', next: PASSWORD },
  '28P01': { name: 'invalid_password', is: 'does not accept this user and password', next: PASSWORD },
  '3D000': { name: 'invalid_catalog_name', is: 'has no such database', next: 'correct DATABASE_URL' },
  '08P01': {
    name: 'protocol_violation',
    is: 'can’t be used through the connection pooler before it',
    next: 'see the log and the limits of the pooler',
    isUnknown: true,
    isUnprobed: true,
  },
  '55000': { name: 'object_not_in_prerequisite_state', is: 'takes no connections to this database', next: WAIT },
}

/** Codes that have this meaning only if the server ends the connection by them. */
const FATAL_ONLY: ReadonlySet<string> = new Set(['55000', '08P01'])

/** The cause of an error, or of the error that it was made of; undefined if no server has answered with one. */
export function causeOf(error: unknown): Cause | undefined {
  for (let one = error, depth = 0; one instanceof Error && depth < 5; one = one.cause, depth += 1) {
    const cause = causeOfRedis(one) ?? causeOfPostgres(one)
    if (cause) return cause
  }
  return undefined
}

function causeOfRedis(error: Error): Cause | undefined {
  const { previousErrors } = error as Error & { previousErrors?: unknown }
  // A transaction says only that a command before it was refused.
  if (Array.isArray(previousErrors) && previousErrors[0] instanceof Error) return causeOfRedis(previousErrors[0])
  const { code, isInScript } = codeOfRedis(error.message)
  const row: Row | undefined = Object.hasOwn(REDIS, code) ? REDIS[code as keyof typeof REDIS] : undefined
  if (!row) return undefined
  // A script is refused before its first write, except for a right that a later command of it needs.
  const isRefused = !(code === 'NOPERM' && isInScript)
  const says = `Redis ${row.is}: ${shorten(error.message)}`
  return { server: 'Redis', code, says, next: row.next, isRefused, isProbed: row.isUnprobed !== true }
}

function codeOfRedis(message: string): { code: string; isInScript: boolean } {
  if (/^ERR max number of clients/.test(message)) return { code: 'MAXCLIENTS', isInScript: false }
  if (/^ERR The user executing the script can't/.test(message)) return { code: 'NOPERM', isInScript: true }
  return { code: /^([A-Z]+) /.exec(message)?.[1] ?? '', isInScript: / script: /.test(message) }
}

function causeOfPostgres(error: Error): Cause | undefined {
  const { code, severity } = error as Error & { code?: unknown; severity?: unknown }
  if (typeof code !== 'string') return undefined
  const server = 'PostgreSQL'
  if (code === 'UNFIT')
    return { server, code, says: error.message, next: POSTGRES['25006']?.next ?? '', isRefused: true, isProbed: true }
  const row = Object.hasOwn(POSTGRES, code) ? POSTGRES[code] : undefined
  if (!row || (FATAL_ONLY.has(code) && severity === 'ERROR')) return undefined
  const says = `PostgreSQL ${row.is}: ${shorten(error.message)} (${code} ${row.name})`
  return { server, code, says, next: row.next, isRefused: row.isUnknown !== true, isProbed: row.isUnprobed !== true }
}

const WORD_MAX = 120

/** The first sentence of a server's message, on one line. What could be a card number is masked: a trigger may quote data. */
function shorten(message: string): string {
  const [sentence = ''] = message.split(/\. (?=[A-Z])| script: |\r?\n/, 1)
  const plain = sentence
    .replace(/\p{C}+/gu, ' ')
    .replace(/\d(?:[ -]?\d){7,}/g, '…')
    .replace(/\.$/, '')
    .trim()
  return plain.length > WORD_MAX ? `${plain.slice(0, WORD_MAX - 1)}…` : plain
}

export interface Trouble extends Cause {
  /** When it was noted first, without a pause since, in ms since the epoch. */
  since: number
}

export interface Troubles {
  /** Takes what a call has thrown. */
  note(error: unknown): void
  /** A small write was done: what would have refused it is over. */
  worked(): void
  /** The last cause that was noted, if that isn't long ago. */
  now(): Trouble | undefined
}

/** What is neither noted again for so long, nor shown to be over, counts as over, in ms. Senders try again within this time. */
const KEPT_MS = 20_000
const LINE_MS = 60_000

/** How a failure is logged that may pass: what a server refused is logged where it is noted, once for all that fails by it. */
export function levelOfFailure(error: unknown): 'debug' | 'warn' {
  return causeOf(error) ? 'debug' : 'warn'
}

export function openTroubles(log: Logger, clock: Clock = systemClock): Troubles {
  const noted = new Map<string, { trouble: Trouble; at: number }>()
  const linesAt = new Map<string, number>()

  function tell({ server, code, says, next, since }: Trouble): void {
    if (clock() - (linesAt.get(code) ?? Number.NEGATIVE_INFINITY) < LINE_MS) return
    linesAt.set(code, clock())
    log.warn(
      { server, code, cause: says, next, since: new Date(since).toISOString() },
      'a server refuses what it is asked',
    )
  }
  return {
    note(error) {
      const cause = causeOf(error)
      if (!cause) return
      const before = noted.get(cause.code)
      const isSame = before !== undefined && clock() - before.at < KEPT_MS
      const trouble = { ...cause, since: isSame ? before.trouble.since : clock() }
      noted.delete(cause.code) // The order is the order of the last notes.
      noted.set(cause.code, { trouble, at: clock() })
      tell(trouble)
    },
    worked() {
      for (const [code, { trouble }] of noted) if (trouble.isProbed) noted.delete(code)
    },
    now() {
      for (const [code, { at }] of noted) if (clock() - at >= KEPT_MS) noted.delete(code)
      return [...noted.values()].at(-1)?.trouble
    },
  }
}
