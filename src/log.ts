// The log: one JSON line per event on standard error. First of all no code passes a secret to a logger (card data
// travels as `Secret`, errors as codes); the redaction here catches what slips through, but only in members of the
// names below, at the top of a line or one level down.
import { type DestinationStream, pino } from 'pino'
import { cleanJson } from './clean-text.ts'
import { describeOnce, type Logger } from './logger.ts'

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
      serializers: { err: describeOnce, error: describeOnce },
      timestamp: pino.stdTimeFunctions.isoTime,
      // JSON escapes no control character above U+001F, and no mark of a direction.
      hooks: { streamWrite: cleanJson },
    },
    stream,
  )
}
