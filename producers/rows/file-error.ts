// The error that stops a run because of a file: one sentence that says what is wrong and one that says what to do next.
// It never quotes the content of a file, which may be card data. A bad row is a rejected row, not such an error.

/** `usage`: the command's options must be changed (exit 64). `input`, `output`: a file must be corrected (exit 1). */
export type FileErrorKind = 'usage' | 'input' | 'output'

export class FileError extends Error {
  override name = 'FileError'
  readonly kind: FileErrorKind
  /** The sentence that says what to do. */
  readonly next: string

  constructor(kind: FileErrorKind, wrong: string, next: string, cause?: unknown) {
    super(`${wrong} ${next}`, cause === undefined ? undefined : { cause })
    this.kind = kind
    this.next = next
  }

  /** The command's exit status. */
  get status(): 1 | 64 {
    return this.kind === 'usage' ? 64 : 1
  }
}

/** The `code` of an error of the operating system or of zlib, such as `ENOENT`. */
export function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error ? (error as Error & { code?: unknown }).code : undefined
  return typeof code === 'string' ? code : undefined
}
