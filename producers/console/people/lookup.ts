// Finds the person or the invite that a path names. People for some entities find none.
import type { SeenInvite, SeenPerson } from '../../../src/store/console/people.ts'
import * as seenPeople from '../../../src/store/console/people.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { sightOf } from '../../../src/store/sight.ts'
import type { ConsoleDeps } from '../deps.ts'

export const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/

type Deps = Pick<ConsoleDeps, 'store' | 'site'>
type Session = Pick<LiveSession, 'entities'>

export async function personOf(
  { store, site }: Deps,
  { entities }: Session,
  personId: string | undefined = '',
): Promise<SeenPerson | undefined> {
  if (!UUID.test(personId)) return undefined
  return seenPeople.find(sightOf(entities), store, { personId, rpId: site().rpId })
}

export async function inviteOf(
  { store }: Deps,
  { entities }: Session,
  inviteId: string | undefined = '',
): Promise<SeenInvite | undefined> {
  return UUID.test(inviteId) ? seenPeople.findInvite(sightOf(entities), store, inviteId) : undefined
}
