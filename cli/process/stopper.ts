// Stops a command that sends much: at the first signal it finishes the work in flight, for at most 20 s; a second
// signal ends the process at once.
import { FINISH_MS } from '../../producers/answer-deadline.ts'
import { onSignal } from '../../src/lifetime.ts'
import { EXIT } from '../exit.ts'
import type { Session } from '../open/open.ts'
import { say } from '../terminal.ts'

/** How much longer the work may take before the process ends, in ms. */
const LATE_MS = 2_000
const STOPPED = 'tokenmill: stopped before the end; run the same command again to continue'

interface Stopper {
  /** Aborted at the first signal. */
  signal: AbortSignal
  /** Call it when the work has ended. */
  leave(): void
}

export function stopper({ terminal, lifetime }: Pick<Session, 'terminal' | 'lifetime'>): Stopper {
  const controller = new AbortController()
  let late: NodeJS.Timeout | undefined
  const cut = async () => {
    say(terminal, STOPPED)
    await lifetime.close()
    process.exit(EXIT.failure)
  }
  const deaf = onSignal(['SIGINT', 'SIGTERM'], () => {
    if (controller.signal.aborted) process.exit(EXIT.interrupted)
    // Ends the line in which a terminal shows `^C`.
    say(terminal, '')
    say(
      terminal,
      'tokenmill: finishing the work in flight, for at most 20 s; run the same command again to continue. A second signal ends it at once.',
    )
    // Code that reads a file, or waits for a server to start, doesn't check the abort signal.
    late = setTimeout(cut, FINISH_MS + LATE_MS)
    controller.abort()
  })
  return {
    signal: controller.signal,
    leave() {
      clearTimeout(late)
      deaf()
    },
  }
}
