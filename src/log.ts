// The log: one JSON line per event on standard error. First of all no code passes a secret to a logger (card data
// travels as `Secret`, errors as codes); the redaction here catches what slips through, but only in members of the
// names below, at the top of a line or one level down.
import { type DestinationStream, type Logger, pino } from 'pino'
import { cleanJson } from './clean-text.ts'

export type { Logger }

const REDACTED = [
  'pan',
  'cvv',
  'cardNumber',
  'card_number',
  'encrypted_card',
  'card',
  'jws',
  'block',
  'password',
  'api_key',
  'd',
  'data',
  'body',
  'request',
]

/** `level`: a level of pino; `base`: fields of every line, such as the process's role; `stream`: by default standard error. */
export function openLog(
  level: string,
  base: Record<string, unknown> = {},
  stream: DestinationStream = pino.destination({ fd: 2, sync: true }),
): Logger {
  return pino(
    {
      level,
      base: { pid: process.pid, ...base },
      redact: { paths: [...REDACTED, ...REDACTED.map(name => `*.${name}`)], censor: '[redacted]' },
      serializers: { err: once, error: once },
      timestamp: pino.stdTimeFunctions.isoTime,
      // JSON escapes no control character above U+001F, and no mark of a direction.
      hooks: { streamWrite: cleanJson },
    },
    stream,
  )
}

/**
 * The parts of an error that may be logged: its name, codes, constraint and the first line of its stack. Messages of
 * foreign errors can quote their input, so they are left out.
 */
export function describeError(error: unknown): Record<string, unknown> {
  const description = describe(error)
  descriptions.add(description)
  return description
}

const descriptions = new WeakSet<object>()

function describe(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { name: typeof error }
  const { code, constraint, syscall } = error as Error & { code?: unknown; constraint?: unknown; syscall?: unknown }
  return { name: error.name, code, constraint, syscall, at: firstFrame(error) }
}

/** Leaves an error as it is if a caller has already described it. */
function once(value: unknown): unknown {
  return typeof value === 'object' && value !== null && descriptions.has(value) ? value : describeError(value)
}

function firstFrame(error: Error): string | undefined {
  const frame = error.stack?.split('\n').find(line => line.startsWith('    at '))
  return frame
    ?.trim()
    .replace(/^at /, '')
    .replace(/file:\/\/.*\/(?=(src|workers|producers|node_modules)\/)/, '')
    .slice(0, 160)
}
