// Runs one call to the queue server with a time limit, and turns its failure into a Fault. It repeats only what
// PostgreSQL rolled back; the caller may repeat other calls, because job ids are deterministic.
import { startTimeLimit } from '../clock.ts'
import { ConfigError } from '../config.ts'
import { Fault } from '../errors.ts'
import { causeOf } from '../server-error.ts'

/** Rejects with `Fault('queue_away')` after `ms`. The call itself isn't cancelled and may still take effect. */
export async function withTimeout<T>(ms: number, call: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const endLimit = startTimeLimit(ms, () => reject(new Fault('queue_away', new Error(`no answer within ${ms} ms`))))
  call.catch(() => {}) // A rejection after the time-out is ignored.
  return Promise.race([call, late]).finally(endLimit)
}

/** True if `work` settles within `ms`, whether it resolves or rejects. */
export async function settlesWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>(resolve => {
    timer = setTimeout(resolve, ms, false)
  })
  const settled = work.then(
    () => true,
    () => true,
  )
  return Promise.race([settled, late]).finally(() => clearTimeout(timer))
}

/**
 * Whether a call that failed surely did nothing: the server refused it, or the data are none that a queue takes, or the
 * connection to the server was down, so that it was not even sent.
 */
export function isUndone(error: unknown): boolean {
  if (error instanceof Fault && error.code === 'data') return true
  const { cause } = error as { cause?: unknown }
  return causeOf(error)?.isRefused === true || (cause instanceof Error && /enableOfflineQueue/.test(cause.message))
}

const DEADLOCKS_MAX = 4

/**
 * Runs `work` again, up to three times, when PostgreSQL rolled it back because of a deadlock or a serialization
 * failure.
 */
export async function retryDeadlocks<T>(work: (time: number) => Promise<T>): Promise<T> {
  for (let time = 1; ; time++) {
    try {
      return await work(time)
    } catch (error) {
      const { code } = error as { code?: unknown }
      if ((code !== '40P01' && code !== '40001') || time === DEADLOCKS_MAX) throw error
    }
  }
}

/**
 * Turns an error of a driver or server into a Fault: `data` for data that the queue refuses, else `queue_away`. Our own
 * errors stay as they are, and so do errors that show a bug or a wrong statement.
 */
export function toQueueFault(error: unknown): unknown {
  if (error instanceof Fault || error instanceof ConfigError || !(error instanceof Error)) return error
  if (
    error.message.startsWith('broken law') ||
    error instanceof TypeError ||
    error instanceof RangeError ||
    error instanceof SyntaxError
  )
    return error
  const { code } = error as Error & { code?: unknown }
  const sqlstate = typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
  if (sqlstate?.startsWith('22') || sqlstate?.startsWith('23')) return new Fault('data', error)
  if (sqlstate?.startsWith('42') && !causeOf(error)) return error
  if (/^The size of job .* exceeds the limit/.test(error.message)) return new Fault('data', error)
  // Any other answer of a server counts as "away", for example that of a full Redis ("OOM command not allowed").
  return new Fault('queue_away', error)
}
