// One question of `status` or `doctor` and its answer. Each is asked beside the others and has a deadline of its own, so
// that a server which is away, or hangs, costs one answer and not the command.
import { ConfigError } from '../../src/config.ts'
import { Fault, type FaultCode } from '../../src/errors.ts'

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
  /** The server that is asked whether it answers: its silence is critical here, and leaves the other questions open. */
  server?: string
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
    questions.map(async ({ name, ask, server }) => {
      const asked = ask(sources).catch(error => verdictOf(error, server))
      return { name, ...(await within(deadlineMs, asked, server)) }
    }),
  )
}

/** The worst first. */
export function worstFirst(verdicts: readonly Verdict[]): Verdict[] {
  return verdicts.toSorted((a, b) => STATES.indexOf(b.state) - STATES.indexOf(a.state))
}

/** The worst of them. */
export function worstOf(checks: readonly Verdict[]): State {
  return STATES[Math.max(0, ...checks.map(({ state }) => STATES.indexOf(state)))] ?? 'unknown'
}

async function within(ms: number, asked: Promise<Verdict>, server: string | undefined): Promise<Verdict> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<Verdict>(resolve => {
    const says = `no answer within ${ms / 1000} s`
    timer = setTimeout(() => resolve(server ? critical(`${server} is away: ${says}`, MEND) : unknown(says)), ms)
  })
  return Promise.race([asked, late]).finally(() => clearTimeout(timer))
}

const MEND = 'docs/on-call.md: What happens when something is away or full?'

function verdictOf(error: unknown, server: string | undefined): Verdict {
  if (error instanceof ConfigError) return critical(error.message, 'correct what the line names')
  if (server) {
    const { code } = error as { code?: unknown }
    const isAway = error instanceof Fault || typeof code !== 'string'
    return critical(isAway ? `${server} is away` : `${server} refuses this command (${code})`, MEND)
  }
  if (error instanceof Fault) return unknown(AWAY[error.code] ?? `it could not be asked (${error.code})`)
  return unknown('it could not be asked')
}

const AWAY: Partial<Record<FaultCode, string>> = {
  store_away: 'the store is away',
  store_busy: 'the store is busy',
  queue_away: 'the queue server is away',
}
