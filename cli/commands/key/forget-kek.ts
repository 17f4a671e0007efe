// `tokenmill key forget kek`: removes a former key-encryption key from the installation. It doesn't destroy the
// key itself, which its keeper has in a file, a token or KMS.
import { type ForgetRefusal, forgetKek as forget, neededUntil } from '../../../src/acts/key/keks.ts'
import * as dataKeys from '../../../src/store/access/data-keys.ts'
import * as keks from '../../../src/store/access/keks.ts'
import type { Store } from '../../../src/store/pool.ts'
import type { JsonOption } from '../../command.ts'
import { Stop } from '../../exit.ts'
import { openVault, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { moment, print, type Terminal } from '../../terminal.ts'
import { claimed, secondOperatorOf } from './second-operator.ts'

type Options = JsonOption & OperatorOptions & { backupsAreGone?: boolean }

export function forgetKek(terminal: Terminal, kekId: string, options: Options): Promise<void> {
  return withSession(terminal, async session => {
    const vault = await openVault(session)
    const { store } = vault
    const { backupDays } = session.config
    const deed = { action: 'kek.forget', subject: kekId }
    const by = await byOf(deed, options, store, vault.ring)
    const areBackupsGone = options.backupsAreGone === true
    const second = secondOperatorOf(vault, claimed(deed, areBackupsGone), by)
    const forgetting = { kekId, backupDays, areBackupsGone }
    const ended = await forget(store, forgetting, by, second.use)
    if ('refused' in ended && ended.refused === 'unconfirmed') return second.ask(terminal, options)
    if ('refused' in ended) throw new Stop(`${kekId} ${await whyNot(store, ended.refused, forgetting)}.`)
    const text = `${kekId} is forgotten; take it out of TOKENMILL_KEK on every host, and destroy it and its copies.`
    print(terminal, options, { kek_id: kekId, forgotten: true }, text)
  })
}

async function whyNot(
  store: Store,
  refusal: ForgetRefusal,
  { kekId, backupDays }: { kekId: string; backupDays: number },
): Promise<string> {
  switch (refusal) {
    case 'current':
      return 'is the current key; turn to another one first with `tokenmill key rotate kek --to ID`'
    case 'wraps':
      return `still wraps ${await dataKeys.countUnder(store, kekId)} keys; finish the rotation with \`tokenmill key rotate kek --to ID\``
    case 'unconfirmed':
      return 'was not forgotten: no second operator has confirmed it'
    case 'unknown':
      return 'is no key-encryption key of this installation, or was forgotten before'
    case 'backups': {
      const kek = (await keks.list(store)).find(known => known.kekId === kekId)
      const until = kek ? moment(neededUntil(kek, backupDays)) : 'later'
      return `opens backups that may be kept until ${until} (TOKENMILL_BACKUP_DAYS); if none is left, say so with --backups-are-gone`
    }
  }
}
