// One question of `status` or `doctor` and its answer. Each is asked beside the others and has a deadline of its own, so
// that a server which is away, or hangs, costs one answer and not the command.
import { ConfigError } from '../../src/config.ts'
import { Fault, FAULTS } from '../../src/errors.ts'

/** In the order of severity. `unknown`: it can't be told now. */
export const STATES = ['well', 'warning', 'unknown', 'critical'] as const
export type State = (typeof STATES)[number]

export interface Verdict {
  state: State
  /** A sentence with its numbers and units; no card data, no secret. */
  says: string
  /** What to do. */
  next?: string
}

export interface Check extends Verdict {
  name: string
}

/** `ask` answers or throws: what it throws is the answer, too. */
export interface Question<Sources> {
  name: string
  ask: (sources: Sources) => Promise<Verdict>
}

export const DEADLINE_MS = 1_000

export const well = (says: string): Verdict => ({ state: 'well', says })
export const warning = (says: string, next: string): Verdict => ({ state: 'warning', says, next })
export const critical = (says: string, next: string): Verdict => ({ state: 'critical', says, next })
export const unknown = (says: string, next?: string): Verdict => ({ state: 'unknown', says, ...(next && { next }) })

export function askAll<Sources>(
  questions: readonly Question<Sources>[],
  sources: Sources,
  deadlineMs = DEADLINE_MS,
): Promise<Check[]> {
  return Promise.all(
    questions.map(async ({ name, ask }) => ({ name, ...(await within(deadlineMs, () => ask(sources))) })),
  )
}

/** The worst of them. */
export function worstOf(checks: readonly Verdict[]): State {
  return STATES[Math.max(0, ...checks.map(({ state }) => STATES.indexOf(state)))] ?? 'unknown'
}

async function within(ms: number, ask: () => Promise<Verdict>): Promise<Verdict> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<Verdict>(resolve => {
    timer = setTimeout(() => resolve(unknown(`no answer within ${ms / 1000} s`)), ms)
  })
  return Promise.race([ask().catch(verdictOf), late]).finally(() => clearTimeout(timer))
}

/** A server that is away is named by its own check, and leaves the others unanswered. */
function verdictOf(error: unknown): Verdict {
  if (error instanceof ConfigError) return critical(error.message, 'correct the setting that the line names')
  if (error instanceof Fault) return unknown(AWAY[error.code] ?? `it could not be asked (${error.code})`)
  return unknown('it could not be asked')
}

const AWAY: Partial<Record<keyof typeof FAULTS, string>> = {
  store_away: 'the store is away',
  store_busy: 'the store is busy',
  queue_away: 'the queue server is away',
}
