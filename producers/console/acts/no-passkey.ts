// What a page says to a person who has no passkey for this console: who signed in by OpenID, and whose passkeys are
// of a former domain.

import type { LiveSession } from '../../../src/store/console/sessions.ts'
import * as signingIn from '../../../src/store/console/signing-in.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command } from '../figures.ts'
import { type Html, html } from '../html.ts'

export const NO_PASSKEY = 'You have no passkey for this console, so you can look and not act.'

export function noPasskey({ name }: Pick<LiveSession, 'name'>): Html {
  return html`<p class="empty">${NO_PASSKEY} An administrator gives you a link in which a passkey ends: ${command('tokenmill', 'person', 'link', name)}</p>`
}

/** Whether the person of this session can touch a passkey, or needs none. Who didn't sign in by OpenID has touched one. */
export async function canAct(
  { store, site }: Pick<ConsoleDeps, 'store' | 'site'>,
  { personId, identityId }: Pick<LiveSession, 'personId' | 'identityId'>,
): Promise<boolean> {
  return identityId === null || signingIn.hasKey(store, personId, site().rpId)
}
