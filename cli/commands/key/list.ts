// `tokenmill key list`: the data keys with their states, ages and seals. It opens no key.
import { systemClock } from '../../../src/clock.ts'
import * as dataKeys from '../../../src/store/access/data-keys.ts'
import { replaceBy } from '../../../src/vault/ring/cryptoperiod.ts'
import { PURPOSES } from '../../../src/vault/ring/key-ring.ts'
import type { JsonOption } from '../../command.ts'
import { openCommandStore, withSession } from '../../open/open.ts'
import { print, type Terminal, table } from '../../terminal.ts'
import { sayOldClients } from './rotate-data-key.ts'

const DAY_MS = 86_400_000

export function list(terminal: Terminal, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const now = systemClock()
    const shown = (await dataKeys.list(store)).map(key => shownKey(key, now))
    const headings = ['key', 'state', 'kek', 'age', 'seals reserved', 'replace by']
    const rows = shown.map(key => [
      `${key.purpose}/${key.version}`,
      key.compromised_at === null ? key.state : `${key.state}, compromised`,
      key.kek_id,
      `${key.age_days} d`,
      String(key.seals_reserved),
      key.replace_by?.slice(0, 10) ?? '-',
    ])
    print(terminal, options, shown, table(headings, rows))
    await sayOldClients(terminal, store)
  })
}

function shownKey(key: dataKeys.DataKeyLife, now: number) {
  const purpose = PURPOSES.find(known => known === key.purpose)
  const isDue = purpose !== undefined && key.state === 'ACTIVE' && key.activatedAt !== null
  const time = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())
  return {
    purpose: key.purpose,
    version: key.version,
    state: key.state,
    kek_id: key.kekId,
    age_days: Math.floor((now - key.createdAt) / DAY_MS),
    seals_reserved: key.seals,
    created_at: time(key.createdAt),
    activated_at: time(key.activatedAt),
    retired_at: time(key.retiredAt),
    compromised_at: time(key.compromisedAt),
    replace_by: isDue && key.activatedAt !== null ? time(replaceBy(purpose, key.activatedAt)) : null,
  }
}
