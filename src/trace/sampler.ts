// Decides which traces are recorded: a share of all, chosen by the trace's id, so that every process chooses the same
// traces; and at most a number per second in each process. The decision of a caller outside of tokenmill is ignored.
export interface SamplerOptions {
  /** The share, from 0 to 1. */
  ratio: number
  perSecond: number
  /** ms; the clock never goes back. */
  clock: () => number
}

/** W3C Trace Context: the right part of a trace id should be random, whoever made it. */
const RANDOM_DIGITS = 8

export function openSampler({ ratio, perSecond, clock }: SamplerOptions): (traceId: string) => boolean {
  let second = 0
  let taken = 0
  return traceId => {
    if (Number.parseInt(traceId.slice(-RANDOM_DIGITS), 16) >= ratio * 16 ** RANDOM_DIGITS) return false
    const now = Math.floor(clock() / 1000)
    if (now !== second) {
      second = now
      taken = 0
    }
    taken += 1
    return taken <= perSecond
  }
}
