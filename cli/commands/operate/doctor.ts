// `tokenmill doctor`: finds settings that will cause trouble. It exits with 0 if it finds none, else with 1. What a
// server doesn't report is shown as unknown and doesn't change the exit status.
import { join } from 'node:path'
import { examine } from '../../../producers/operate/doctor.ts'
import { readRedisInfo } from '../../../src/queue/redis-info.ts'
import type { JsonOption } from '../../command.ts'
import { Stop } from '../../exit.ts'
import { devClientPath } from '../../open/dev-client.ts'
import { GRANT_LISTS } from '../../open/grant-lists.ts'
import { kekFiles } from '../../open/kek.ts'
import { print, type Terminal } from '../../terminal.ts'
import { checksText, type Looking, withLook } from './look.ts'

export function showDoctor(terminal: Terminal, options: JsonOption): Promise<void> {
  return withLook(terminal, async looking => {
    const checks = await examine(await sourcesOf(looking))
    const hurting = checks.filter(({ state }) => state === 'warning' || state === 'critical')
    print(terminal, options, { hurts: hurting.length > 0, checks }, checksText(checks))
    if (hurting.length > 0) throw new Stop(`these will hurt: ${hurting.map(({ name }) => name).join(', ')}`)
  })
}

async function sourcesOf({ session, store, queues, embedded, openKeys }: Looking) {
  const { config } = session
  const { redisUrls, dataDir, tls } = config
  const keks = await kekFiles(config, embedded).catch(() => [])
  const hasKek = keks.length > 0 || config.kek !== undefined
  return {
    store,
    queues,
    embedded,
    auditUrl: config.auditUrl,
    grants: GRANT_LISTS,
    ring: hasKek ? async () => (await openKeys()).ring : undefined,
    lives: hasKek ? async () => (await openKeys()).lives : undefined,
    redis: redisUrls && (() => readRedisInfo(redisUrls)),
    keyFiles: [
      ...keks,
      ...(tls ? [tls.keyFile] : []),
      join(dataDir, 'system'),
      join(dataDir, 'clients'),
      devClientPath(config),
    ],
  }
}
