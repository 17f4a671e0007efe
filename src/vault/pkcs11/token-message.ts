// The messages between tokenmill's process and the token's process: one reply to each request, in order.
import type { TokenErrorKind } from './token-error.ts'
import type { TokenKey } from './uri.ts'

export interface TokenAct {
  act: 'wrap' | 'unwrap'
  bytes: Buffer
  purpose: string
}

/** `open` comes first, and once. */
export type TokenRequest = { open: TokenKey } | TokenAct

/** `id`: the session is open, and this is the key's. */
export type TokenReply = { id: string } | { bytes: Buffer } | { kind: TokenErrorKind; text: string }
