// `tokenmill key rotate PURPOSE`: makes a new version of a data key, waits until every live process that needs it holds
// it, and lets it take the place of the former one. If the command is killed and run again, it continues where it was.

import { ROTATE, type WithoutGateways } from '../../../src/acts/key/key-rotation.ts'
import { regrant } from '../../../src/acts/key/regrant.ts'
import { RESEAL } from '../../../src/acts/key/reseal.ts'
import { listOldApiKeys } from '../../../src/store/access/client-users.ts'
import { hashedColumnsOf } from '../../../src/store/reseal/hashed-columns.ts'
import { PURPOSES, type Purpose } from '../../../src/vault/ring/key-ring.ts'
import { TURNING } from '../../../src/vault/ring/turning.ts'
import type { JsonOption } from '../../command.ts'
import { EXIT, Stop } from '../../exit.ts'
import { GRANT_LISTS } from '../../open/grant-lists.ts'
import { FOLLOW } from '../../open/key-ring.ts'
import { openVault, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { print, say, type Terminal } from '../../terminal.ts'
import { regrantedText } from './regranted.ts'
import { turnDataKey } from './turn-data-key.ts'

type Options = JsonOption & OperatorOptions & { without: WithoutGateways }

export function rotateDataKey(terminal: Terminal, word: string, { without, ...options }: Options): Promise<void> {
  const purpose = readPurpose(word)
  if (TURNING[purpose].changesValues)
    throw new Stop(
      `A new key ${purpose} changes values that others keep, so it is replaced only if somebody else has it: \`tokenmill key compromise ${purpose} --values-change\`.`,
    )
  return withSession(terminal, async session => {
    const vault = await openVault(session)
    const { store, ring } = vault
    const by = await byOf({ action: ROTATE, subject: purpose }, options, store, ring)
    const { version, former } = await turnDataKey(terminal, vault, { purpose, without }, by)
    if (purpose === 'grant') {
      const byAnew = await byOf({ action: RESEAL, subject: purpose }, options, store, ring)
      say(terminal, regrantedText(await regrant(store, ring, byAnew, GRANT_LISTS)))
    }
    if (purpose === 'api-key') await sayOldClients(terminal, vault.store)
    const does = hashedColumnsOf(purpose) ? 'is compared with what it hashed before' : 'opens what it sealed before'
    print(
      terminal,
      options,
      { purpose, version, former },
      `${purpose}/${version} is in use, on every host within ${FOLLOW.everyMs / 1000} s; ${purpose}/${former} ${does}.`,
    )
  })
}

export function readPurpose(word: string): Purpose {
  const purpose = PURPOSES.find(known => known === word)
  if (!purpose) throw new Stop(`there is no key for ${word}; the purposes are ${PURPOSES.join(', ')}.`, EXIT.usage)
  return purpose
}

/** Names the clients whose API keys stay under a former version, until they are replaced. */
export async function sayOldClients(terminal: Terminal, store: Parameters<typeof listOldApiKeys>[0]): Promise<void> {
  const old = await listOldApiKeys(store)
  if (old.length === 0) return
  const names = old.map(({ name, keyVersion }) => `${name} (api-key/${keyVersion})`).join(', ')
  say(
    terminal,
    `API keys under a former version: ${names}. Each stays so until \`tokenmill client api-key rotate NAME\`.`,
  )
}
