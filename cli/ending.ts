// The line that a command prints when it fails. The message of a foreign error can quote its input, so a text of our
// own is printed instead.
import { FileError } from '../producers/rows/file-error.ts'
import { ConfigError } from '../src/config.ts'
import { FAULTS, Fault } from '../src/errors.ts'
import { describeError } from '../src/logger.ts'
import { missingPackage } from '../src/missing-package.ts'
import { PortInUse } from '../src/ops.ts'
import { causeOf } from '../src/server-error.ts'
import { Unfit } from '../src/store/connection/server-state.ts'
import { LostRace, toStoreFault } from '../src/store/pool.ts'
import { EXIT, Stop } from './exit.ts'
import { say, type Terminal } from './terminal.ts'

interface Ending {
  status: number
  /** Undefined if the line was printed already. */
  line?: string
}

/** Errors of PostgreSQL at connection, by SQLSTATE. */
const REFUSALS: Record<string, string> = {
  '28P01': 'DATABASE_URL: the server does not accept this user and password',
  '28000': 'DATABASE_URL: the server does not admit this user from this host',
  '3D000': 'DATABASE_URL: the server has no such database',
  '42501':
    "DATABASE_URL: this user lacks a right that the command needs; operators' commands need the database's owner, and `schema upgrade` one who may make roles (docs/running.md)",
}

/** For example a key-encryption key that was replaced while a command made data keys. */
const RACED = 'another command or process changed the same rows meanwhile; run this command again'

const NO_TLS =
  'DATABASE_URL: the server offers no TLS that tokenmill accepts; configure TLS 1.3, or 1.2 with ECDHE and AEAD ciphers'

/** The line and the exit status for anything that was thrown. */
export function endingOf(thrown: unknown): Ending {
  const error = toStoreFault(thrown)
  if (error instanceof Stop) return { status: error.status, line: error.message }
  if (error instanceof ConfigError) return { status: EXIT.config, line: error.message }
  if (error instanceof PortInUse) return { status: EXIT.failure, line: error.message }
  if (error instanceof FileError) return { status: error.status, line: error.message }
  const missing = missingPackage(error)
  if (missing !== undefined) return { status: EXIT.config, line: missing }
  if (error instanceof LostRace) return { status: EXIT.failure, line: RACED }
  const code = codeOf(error)
  const atConnection = error instanceof Fault && error.code === 'store_away' ? codeOf(error.cause) : code
  const refusal = atConnection === undefined ? undefined : REFUSALS[atConnection]
  if (refusal !== undefined) return { status: EXIT.config, line: refusal }
  if (code === 'EPROTO' || code?.startsWith('ERR_SSL_')) return { status: EXIT.config, line: NO_TLS }
  if (error instanceof Fault && error.code !== 'defect') return { status: EXIT.failure, line: describeFault(error) }
  const { name, at } = describeError(error)
  const where = [code ?? name, at].filter(Boolean).join(' ')
  return { status: EXIT.failure, line: `unexpected error (${where}); this is a defect of tokenmill, please report it` }
}

/** Ends the process by an error that nothing caught. Node would print its message, which can quote anything. */
export function endUncaught(terminal: Terminal, thrown: unknown): never {
  const { line } = endingOf(thrown)
  if (line !== undefined) say(terminal, `tokenmill: ${line}`)
  process.exit(EXIT.failure)
}

const WHERE_TO_LOOK: Partial<Record<Fault['code'], string>> = {
  store_away: 'check DATABASE_URL; where it is not set, see server.log in the data directory',
  queue_away: 'check REDIS_URL; where it is not set, the queues are in PostgreSQL: check DATABASE_URL',
  store_denied:
    'the user in DATABASE_URL of workers must be the one of `tokenmill schema login worker`, or own the schema tokenmill; PostgreSQL’s log names the table',
}

/** PostgreSQL itself never ends a connection with this code (protocol violation); poolers use it for every reason. */
const POOLER = 'the connection pooler ended the connection; see its log'

function describeFault(fault: Fault): string {
  const refusal = fault.code === 'queue_away' ? causeOf(fault) : undefined
  if (refusal) return `${refusal.says}. Next: ${refusal.next}; then try again`
  const cause = fault.cause instanceof Unfit ? fault.cause.message : codeOf(fault.cause)
  const where = cause === '08P01' ? POOLER : WHERE_TO_LOOK[fault.code]
  const hints = [cause, where].filter(Boolean).join('; ')
  return hints === '' ? FAULTS[fault.code].text : `${FAULTS[fault.code].text} (${hints})`
}

function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error ? (error as Error & { code?: unknown }).code : undefined
  return typeof code === 'string' && !(error instanceof Fault) ? code : undefined
}
