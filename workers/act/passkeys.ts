// A person's own passkeys: `passkey.add` and `passkey.remove`, by a touch of a passkey that the person has. The touch covers the
// new passkey as its authenticator made it, so nobody on the way can put another in its place. A passkey doesn't remove itself:
// so the last one stays, whatever is removed at the same time.
import { type Actor, performIn, recordRefusal } from '../../src/acts/act.ts'
import { grantPasskey } from '../../src/acts/person-grants.ts'
import { type Reason, type Refusal, refuse } from '../../src/errors.ts'
import { type Act, NewPasskeyParameters, PasskeyParameters } from '../../src/job/system/act.ts'
import * as credentials from '../../src/store/person/credentials.ts'
import { type Db, LostRace } from '../../src/store/pool.ts'
import { readAttestation } from '../../src/vault/passkey/attestation.ts'
import { creationChallengeOf } from '../../src/vault/passkey/challenge.ts'
import type { DoAct } from './prove.ts'

export const addPasskey: DoAct = async (db, { person, actor }, { request }, { ring, console }) => {
  const { personId } = person
  const refused = wrongly(db, request, actor)
  const early = refusalOf(request, personId, actor)
  if (early) return refused(...early)
  const made = NewPasskeyParameters.parse(request.parameters)
  const challenge = creationChallengeOf(request, console.installationId)
  const passkey = readAttestation(made, { ...console, challenge })
  if (typeof passkey === 'string') return refused(`passkey_${passkey}`, 'parameters')
  if (passkey.credentialId !== made.credential_id) return refused('passkey_form', 'parameters')
  if (await credentials.find(db, passkey.credentialId)) return refused('passkey_exists', 'parameters')
  const row = { ...passkey, personId, rpId: console.rpId }
  return performIn(db, deedOf(request), { actor, reason: undefined }, async () => {
    // Nothing of this transaction stays then.
    if (!(await credentials.insert(db, row))) throw new LostRace('another person enrolled this passkey meanwhile')
    await grantPasskey(db, ring, row)
    return { done: undefined, detail: { added: passkey.credentialId } }
  })
}

export const removePasskey: DoAct = async (db, { person, actor }, { request }) => {
  const { personId } = person
  const refused = wrongly(db, request, actor)
  const early = refusalOf(request, personId, actor)
  if (early) return refused(...early)
  const { credential_id: removed } = PasskeyParameters.parse(request.parameters)
  if (removed === actor.credential) return refused('passkey_same', 'parameters')
  const passkey = await credentials.lock(db, removed)
  if (passkey?.personId !== personId || passkey.revokedAt !== null) return refused('passkey_unknown', 'parameters')
  return performIn(db, deedOf(request), { actor, reason: undefined }, async () => {
    await credentials.revoke(db, removed)
    return { done: undefined, detail: { removed } }
  })
}

/** The person of the embedded engine has no passkey to touch, and nobody acts on the passkeys of others. */
function refusalOf({ subject }: Act, personId: string, { credential }: Actor): [Reason, string] | undefined {
  if (credential === undefined) return ['passkey_missing', 'proof']
  return subject === personId ? undefined : ['act_forbidden', 'subject']
}

const deedOf = ({ act, subject }: Act) => ({ action: act, subject })

function wrongly(db: Db, request: Act, actor: Actor): (word: Reason, field: string) => Promise<Refusal> {
  return async (word, field) => {
    await recordRefusal(db, deedOf(request), { actor, reason: undefined }, { why: word })
    return refuse(word, `body.${field}`)
  }
}
