// `tokenmill person disconnect`: ends a person's sign-in with an account at an OpenID provider. The act is in src/acts/identities.ts.
import { perform } from '../../../src/acts/act.ts'
import { DISCONNECT, disconnectIdentity } from '../../../src/acts/identities.ts'
import type { Account } from '../../../src/store/person/identities.ts'
import type { JsonOption } from '../../command.ts'
import { Stop } from '../../exit.ts'
import { openVault, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { print, type Terminal } from '../../terminal.ts'
import { findPerson } from './person.ts'

type Options = JsonOption & OperatorOptions & Account

export function disconnect(terminal: Terminal, word: string, { issuer, subject, ...options }: Options): Promise<void> {
  return withSession(terminal, async session => {
    const vault = await openVault(session)
    const { personId, name } = await findPerson(vault.store, word)
    const deed = { action: DISCONNECT, subject: personId }
    const by = await byOf(deed, options, vault.store, vault.ring)
    const ended = await perform(vault.store, deed, by, db => disconnectIdentity(db, { personId, issuer, subject }))
    if ('refused' in ended)
      throw new Stop('The person is not connected with this account; `tokenmill person list --json` lists accounts.')
    const done = { person_id: personId, issuer, subject, disconnected: true }
    print(terminal, options, done, `${name} is disconnected from this account; sessions that it began are over.`)
  })
}
