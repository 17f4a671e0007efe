// What a page says when the way by the provider fails. It holds nothing that the provider said.
import type { Failure } from '../openid-provider/provider.ts'

export const FAILURES: Record<Failure, (name: string) => string> = {
  away: name => `${name} does not answer as it should. Try again later, or sign in with your passkey.`,
  denied: name => `${name} did not let you in: it was left, or your account may not use this console there.`,
  wrong: name =>
    `What ${name} answered could not be believed. Try again; if it stays so, the log of the console says why.`,
}

/** The state is unknown, was used, is too old, or another browser began. */
export const LOST = 'This sign-in was not begun in this browser, was used already, or took too long. Begin again.'
/** Nobody is connected with the account, or that person is revoked. */
export const UNKNOWN = (name: string) =>
  `${name} knows you, but no person here is connected with your account there. Sign in with your passkey and connect it under Your passkeys, or ask an administrator for an invite.`
