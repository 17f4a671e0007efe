// A person with a passkey in software, who signs in to the console, acts, and signs out, by the requests that a browser sends.
import { grantPasskey } from '../../src/acts/person-grants.ts'
import * as credentials from '../../src/store/person/credentials.ts'
import { type Authenticator, openAuthenticator } from '../../test/vault/passkey/authenticator.ts'
import { type Caller, makePerson } from './visitor.ts'

export interface Member {
  authenticator: Authenticator
}

export async function makeMember(vault: Parameters<typeof makePerson>[0], port: number): Promise<Member> {
  const personId = await makePerson(vault, null)
  const site = { origin: `http://localhost:${port}`, rpId: 'localhost' }
  const authenticator = openAuthenticator(site)
  const { credentialId, alg } = authenticator
  const publicJwk = authenticator.publicJwk as credentials.Credential['publicJwk']
  const passkey = { credentialId, personId, publicJwk, alg, rpId: site.rpId, signCount: 0 }
  await credentials.insert(vault.store, passkey)
  await grantPasskey(vault.store, vault.ring, passkey)
  return { authenticator }
}

/** Returns the cookie of the new session. */
export async function signIn({ call }: Caller, { authenticator }: Member): Promise<string> {
  const { text } = await call('POST', '/sign-in/begin', { json: {} })
  const proof = JSON.stringify(authenticator.get(challengeIn(text)))
  const { status, cookie } = await call('POST', '/sign-in', { form: { to: '/now', proof } })
  if (status !== 303 || cookie === undefined) throw new Error(`a sign-in was answered ${status}`)
  return cookie
}

/** Does the act of this page; returns the page of its verdict, or undefined where there is nothing to do, or not any more. */
export async function act(
  { call }: Caller,
  { authenticator, cookie }: Member & { cookie: string },
  page: string,
): Promise<string | undefined> {
  const shown = await call('GET', page, { cookie })
  const fields = Object.fromEntries(
    [...shown.text.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)"/g)].map(([, name, value]) => [
      name,
      value,
    ]),
  ) as Record<string, string>
  if (shown.status !== 200 || fields['seen'] === undefined) return undefined
  const [to = ''] = page.split('?')
  const asked = { ...fields, reason: 'a soak' }
  const begun = await call('POST', `${to}/begin`, { cookie, json: asked })
  // Somebody else has taken it meanwhile.
  if (begun.status === 404) return undefined
  const { nonce } = JSON.parse(begun.text) as { nonce: string }
  const proof = JSON.stringify(authenticator.get(challengeIn(begun.text)))
  const sent = await call('POST', to, { cookie, form: { ...asked, nonce, proof } })
  if (sent.location === undefined) throw new Error(`an act was answered ${sent.status}`)
  return (await call('GET', sent.location, { cookie })).text
}

function challengeIn(text: string): Buffer {
  const { get } = JSON.parse(text) as { get: { challenge: string } }
  return Buffer.from(get.challenge, 'base64url')
}
