// A person's own accounts at an OpenID provider: `identity.connect` and `identity.disconnect`, by a touch of a passkey. The touch
// covers issuer and subject, so nobody on the way can put another account in their place. Then it is the act of the commands
// (src/acts/identities.ts).
import { performIn, recordRefusal } from '../../src/acts/act.ts'
import { CONNECT, connectIdentity, disconnectIdentity } from '../../src/acts/identities.ts'
import { type Reason, type Refusal, refuse } from '../../src/errors.ts'
import { AccountParameters } from '../../src/job/system/account.ts'
import type { DoAct } from './prove.ts'

export const actOnIdentity: DoAct = async (db, { person, actor }, { request }, { ring }) => {
  const { act, subject } = request
  const by = { actor, reason: undefined }
  const deed = { action: act, subject }
  const refused = async (word: Reason, field: string): Promise<Refusal> => {
    await recordRefusal(db, deed, by, { why: word })
    return refuse(word, `body.${field}`)
  }
  // The person of the embedded engine has no passkey to touch, and nobody acts on the accounts of others.
  if (actor.credential === undefined) return refused('passkey_missing', 'proof')
  if (subject !== person.personId) return refused('act_forbidden', 'subject')
  const own = { personId: person.personId, ...AccountParameters.parse(request.parameters) }
  const ended = await performIn<unknown, 'identity_taken' | 'identity_unknown'>(db, deed, by, () =>
    act === CONNECT ? connectIdentity(db, ring, own) : disconnectIdentity(db, own),
  )
  return 'refused' in ended ? refuse(ended.refused, 'body.parameters') : ended
}
