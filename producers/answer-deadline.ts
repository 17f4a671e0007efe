// Ends the waiting of a run for answers: 20 s after the run was asked to stop, or after a given time without any
// answer. The next run of the same command sends unanswered jobs again.
import type { Writable } from 'node:stream'
import { cleanText } from '../src/clean-text.ts'

export interface AnswerDeadlineOptions {
  /** When aborted, nothing more is sent. */
  stop: AbortSignal
  /** How long jobs in flight are awaited after `stop`, ms (20,000). */
  finishMs?: number | undefined
  /** The run ends after this many ms without any answer while it waits for one. Undefined: never. */
  giveUpAfterMs?: number | undefined
  /** Called at most once. */
  onEnd: () => void
  tell: (line: string) => void
}

export interface AnswerDeadline {
  sent(): void
  answered(): void
  /** Calls `sent` now, and `answered` when `answer` resolves or rejects. */
  watch<T>(answer: Promise<T>): Promise<T>
  close(): void
}

export const FINISH_MS = 20_000

/**
 * Returns a function that writes one line for a person to the stream of the progress, and overwrites a progress bar
 * there.
 */
export function tellTo(stream: Writable & { isTTY?: boolean }): (line: string) => void {
  return line => stream.write(`${stream.isTTY ? '\r\u001b[K' : ''}tokenmill: ${cleanText(line)}\n`)
}

export function openAnswerDeadline({
  stop,
  finishMs = FINISH_MS,
  giveUpAfterMs,
  onEnd: onOver,
  tell,
}: AnswerDeadlineOptions): AnswerDeadline {
  let awaited = 0
  let silent: NodeJS.Timeout | undefined
  let finish: NodeJS.Timeout | undefined
  let over = false

  function end(line?: string): void {
    if (over) return
    over = true
    if (line !== undefined) tell(line)
    onOver()
  }
  function restartSilence(): void {
    clearTimeout(silent)
    if (giveUpAfterMs === undefined || awaited === 0) return
    const line = `no answer came for ${giveUpAfterMs / 1000} s (--give-up-after)`
    silent = setTimeout(() => end(line), giveUpAfterMs)
  }
  function startFinish(): void {
    finish = setTimeout(() => end(), finishMs)
  }
  function sent(): void {
    awaited += 1
    if (awaited === 1) restartSilence()
  }
  function answered(): void {
    awaited -= 1
    restartSilence()
  }
  if (stop.aborted) startFinish()
  else stop.addEventListener('abort', startFinish, { once: true })
  return {
    sent,
    answered,
    watch(answer) {
      sent()
      answer.then(answered, answered)
      return answer
    },
    close() {
      over = true
      clearTimeout(silent)
      clearTimeout(finish)
      stop.removeEventListener('abort', startFinish)
    },
  }
}
