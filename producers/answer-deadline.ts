// How long a run waits for answers: 20 s after it was asked to stop, and as long as it was told to where nobody answers
// at all. It only says when that is over; what was not answered is sent again by the next run of the same command.
import type { Writable } from 'node:stream'

export interface AnswerDeadlineOptions {
  /** Aborted: nothing more is sent. */
  stop: AbortSignal
  /** How long what is in flight is awaited then (20,000). */
  finishMs?: number | undefined
  /** After so long without any answer while one is awaited, it is over. Undefined: never. */
  giveUpAfterMs?: number | undefined
  /** Called at most once. */
  onEnd: () => void
  tell: (line: string) => void
}

export interface AnswerDeadline {
  sent(): void
  answered(): void
  /** `sent` now and `answered` when it is settled. */
  watch<T>(answer: Promise<T>): Promise<T>
  close(): void
}

export const FINISH_MS = 20_000

/** Tells a person, on the stream where progress goes. */
export function tellTo(stream: Writable & { isTTY?: boolean }): (line: string) => void {
  return line => stream.write(`${stream.isTTY ? '\n' : ''}tokenmill: ${line}\n`)
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
    const line = `nothing was answered for ${giveUpAfterMs / 1000} s (--give-up-after)`
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
