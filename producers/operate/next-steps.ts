// What the person on call can do about a job, by what is known of it.
import type { Announced, PlainFacts } from './job-facts.ts'

/** What the person on call can do about the job; one sentence each. */
export function nextSteps({ decided, told, queued, failed, failed_set_is_cut, client }: PlainFacts): string[] {
  const steps: string[] = []
  if (queued) steps.push(queuedStep(queued))
  if (failed)
    steps.push(
      failed.can_be_retried
        ? `Send the job again: \`tokenmill failed retry ${failed.id}\``
        : 'The sender has to submit the job again: its card data were removed from the failed set.',
    )
  if (decided?.status === 'FAILED' && decided.code < 500)
    steps.push('The sender corrects the fields that are named and submits the work again under a new jti.')
  if (decided?.status === 'CANCELLED') steps.push('The sender may submit the work again under a new jti.')
  if (decided?.reversal === 'REQUIRED')
    steps.push('A reversal is queued; if it stays so, see whether workers of the kind reversal run.')
  if (!decided && told.some(({ says }) => says && says.code < 500))
    steps.push('The sender corrects what is named; the same jti may be used, since no receipt was written.')
  if (failed_set_is_cut)
    steps.push('The failed set was not searched to its end: `tokenmill failed list` shows whether a copy is in it.')
  const waiting = told.find(({ state }) => state === 'waiting')
  const unread = told.find(({ state }) => state === 'unread')
  if (waiting) steps.push(`A result waits in the outbox: see whether ${client.name} reads ${waiting.queue}.`)
  else if (unread) steps.push(unreadStep(unread, client.name))
  else if (told[0]) steps.push(replayStep(told[0]))
  return steps
}

function unreadStep({ queue, reply_to }: Announced, name: string): string {
  const reader = reply_to === undefined ? '' : ' (a command that made this queue and has ended never will)'
  return `A result is unread: ${name} has to read ${queue}${reader}.`
}

function replayStep({ at, reply_to }: Announced): string {
  const where = reply_to === undefined ? '' : ` --reply-to ${reply_to}`
  return `To publish the result once more: \`tokenmill results replay --since ${at} --client FILE${where}\``
}

function queuedStep({ queue, state, workers }: NonNullable<PlainFacts['queued']>): string {
  if (workers === 0) return `No worker listens to ${queue}: start one with \`tokenmill workers\`.`
  if (state === 'active') return 'A worker has the job now.'
  if (state === 'delayed') return 'The job waits for its next attempt.'
  return `The job waits in the queue ${queue} for a worker.`
}
