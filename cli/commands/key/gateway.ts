// `tokenmill key list gateway`, `tokenmill key forget gateway KID`: the keys of gateways' hosts, to which the vault encrypts what
// a gateway may know.
import { FORGET_ROLE_KEY, forgetRoleKey } from '../../../src/acts/role-keys.ts'
import * as roleKeys from '../../../src/store/role-keys/role-keys.ts'
import * as sharedKeys from '../../../src/store/role-keys/shared-keys.ts'
import { SHARED_PURPOSES } from '../../../src/vault/ring/shared-keys.ts'
import type { JsonOption } from '../../command.ts'
import { Stop } from '../../exit.ts'
import { openCommandStore, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { print, type Terminal, table } from '../../terminal.ts'

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

/** If a gateway's host is gone or its file is in wrong hands: from then on nothing is encrypted to that key pair. */
export function forgetGateway(terminal: Terminal, kid: string, options: JsonOption & OperatorOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const by = await byOf({ action: FORGET_ROLE_KEY, subject: kid }, options, store)
    const verdict = await forgetRoleKey(store, kid, by)
    if ('refused' in verdict)
      throw new Stop(`There is no key ${kid} of a gateway; \`tokenmill key list gateway\` lists them.`)
    const lines = [
      `Nothing is encrypted to ${kid} any more. A gateway that has its file works on, and follows no further rotation.`,
      'If the file is in wrong hands: run `tokenmill schema upgrade`, copy the new gateway-keys.jwk to the gateways, restart them, and then run `tokenmill key compromise` for api-key, network-token and intake.',
    ]
    print(terminal, options, { kid, forgotten: true }, lines)
  })
}
