// `tokenmill key list gateway`: the keys of gateways' hosts, to which the vault encrypts what a gateway may know.
import * as roleKeys from '../../../../src/store/role-keys/role-keys.ts'
import * as sharedKeys from '../../../../src/store/role-keys/shared-keys.ts'
import { SHARED_PURPOSES } from '../../../../src/vault/ring/shared-keys.ts'
import type { JsonOption } from '../../../command.ts'
import { openCommandStore, withSession } from '../../../open/open.ts'
import { print, type Terminal, table } from '../../../terminal.ts'

export function listGateways(terminal: Terminal, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const shown: { kid: string; opens: string[] }[] = []
    for (const { kid } of await roleKeys.list(store)) {
      const versions = await sharedKeys.findAll(store, SHARED_PURPOSES, kid)
      const opens = versions.filter(({ jwe }) => jwe !== null).map(({ purpose, version }) => `${purpose}/${version}`)
      shown.push({ kid, opens })
    }
    const rows = shown.map(({ kid, opens }) => [kid, opens.join(' ')])
    print(terminal, options, shown, table(['gateway key', 'opens'], rows))
  })
}
