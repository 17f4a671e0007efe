// An act on a person's own account that was sent.
import { AccountParameters } from '../../../src/job/system/account.ts'
import type { DescribeSent } from '../acts/subject.ts'
import { html } from '../html.ts'
import { shown } from '../sender-text.ts'

export const sentIdentityAct: DescribeSent = async ({ act: { request } }) => {
  const { issuer, subject } = AccountParameters.parse(request['parameters'])
  const isConnected = request['act'] === 'identity.connect'
  return {
    at: 'sessions',
    facts: [
      ['Provider', html`${issuer}`],
      ['Account', html`${shown(subject)}`],
    ],
    back: html`<a href="/passkeys">Your passkeys</a>`,
    done: isConnected
      ? 'The account signs you in from now on. It is written into the audit.'
      : 'The account signs you in no more. It is written into the audit.',
  }
}
