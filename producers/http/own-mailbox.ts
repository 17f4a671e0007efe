// The results queue of one process that asks workers and waits for the answers: only this process reads it, and it ends with
// the process. Whose answer a result is, the caller decides.
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../src/clock.ts'
import type { Result } from '../../src/job/answer/result.ts'
import { resultsQueue } from '../../src/job/catalogue.ts'
import type { Logger } from '../../src/logger.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { openInbox, type TrustedKeys } from '../results.ts'
import { type Job, type Operation, openOperation } from './operation.ts'

export interface OwnMailbox {
  /** The name that envelopes give as `reply_to`. */
  replyTo: string
  /** Resolves when this process listens for answers. */
  ready: Promise<void>
  /** Begins to send a job, until it is answered or given up. */
  send(job: Job): Operation
  /** Ends all operations unanswered, now and later. */
  giveUp(): void
  isGivenUp(): boolean
  /**
   * Gives up what waits, ends the listening and removes the queue. `last` runs between the two: what it does may still name
   * the queue. Never rejects but with what `last` throws.
   */
  close(last?: () => Promise<void>): Promise<void>
}

export interface OwnMailboxDeps {
  queues: Queues
  /** The system client that signs the jobs, and whose queue it is. */
  clientId: string
  trusted: TrustedKeys
  clock: Clock
  log: Logger
  /** Whether a server that the jobs need refuses what it is asked. */
  isRefused?: (() => boolean) | undefined
}

export interface OwnMailboxOptions {
  /** The first letter of the queue's name. */
  letter: string
  /** The number of results handled at once. */
  concurrency: number
  receive(result: Result): void
}

const CLOSE_MS = 5_000

export function openOwnMailbox(
  { queues, clientId, trusted, clock, log, isRefused }: OwnMailboxDeps,
  { letter, concurrency, receive }: OwnMailboxOptions,
): OwnMailbox {
  const replyTo = `${letter}${randomUUID().replaceAll('-', '').slice(0, 24)}`
  const givenUp = new AbortController()
  let away = false
  queues.on('away', () => {
    away = true
  })
  queues.on('back', () => {
    away = false
  })
  const inbox = openInbox(
    queues,
    { clientId, replyTo, ...trusted },
    async delivery => {
      if (delivery.type === 'result') receive(delivery)
      // Only this process reads this queue, so a result for which nobody waits is dropped.
      return 'taken'
    },
    { concurrency, log },
  )
  return {
    replyTo,
    ready: inbox.ready,
    send: job => openOperation(job, { queues, clock, isAway: () => away, isRefused, givenUp: givenUp.signal }),
    giveUp: () => givenUp.abort(),
    isGivenUp: () => givenUp.signal.aborted,
    async close(last) {
      givenUp.abort()
      await inbox.close(CLOSE_MS)
      await last?.()
      // If this fails, the scheduler removes the queue later.
      if (!away) await queues.obliterate(resultsQueue(clientId, replyTo)).catch(() => {})
    },
  }
}
