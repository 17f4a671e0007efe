// One check of `status` or `doctor` and its result. All checks run at the same time, within common time limits, so that
// a server that is away or hangs doesn't hold up the command for longer. Checks that need such a server then have no
// result.
import { ConfigError } from '../../src/config.ts'
import { Fault, type FaultCode } from '../../src/errors.ts'
import { causeOf } from '../../src/server-error.ts'

/** In the order of severity. `unknown`: the check could not be made. */
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

/** `ask` returns a verdict or throws; an error becomes a verdict, too. */
export interface Question<Sources> {
  name: string
  ask: (sources: Sources) => Promise<Verdict>
  /**
   * Names the server whose availability this check tests: its silence makes this check critical, and other checks
   * unknown.
   */
  server?: string
}

export const well = (says: string): Verdict => ({ state: 'well', says })
export const warning = (says: string, next: string): Verdict => ({ state: 'warning', says, next })
export const critical = (says: string, next: string): Verdict => ({ state: 'critical', says, next })
export const unknown = (says: string, next?: string): Verdict => ({ state: 'unknown', says, ...(next && { next }) })

/** How long answers are awaited. */
export interface Patience {
  /** A server that hasn't answered within this time is away, in ms. */
  firstMs: number
  /** If every server answered in time, other checks may take this long, in ms. */
  lastMs: number
  /** Called once with the answers that came within `firstMs`, if others are still awaited. */
  onFirst?: (answered: Check[], awaited: string[]) => void
}

/** Asks all questions at the same time. Returns the checks in the order of `questions`. */
export async function askAll<Sources>(
  questions: readonly Question<Sources>[],
  sources: Sources,
  { firstMs, lastMs, onFirst }: Patience,
): Promise<Check[]> {
  const asked = questions.map(({ name, ask, server }) => ({
    name,
    server,
    answer: ask(sources).catch(error => verdictOf(error, server)),
  }))
  const began = performance.now()
  const left = () => lastMs - (performance.now() - began)
  const first = await allWithin({ ms: firstMs, mostMs: lastMs }, asked)
  const isLate = (at: number) => first[at] === undefined
  // Checks that need a server that is away aren't awaited: they would never be answered.
  const isEnd = left() <= 0 || asked.some(({ server }, at) => server !== undefined && isLate(at))
  const late = isEnd ? [] : asked.filter((_, at) => isLate(at))
  if (late.length > 0)
    onFirst?.(
      asked.flatMap(({ name }, at) => (first[at] ? [{ name, ...first[at] }] : [])),
      late.map(({ name }) => name),
    )
  const last = isEnd ? first : await allWithin({ ms: left(), mostMs: left() }, asked)
  return asked.map(({ name, server }, at) => ({
    name,
    ...(first[at] ?? last[at] ?? silence(isEnd ? firstMs : lastMs, server)),
  }))
}

/** Sorts the verdicts, worst first. */
export function worstFirst(verdicts: readonly Verdict[]): Verdict[] {
  return verdicts.toSorted((a, b) => STATES.indexOf(b.state) - STATES.indexOf(a.state))
}

/** The worst state among them. */
export function worstOf(checks: readonly Verdict[]): State {
  return STATES[Math.max(0, ...checks.map(({ state }) => STATES.indexOf(state)))] ?? 'unknown'
}

/**
 * A step that takes longer than this ends late: the host was too busy to run this process, and perhaps too busy to run
 * the servers. Only this much of a late step counts.
 */
const STEP_MS = 50

/**
 * The answers that came within `ms`; time during which this process didn't run isn't counted. It waits at most `mostMs`
 * in all. On a busy machine the process may be late although the servers are not.
 */
async function allWithin(
  { ms, mostMs }: { ms: number; mostMs: number },
  asked: readonly { answer: Promise<Verdict> }[],
): Promise<(Verdict | undefined)[]> {
  const began = performance.now()
  let at = began
  let heardMs = 0
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>(resolve => {
    const look = () => {
      const now = performance.now()
      heardMs += Math.min(now - at, STEP_MS)
      at = now
      const leftMs = Math.min(ms - heardMs, mostMs - (now - began))
      if (leftMs <= 0) resolve(undefined)
      else timer = setTimeout(look, Math.min(STEP_MS, leftMs))
    }
    timer = setTimeout(look, Math.min(STEP_MS, ms))
  })
  const answers = await Promise.all(asked.map(({ answer }) => Promise.race([answer, late])))
  clearTimeout(timer)
  return answers
}

function silence(ms: number, server: string | undefined): Verdict {
  const says = `no answer within ${ms / 1000} s`
  return server ? critical(`${server} is away: ${says}`, MEND) : unknown(says)
}

const MEND = 'docs/on-call.md: What happens when something is away or full?'

function verdictOf(error: unknown, server: string | undefined): Verdict {
  if (error instanceof ConfigError) return critical(error.message, 'correct what the line names')
  const cause = causeOf(error)
  if (cause) return server ? critical(cause.says, cause.next) : unknown(cause.says)
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
