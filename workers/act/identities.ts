// A person's own accounts at an OpenID provider: `identity.connect` and `identity.disconnect`, by a touch of a passkey. The touch
// covers issuer and subject, so nobody on the way can put another account in their place. Then it is the act of the commands
// (src/acts/identities.ts).
import { performIn } from '../../src/acts/act.ts'
import { CONNECT, connectIdentity, disconnectIdentity } from '../../src/acts/identities.ts'
import { refuse } from '../../src/errors.ts'
import { AccountParameters } from '../../src/job/system/account.ts'
import type { DoAct } from './prove.ts'

export const actOnIdentity: DoAct = async (db, { person, request, by, deed }, { ring }) => {
  const own = { personId: person.personId, ...AccountParameters.parse(request.parameters) }
  const ended = await performIn<unknown, 'identity_taken' | 'identity_unknown'>(db, deed, by, () =>
    request.act === CONNECT ? connectIdentity(db, ring, own) : disconnectIdentity(db, own),
  )
  return 'refused' in ended ? refuse(ended.refused, 'body.parameters') : ended
}
