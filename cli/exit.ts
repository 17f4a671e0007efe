// The exit statuses, and how a command ends itself with one. It loads nothing, so that a command line that is refused
// costs nothing; what errors mean is ending.ts.
export const EXIT = {
  ok: 0,
  failure: 1,
  /** The run is complete, and some of its records were rejected, failed or cancelled. */
  incomplete: 3,
  usage: 64,
  config: 78,
  interrupted: 130,
} as const

/** Ends a command with a line for its user. The line holds nothing secret. */
export class Stop extends Error {
  override name = 'Stop'
  readonly status: number

  constructor(message: string, status: number = EXIT.failure) {
    super(message)
    this.status = status
  }
}
