// The log: one JSON line per event on standard error. Redaction is the second line of defence; the first is that nothing
// secret is handed to a logger (card data travels as `Secret`, errors as codes).
import { type Logger, pino } from 'pino'

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

/** `level` is pino's; `base` names the process's role on every line. */
export function openLog(level: string, base: Record<string, unknown> = {}): Logger {
  return pino(
    {
      level,
      base: { pid: process.pid, ...base },
      redact: { paths: [...REDACTED, ...REDACTED.map(name => `*.${name}`)], censor: '[redacted]' },
      serializers: { err: once, error: once },
      timestamp: pino.stdTimeFunctions.isoTime,
    },
    pino.destination({ fd: 2, sync: true }),
  )
}

/** The parts of an error that may be logged: name and code. Messages of foreign errors can quote their input, so they stay out. */
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

/** An error that a caller has described already is left as it is. */
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
