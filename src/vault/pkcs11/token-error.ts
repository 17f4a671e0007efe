// How the use of a token fails. The token's process sends an error to this process as a kind and a text.

/**
 * `config`: a person has to change something. `pin`: the token refused the PIN, which must not be tried again. `away`:
 * the token, or something on the way to it, doesn't work now. `bytes`: the token works and can't open these bytes.
 */
export type TokenErrorKind = 'config' | 'pin' | 'away' | 'bytes'

/** The text holds no secret. */
export class TokenError extends Error {
  override name = 'TokenError'
  readonly kind: TokenErrorKind

  constructor(kind: TokenErrorKind, text: string) {
    super(text)
    this.kind = kind
  }
}

/** A module's own word (`CKR_…`). It is shown to people only: modules return misleading ones. */
export function wordOf(error: unknown): string {
  return /\bCKR_\w+/.exec(error instanceof Error ? error.message : '')?.[0] ?? 'no CKR code'
}
