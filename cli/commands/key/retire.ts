// `tokenmill key retire fingerprint VERSION`: ends the look-up of cards under a former version. If tokens are known
// only under that version, it lists some of them and refuses, unless `--forget` is given.
import { RETIRE, removeRetired, retireVersion } from '../../../src/acts/key/card-phase.ts'
import * as cardOrphans from '../../../src/store/token/card-orphans.ts'
import { formatReuseToken } from '../../../src/token/token.ts'
import type { JsonOption } from '../../command.ts'
import { EXIT, Stop } from '../../exit.ts'
import { openVault, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { print, say, type Terminal } from '../../terminal.ts'
import { waitsOn } from './rotate-fingerprint.ts'

const PURPOSE = 'fingerprint'
const SHOWN_MAX = 100

export function retire(
  terminal: Terminal,
  purpose: string,
  version: number,
  options: JsonOption & OperatorOptions & { forget?: boolean },
): Promise<void> {
  if (purpose !== PURPOSE) throw new Stop(`only versions of the key ${PURPOSE} are retired.`, EXIT.usage)
  return withSession(terminal, async session => {
    const vault = await openVault(session)
    const { store, ring } = vault
    const by = await byOf({ action: RETIRE, subject: `${PURPOSE}/${version}` }, options, store, ring)
    const ended = await retireVersion(vault, { version, isForced: options.forget === true }, by, waitsOn(terminal))
    if ('refused' in ended && ended.refused !== 'orphans') throw new Stop(REFUSED[ended.refused])
    if ('refused' in ended) {
      const orphans = await store.transaction(db => cardOrphans.list(db, version, SHOWN_MAX))
      for (const { tokenId, tokenScope, tokenType, bin, lastFour } of orphans)
        say(terminal, `${formatReuseToken(tokenId)}  ${tokenType}  ${bin}…${lastFour}  scope ${tokenScope}`)
      throw new Stop(
        `Up to ${SHOWN_MAX} tokens that are known under ${PURPOSE}/${version} alone are above. They keep no number, so nothing can be hashed again; each is found again under the key in use once its card was presented. With --forget their cards get second tokens when they are next presented; the tokens themselves go on working.`,
      )
    }
    await removeRetired(vault, version)
    const { orphans } = ended.done
    print(
      terminal,
      options,
      { purpose, version, forgotten: orphans },
      `Cards aren't looked for under ${PURPOSE}/${version} any more${orphans > 0 ? `; ${orphans} were forgotten` : ''}.`,
    )
  })
}

const REFUSED = {
  turning: 'The fingerprint key is being rotated; end that first (`key rotate fingerprint`).',
  in_use: 'This version is the key in use.',
  unknown: 'No card is looked for under this version.',
} as const
