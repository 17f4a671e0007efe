// `tokenmill key list kek`: the key-encryption keys (KEKs) of the installation, what each wraps, until when backups need
// it, and who has it.
import { neededUntil } from '../../../src/acts/key/keks.ts'
import { BEAT } from '../../../src/store/access/beat.ts'
import * as dataKeys from '../../../src/store/access/data-keys.ts'
import * as keks from '../../../src/store/access/keks.ts'
import * as processes from '../../../src/store/access/processes.ts'
import type { JsonOption } from '../../command.ts'
import { openVault, withSession } from '../../open/open.ts'
import { moment, print, type Terminal, table } from '../../terminal.ts'

export function listKeks(terminal: Terminal, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const { store, keks: host } = await openVault(session)
    const live = await processes.listVault(store, BEAT.deadMs)
    const shown = await Promise.all(
      (await keks.list(store)).map(async kek => ({
        kek_id: kek.kekId,
        state: kek.state,
        created_at: moment(kek.createdAt),
        retired_at: kek.retiredAt === null ? null : moment(kek.retiredAt),
        keys_wrapped: await dataKeys.countUnder(store, kek.kekId),
        backups_need_it_until: kek.retiredAt === null ? null : moment(neededUntil(kek, session.config.backupDays)),
        on_this_host: host.all().some(({ id }) => id === kek.kekId),
        processes_with_it: live.filter(({ keys }) => keys.includes(kek.kekId)).length,
        processes: live.length,
      })),
    )
    const rows = shown.map(kek => [
      kek.kek_id,
      kek.state,
      String(kek.keys_wrapped),
      kek.backups_need_it_until ?? '-',
      kek.on_this_host ? 'yes' : 'no',
      `${kek.processes_with_it} of ${kek.processes}`,
    ])
    const headings = ['KEK', 'STATE', 'WRAPS', 'BACKUPS NEED IT UNTIL', 'HERE', 'PROCESSES WITH IT']
    print(terminal, options, shown, table(headings, rows))
  })
}
