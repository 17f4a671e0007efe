// Whether PostgreSQL keeps what it has confirmed.
import type { Db } from '../../../src/store/pool.ts'
import * as storeServer from '../../../src/store/server.ts'
import { unknown, type Verdict, warning, well } from '../check.ts'

const NAMES = ['fsync', 'full_page_writes', 'synchronous_commit'] as const
type Settings = ReadonlyMap<string, { value: string }>

export async function askDurability({ store }: { store(): Promise<Db> }): Promise<Verdict> {
  return judgeDurability(await storeServer.readSettings(await store(), [...NAMES]))
}

export function judgeDurability(settings: Settings): Verdict {
  const off = NAMES.filter(name => settings.get(name)?.value === 'off')
  if (off.length > 0)
    return warning(`${off.join(', ')} off: a crash loses or spoils tokens`, `set ${off.join(', ')} to on`)
  const missing = NAMES.filter(name => !settings.has(name))
  if (missing.length > 0) return unknown(`the server does not say ${missing.join(', ')}`)
  const commit = settings.get('synchronous_commit')?.value ?? ''
  // With `local` and `remote_write` a commit doesn't wait until a standby has it on its disk.
  if (commit !== 'on' && commit !== 'remote_apply')
    return warning(
      `synchronous_commit is ${commit}: a standby that takes over may lack tokens that were confirmed`,
      'set synchronous_commit to on',
    )
  return well(`fsync and full_page_writes are on, synchronous_commit is ${commit}`)
}
