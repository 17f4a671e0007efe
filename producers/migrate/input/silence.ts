// Tells a person why chunks that were sent may not be answered.
import { tellTo } from '../../answer-deadline.ts'
import type { FileRunDeps } from '../../file-run.ts'

const NOBODY_MS = 10_000
const SILENT_MS = 30_000

/** Prints a hint once if chunks wait after 10 s and no worker listens. */
export function watchForWorkers({ queues, stream, log }: FileRunDeps, waiting: () => boolean): () => void {
  const timer = setTimeout(async () => {
    const listening = await queues.workersOf('token-batch').catch(() => undefined)
    log.debug({ listening }, 'workers of token-batch')
    if (listening === 0 && waiting())
      tellTo(stream)('no worker listens on token-batch; start one with `tokenmill workers`. Waiting ...')
  }, NOBODY_MS)
  timer.unref()
  return () => clearTimeout(timer)
}

/** Tells a person once if no answer has come after 30 s. */
export function tellOfSilence(tell: (line: string) => void, isSilent: () => boolean): () => void {
  const timer = setTimeout(() => {
    if (isSilent())
      tell(
        'no answer came for 30 s. Workers may be busy, or may not know this client; check that its file is of this installation.',
      )
  }, SILENT_MS)
  timer.unref()
  return () => clearTimeout(timer)
}

/**
 * Says each time that the queue server is away, until the returned function is called: in a migration of several files the
 * next part says it from then on.
 */
export function tellOfAway({ queues }: Pick<FileRunDeps, 'queues'>, tell: (line: string) => void): () => void {
  let isOver = false
  queues.on('away', () => {
    if (!isOver) tell('the queue server is away; waiting for it ...')
  })
  return () => {
    isOver = true
  }
}
