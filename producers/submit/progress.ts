// Shows the progress of `submit` on standard error: on a terminal one line that is overwritten, else a line every ten
// seconds; and a hint if no worker seems to take the jobs.
import type { Writable } from 'node:stream'
import { cleanText } from '../../src/clean-text.ts'
import { systemClock } from '../../src/clock.ts'
import type { Queues } from '../../src/queue/engine.ts'
import type { Client } from '../client.ts'
import { watchAwaited } from '../progress.ts'

const EVERY_MS = 10_000
const TERMINAL_MS = 500
const NOBODY_MS = 10_000

export interface Totals {
  /** Lines that were read, without empty ones. */
  lines: number
  succeeded: number
  /** Jobs that the vault refused, or that failed there. */
  failed: number
  /** Invalid lines, which weren't sent. */
  invalid: number
  /** Every line of the file has its result. */
  complete: boolean
}

export interface SubmitWatch {
  sent(kind: string): void
  stop(): void
}

export function watchSubmit(
  { queues, client }: { queues: Queues; client: Pick<Client, 'heldUpBy'> },
  stream: Writable & { isTTY?: boolean },
  totals: Totals,
): SubmitWatch {
  const startedAt = performance.now()
  const kinds = new Set<string>()
  const terminal = stream.isTTY === true
  const awaited = watchAwaited({ queues, client, clock: systemClock })
  const print = () => {
    const line = `${lineOf(totals, startedAt)}${cleanText(awaited.text())}`
    stream.write(terminal ? `\r\u001b[K${line}` : `${line}\n`)
  }
  const ticking = setInterval(print, terminal ? TERMINAL_MS : EVERY_MS)
  let listening: NodeJS.Timeout | undefined

  async function ask(): Promise<void> {
    for (const kind of kinds) {
      const workers = await queues.workersOf(kind).catch(() => undefined)
      if (workers === 0) return say(`no worker listens for ${kind}; start one with: tokenmill workers`)
      if (workers === undefined && answeredOf(totals) === 0)
        return say('no answer yet; does a worker run? tokenmill workers')
    }
  }
  function say(text: string): void {
    stream.write(`${terminal ? '\r\u001b[K' : ''}${cleanText(text)}\n`)
  }
  return {
    sent(kind) {
      kinds.add(kind)
      listening ??= setTimeout(ask, NOBODY_MS)
    },
    stop() {
      clearInterval(ticking)
      clearTimeout(listening)
      awaited.stop()
      print()
      if (terminal) stream.write('\n')
    },
  }
}

const answeredOf = ({ succeeded, failed }: Totals) => succeeded + failed

function lineOf(totals: Totals, startedAt: number): string {
  const { lines, succeeded, failed, invalid } = totals
  const seconds = Math.max((performance.now() - startedAt) / 1000, 0.001)
  const rate = Math.round(answeredOf(totals) / seconds)
  return `${lines} read, ${succeeded} succeeded, ${failed} failed, ${invalid} invalid, ${rate} jobs/s`
}
