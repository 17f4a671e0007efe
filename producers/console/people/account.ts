// The account at the OpenID provider that an invite names, where the console knows a provider: only an account there signs in, so the
// issuer is never written. Its subject is.
import { isSubject } from '../../../src/job/system/account.ts'
import { holdsPossiblePan } from '../../../src/token/possible-pan.ts'
import type { Asking } from '../acts/subject.ts'
import type { ConsoleDeps } from '../deps.ts'
import { type Html, html } from '../html.ts'
import { shown } from '../sender-text.ts'

type Deps = Pick<ConsoleDeps, 'openid'>
type Given = Asking['asked']['given']

export interface InvitedAccount {
  issuer: string
  subject: string
}

const SUBJECT_MAX = 255

const text = (given: Given) => (typeof given['account'] === 'string' ? given['account'] : '')

/** The account that was written; undefined: none. A text: what is wrong with it. */
export function readAccount({ openid }: Deps, given: Given): InvitedAccount | string | undefined {
  const subject = text(given).trim()
  if (subject === '') return undefined
  if (openid === undefined) return 'Sign-in by OpenID is not set up here, so an invite names no account.'
  if (!isSubject(subject)) return `The subject of an account is 1 to ${SUBJECT_MAX} printable ASCII characters.`
  if (holdsPossiblePan(subject))
    return 'The subject of the account holds digits that could be a card number. Invite this person without it: the person connects the account under Your passkeys.'
  return { issuer: openid.issuer, subject }
}

/** Undefined: there is no provider. */
export function accountInput({ openid }: Deps, given: Given): Html | undefined {
  if (openid === undefined) return undefined
  const { name, issuer } = openid
  return html`<label for="account">Account at ${name}, if this person is to sign in by it, too: its subject (<code>sub</code>), never an e-mail address. The issuer is <code>${issuer}</code>. Without it, the person can connect one later.</label>
<input class="wide" id="account" name="account" value="${text(given).slice(0, SUBJECT_MAX)}" maxlength="${SUBJECT_MAX}" autocomplete="off" spellcheck="false">`
}

/** What follows from an account, for the page of the act; empty: there is no provider. */
export function accountEffect({ openid }: Deps): string {
  if (openid === undefined) return ''
  return ` An account that you name at ${openid.name} signs this person in, too, as soon as the passkey is made: make sure that it is this person’s.`
}

/** The options of the command. */
export function accountOptions(deps: Deps, given: Given): string[] {
  const account = readAccount(deps, given)
  if (account === undefined || typeof account === 'string') return []
  return ['--issuer', account.issuer, '--subject', account.subject]
}

export function accountText({ issuer, subject }: InvitedAccount): Html {
  return html`${shown(subject)} at ${issuer}`
}
