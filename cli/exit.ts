// The exit statuses, and how a command ends itself with one. This file imports nothing, so that a refused command line
// is fast. ending.ts maps errors to statuses.
export const EXIT = {
  ok: 0,
  failure: 1,
  /** The run is complete, and some of its records were rejected, failed or cancelled. */
  incomplete: 3,
  /** Nothing was done, because it would have done more than a bound allows. */
  overMax: 4,
  /** Nothing was done: a second operator has to confirm it. */
  unconfirmed: 5,
  usage: 64,
  config: 78,
  interrupted: 130,
} as const

/** Ends a command with a line for its user. The line must not hold a secret. */
export class Stop extends Error {
  override name = 'Stop'
  readonly status: number

  constructor(message: string, status: number = EXIT.failure) {
    super(message)
    this.status = status
  }
}
