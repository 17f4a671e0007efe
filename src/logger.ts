// What code writes to a log through, whatever writes the lines (log.ts), and what may be said there of an error.

/** A line: its fields, then its text; or its text alone. */
interface Write {
  (fields: object, text?: string): void
  (text: string): void
}

export interface Logger {
  debug: Write
  info: Write
  warn: Write
  error: Write
  /** A logger whose lines have these fields too. */
  child(fields: Record<string, unknown>): Logger
}

export const SILENT: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => SILENT,
}

/**
 * The parts of an error that may be logged: its name, codes, constraint and the first line of its stack. Messages of
 * foreign errors can quote their input, so they are left out.
 */
export function describeError(error: unknown): Record<string, unknown> {
  const description = describe(error)
  descriptions.add(description)
  return description
}

/** Describes an error, and leaves it as it is if a caller has already described it. */
export function describeOnce(value: unknown): unknown {
  return typeof value === 'object' && value !== null && descriptions.has(value) ? value : describeError(value)
}

const descriptions = new WeakSet<object>()

function describe(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { name: typeof error }
  const { code, constraint, syscall } = error as Error & { code?: unknown; constraint?: unknown; syscall?: unknown }
  return { name: error.name, code, constraint, syscall, at: firstFrame(error) }
}

function firstFrame(error: Error): string | undefined {
  const frame = error.stack?.split('\n').find(line => line.startsWith('    at '))
  return frame
    ?.trim()
    .replace(/^at /, '')
    .replace(/file:\/\/.*\/(?=(src|workers|producers|node_modules)\/)/, '')
    .slice(0, 160)
}
