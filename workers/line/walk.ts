// The line that every job walks, once authenticated and of its form: one value goes through a list of steps, each of
// which adds what it found, ends the attempt, or sends it back to look for the receipt again. docs/architecture.md has
// the same steps in the same order; what they do is in steps.ts.
import { Fault } from '../../src/errors.ts'
import { CATALOGUE } from '../../src/job/catalogue.ts'
import {
  admit,
  decide,
  type Entrant,
  holdBack,
  inspect,
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
import type { End } from './work.ts'

/** How often one attempt decides anew after somebody else changed the same rows first. */
const RERUNS_MAX = 25

interface Line {
  first: readonly Step[]
  /** From here on again, where somebody else was faster. */
  again: readonly Step[]
}

/** A caller waits: the cryptography goes on while the receipt is looked for. */
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

/** What a chunk comes to depends on what its receipt says it came to before; it shows its records to `inspect` itself. */
const BULK: Line = {
  first: [holdBack, open],
  again: [lookUp, admit, recallUnlessFailed, refuseUnadmitted, prepare, refuseWhole, reach, decide, remember],
}

export async function walk(job: Entrant<unknown, unknown, unknown>): Promise<End> {
  const { first, again } = CATALOGUE[job.work.claims.kind].bulk ? BULK : INTERACTIVE
  const value: Walk<unknown, unknown, unknown> = { ...job, run: 0 }
  let next = await through(first, value)
  for (; !isEnd(next) && value.run <= RERUNS_MAX; value.run += 1) next = await through(again, value)
  if (!isEnd(next)) throw new Fault('contention')
  return next
}

async function through(steps: readonly Step[], value: Walk<unknown, unknown, unknown>): Promise<Next> {
  for (const step of steps) {
    const next = await step(value)
    if (next !== undefined) return next
  }
  return undefined
}

function isEnd(next: Next): next is End {
  return typeof next === 'object'
}
