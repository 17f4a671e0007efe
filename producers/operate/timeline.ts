// What happened to a job as a list of steps, in order: each with its moment and what it means. It is made of the facts alone.
import type { Announced, CallFacts, PlainFacts, ReasonFacts, Step } from './job-facts.ts'

/** Oldest first; steps without a moment stand where they belong: a reversal behind the decision, the queue at the end. */
export function timelineOf(facts: PlainFacts): Step[] {
  const { decided, operation, calls, told, failed, queued } = facts
  const dated = [
    ...(decided && facts.accepted_at ? [sent(facts, facts.accepted_at)] : []),
    ...(operation ? [accepted(operation)] : []),
    ...calls.map(called),
    ...(decided ? [decidedStep(decided, facts.attempts ?? 1)] : []),
    ...told.map(one => answered(one, decided?.at)),
    ...(failed ? [failedStep(failed)] : []),
  ].sort((a, b) => compare(a.order ?? a.at, b.order ?? b.at))
  const steps: Step[] = dated.map(({ order: _, ...step }) => step)
  const at = steps.findIndex(({ what }) => what === 'decided') + 1
  const reversed = decided?.reversal ? [reversedStep(decided.reversal)] : []
  return [...steps.slice(0, at), ...reversed, ...steps.slice(at), ...(queued ? [queuedStep(queued)] : [])]
}

type Dated = Step & { at: string; order?: string }

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

function sent({ client, signed_by, kind }: PlainFacts, at: string): Dated {
  const who = signed_by === undefined ? client.name : `${signed_by}, for ${client.name}`
  const text = `${who} signed a job of the kind ${kind ?? 'unknown'}. The moment is that of the sender's clock.`
  return { at, what: 'sent', title: 'Sent', text, tone: 'plain' }
}

const OPERATIONS = {
  QUEUED: 'It has no answer yet. Gateways send the job again until it has one, or until its time is over.',
  ANSWERED: 'It was answered.',
  REFUSED: 'It was refused before anything was decided.',
  EXPIRED: 'Its time was over before a worker started it, and it takes no effect any more.',
} as const satisfies Record<NonNullable<PlainFacts['operation']>['state'], string>

function accepted({ state, accepted_at: at, until }: NonNullable<PlainFacts['operation']>): Dated {
  const text = `The caller asked to be answered later; a worker may start the job until ${until}. ${OPERATIONS[state]}`
  const isLost = state === 'EXPIRED' || state === 'REFUSED'
  return { at, what: 'accepted', title: 'Accepted over HTTP', text, tone: isLost ? 'warn' : 'plain' }
}

const ACTIONS = {
  PROVISION: 'Provider asked for a token',
  SUSPEND: 'Provider asked to suspend a token',
  RESUME: 'Provider asked to resume a token',
  DELETE: 'Provider asked to delete a token',
} as const satisfies Record<CallFacts['action'], string>

function called({ action, state, refusal, reversal, recorded_at: at, changed_at: changed }: CallFacts): Dated {
  const said = {
    INTENDED: 'Recorded before the call; its answer is not known yet.',
    DONE: `The provider did it (${changed}).`,
    REFUSED: `The provider refused it (${changed}): ${refusal ?? 'no reason is known'}.`,
    ABANDONED: `It was given up without an effect (${changed}).`,
  }[state]
  const undone = {
    REQUIRED: ' Its effect must be undone, and is not yet.',
    COMPLETED: ' Its effect was undone.',
  }
  const text = `${said}${reversal === undefined ? '' : undone[reversal]}`
  const tone = reversal === 'REQUIRED' || state === 'REFUSED' ? 'warn' : 'plain'
  return { at, what: 'called', title: ACTIONS[action], text, tone }
}

function decidedStep(decided: NonNullable<PlainFacts['decided']>, attempts: number): Dated {
  const { at, status, code, outcome, reasons, chunk } = decided
  if (status === 'CANCELLED')
    return {
      at,
      what: 'decided',
      title: 'Cancelled',
      tone: 'warn',
      text: 'The sender had given the job up before it was decided, so it never takes effect.',
    }
  const many = attempts > 1 ? `This was attempt ${attempts}: earlier ones ended with a fault and were repeated.` : ''
  const title = status === 'FAILED' ? `Refused: ${code}` : `Decided: ${outcome ?? code}`
  const what = chunk === undefined ? '' : `It is chunk ${chunk} of a batch.`
  const why = reasons.length > 0 ? reasonsText(reasons) : ''
  const kept =
    status === 'FAILED'
      ? 'The refusal is kept in the receipt: a repeat under the same jti gets the same answer.'
      : 'The receipt was written with the effect, in one transaction.'
  const text = [why, what, many, kept].filter(one => one !== '').join(' ')
  return { at, what: 'decided', title, text, tone: status === 'FAILED' ? 'warn' : 'plain' }
}

function reversedStep(reversal: 'REQUIRED' | 'COMPLETED'): Step {
  const isDone = reversal === 'COMPLETED'
  return {
    what: 'reversed',
    title: isDone ? 'Provider calls undone' : 'Provider calls to be undone',
    text: isDone
      ? 'The reversal has undone what the job had asked of providers.'
      : 'A reversal is queued that undoes what the job asked of providers.',
    tone: isDone ? 'plain' : 'warn',
  }
}

const ANSWERS = {
  waiting: { title: 'Answer waits', text: 'It is in the outbox, and not on its queue yet:', tone: 'warn' },
  unproved: {
    title: 'Answer not told',
    text: 'tokenmill did not write it, or its receipt, as it is now (see `tokenmill doctor`). It was for:',
    tone: 'warn',
  },
  unread: { title: 'Answer unread', text: 'It was put on its queue, and nobody has read it yet:', tone: 'warn' },
  read: { title: 'Answer delivered', text: 'It was put on its queue and has left it:', tone: 'plain' },
  published: {
    title: 'Answer published',
    text: 'It was put on its queue. Whether it was read is not known: the queue was not searched to its end.',
    tone: 'plain',
  },
} as const satisfies Record<Announced['state'], Pick<Step, 'title' | 'text' | 'tone'>>

/**
 * The clocks of worker and store differ, and the store counts from the beginning of the transaction: the answer that tells a
 * decision stands behind it.
 */
function answered({ at, revision, queue, state, says }: Announced, decidedAt: string | undefined): Dated {
  const order = says === undefined && decidedAt !== undefined && at < decidedAt ? decidedAt : at
  const { title, text, tone } = ANSWERS[state]
  const reasons = says && says.reasons.length > 0 ? `: ${reasonsText(says.reasons)}` : says ? '.' : ''
  const said = says ? ` It says ${says.code}${reasons} There is no receipt for it.` : ''
  const where = state === 'published' ? ` (${queue})` : ` ${queue}.`
  return { at, what: 'answered', title, text: `${text}${where}${said} Revision ${revision}.`, tone, order }
}

function failedStep({ at, code, attempts }: NonNullable<PlainFacts['failed']>): Dated {
  const text = `${attempts} attempts ended with a fault, at last ${code}. The sender was answered 500; a copy is in the failed set.`
  return { at, what: 'failed', title: 'Failed for good', text, tone: 'bad' }
}

const PLACES = {
  waiting: 'It waits for a worker',
  active: 'A worker has it',
  delayed: 'It waits for its next attempt',
  failed: 'It failed in its queue',
} as const

function queuedStep({ queue, state, workers }: NonNullable<PlainFacts['queued']>): Step {
  const nobody = workers === 0 ? ' No worker listens to this queue.' : ''
  const tone = workers === 0 ? 'bad' : 'plain'
  return { what: 'queued', title: 'In its queue now', text: `${PLACES[state]} in ${queue}.${nobody}`, tone }
}

function reasonsText(reasons: readonly ReasonFacts[]): string {
  return reasons.map(({ field, reason, text }) => `${reason} (${field}): ${text}.`.replace(/\.\.$/, '.')).join(' ')
}
