// Takes an authenticated job with a checked form through the steps of its kind: one value goes through a list of steps.
// Each step adds what it found, ends the attempt, or sends the value back to `lookUp`. docs/architecture.md has the
// same steps in the same order; steps.ts has what they do.
import { Fault, toFault } from '../../src/errors.ts'
import type { SpanName } from '../../src/trace/attributes.ts'
import { type Span, within } from '../../src/trace/tracer.ts'
import type { End } from '../work.ts'
import {
  admit,
  decide,
  holdBack,
  inspect,
  type LineInput,
  lookUp,
  type Next,
  open,
  prepare,
  prepareMeanwhile,
  reach,
  recall,
  recallUnlessFailed,
  refuseNamedAfterCard,
  refuseUnadmitted,
  refuseWhole,
  remember,
  type Step,
  type Walk,
} from './steps.ts'

/** How often an attempt may begin again after other transactions changed the same rows first. */
const RERUNS_MAX = 25

interface Line {
  first: readonly Step[]
  /** The steps that run again if another transaction was first. */
  again: readonly Step[]
}

/** A caller may wait for the answer, so cryptography runs while the receipt is looked up. */
const INTERACTIVE: Line = {
  first: [open],
  again: [
    lookUp,
    admit,
    prepareMeanwhile,
    recall,
    refuseUnadmitted,
    inspect,
    refuseNamedAfterCard,
    reach,
    decide,
    remember,
  ],
}

/**
 * A chunk is prepared only after its receipt was looked up, because stored outcomes stay. Its handler passes the
 * records to `inspect`.
 */
const BULK: Line = {
  first: [holdBack, open],
  again: [lookUp, admit, recallUnlessFailed, refuseUnadmitted, prepare, refuseWhole, reach, decide, remember],
}

export async function walk(job: LineInput<unknown, unknown, unknown>): Promise<End> {
  const { first, again } = job.work.entry.bulk ? BULK : INTERACTIVE
  const value: Walk<unknown, unknown, unknown> = { ...job, run: 0 }
  let next = await through(first, value)
  for (; !isEnd(next) && value.run <= RERUNS_MAX; value.run += 1) next = await through(again, value)
  if (!isEnd(next)) throw new Fault('contention')
  return next
}

async function through(steps: readonly Step[], value: Walk<unknown, unknown, unknown>): Promise<Next> {
  for (const step of steps) {
    const next = await (value.deps.span ? traced(step, value, value.deps.span) : step(value))
    if (next !== undefined) return next
  }
  return undefined
}

/** The steps that take time and have a span. */
const NAMED = new Map<Step, SpanName>([
  [prepareMeanwhile, 'prepare'],
  [prepare, 'prepare'],
  [reach, 'reach'],
  [decide, 'decide'],
  [remember, 'remember'],
])

function traced(step: Step, value: Walk<unknown, unknown, unknown>, span: Span): Promise<Next> {
  const name = NAMED.get(step)
  if (name === undefined || (name === 'reach' && !value.handler.reach)) return step(value)
  const { deps } = value
  const own = span.child(name)
  value.deps = { ...deps, span: own }
  return within(own, () => step(value), codeOf).finally(() => {
    value.deps = deps
  })
}

const codeOf = (error: unknown) => toFault(error).code

function isEnd(next: Next): next is End {
  return typeof next === 'object'
}
