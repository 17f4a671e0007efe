// A person's own passkeys: `passkey.add` and `passkey.remove`, by a touch of a passkey that the person has. The touch covers the
// new passkey as its authenticator made it, so nobody on the way can put another in its place. A passkey doesn't remove itself:
// so the last one stays, whatever is removed at the same time.
import { performIn } from '../../src/acts/act.ts'
import { grantPasskey } from '../../src/acts/person-grants.ts'
import { NewPasskeyParameters, PasskeyParameters } from '../../src/job/system/own-act.ts'
import * as credentials from '../../src/store/person/credentials.ts'
import { LostRace } from '../../src/store/pool.ts'
import { readAttestation } from '../../src/vault/passkey/attestation.ts'
import { creationChallengeOf } from '../../src/vault/passkey/challenge.ts'
import type { DoAct } from './prove.ts'

export const actOnPasskey: DoAct = (...asked) =>
  asked[1].request.act === 'passkey.add' ? addPasskey(...asked) : removePasskey(...asked)

const addPasskey: DoAct = async (db, { person, request, by, deed, refused }, { ring, console }) => {
  const made = NewPasskeyParameters.parse(request.parameters)
  const challenge = creationChallengeOf(request, console.installationId)
  const passkey = readAttestation(made, { ...console, challenge })
  if (typeof passkey === 'string') return refused(`passkey_${passkey}`, 'parameters')
  if (passkey.credentialId !== made.credential_id) return refused('passkey_form', 'parameters')
  if (await credentials.find(db, passkey.credentialId)) return refused('passkey_exists', 'parameters')
  const row = { ...passkey, personId: person.personId, rpId: console.rpId }
  return performIn(db, deed, by, async () => {
    // Nothing of this transaction stays then.
    if (!(await credentials.insert(db, row))) throw new LostRace('another person enrolled this passkey meanwhile')
    await grantPasskey(db, ring, row)
    return { done: undefined, detail: { added: passkey.credentialId } }
  })
}

const removePasskey: DoAct = async (db, { person, actor, request, by, deed, refused }) => {
  const { credential_id: removed } = PasskeyParameters.parse(request.parameters)
  if (removed === actor.credential) return refused('passkey_same', 'parameters')
  const passkey = await credentials.lock(db, removed)
  if (passkey?.personId !== person.personId || passkey.revokedAt !== null)
    return refused('passkey_unknown', 'parameters')
  return performIn(db, deed, by, async () => {
    await credentials.revoke(db, removed)
    return { done: undefined, detail: { removed } }
  })
}
