// A capture key whose private half was destroyed: its row names no key of the vault any more, so the versions under which it
// was sealed and coded can be destroyed, too.

import { afterAll, beforeAll, expect, it } from 'vitest'
import { openRingNow } from '../../../cli/open/key-ring.ts'
import { retireKey } from '../../../src/acts/capture-keys.ts'
import { openLog } from '../../../src/log.ts'
import { openStore } from '../../../src/store/pool.ts'
import * as retention from '../../../src/store/retention.ts'
import { openPrivateHalves } from '../../../src/vault/private-half.ts'
import { workReseal } from '../../../workers/reseal/reseal.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { asWorker } from '../../support/workers.ts'
import { cli } from '../command-bench.ts'
import { openTwoOperators } from './two-operators.ts'

const DAY_MS = 86_400_000
const PACE = {
  rowsPerSecondMax: 1_000_000,
  replicaLagMsMax: 10_000,
  workMsMax: 60_000,
  walBytesPerSecondMax: 1e12,
  writersMs: 0,
}
const NAMES_NO_KEY = { wrapped_private: null, private_version: null, mac: null, mac_version: null }

describeStore('a destroyed capture key', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
  })
  afterAll(() => installation?.close())

  const run = (...words: string[]) => cli(['key', ...words], { env: installation.env })
  const query = async <Row>(text: string) => (await installation.vault.store.query<Row & object>({ text })).rows
  const destroyed = () =>
    query(`select wrapped_private, private_version, mac, mac_version from tokenmill.capture_key
where state = 'DESTROYED'`)

  /** Destroys the private half as housekeeping does, with the database user of workers. */
  async function sweep(): Promise<number> {
    const store = openStore(asWorker(engine.databaseUrl), { log: openLog('silent'), connectionsMax: 1 })
    try {
      return (await retention.sweep(store, 90, Date.now())).captureKeys
    } finally {
      await store.close()
    }
  }

  it('holds up neither the end of the key that sealed it nor of the key that coded its row', async () => {
    const operators = await openTwoOperators(installation)
    const { store, ring, keks } = installation.vault
    const { alias = '' } = installation.credentials.captureKeys.jwe ?? {}
    const until = Date.now() - 9 * DAY_MS
    const by = { actor: { kind: 'machine', id: 'test@host' }, reason: undefined } as const
    expect(await retireKey(store, ring, { alias, number: 1, until }, by, Date.now())).toHaveProperty('done')
    expect(await sweep()).toBe(1)
    for (const purpose of ['private-half', 'grant']) expect(await run('rotate', purpose)).toMatchObject({ status: 0 })
    expect(await run('reseal', 'private-half')).toMatchObject({ status: 0 })
    const turned = await openRingNow(keks, store, installation.vault.lives)
    const halves = openPrivateHalves(turned)
    await workReseal({ store, ring: turned, halves, log: openLog('silent') }, PACE)
    await query(`update tokenmill.reseal set clean_at = clean_at - interval '25 hours'`)
    await query(`update tokenmill.data_key set retired_at = now() - interval '25 hours' where state = 'DECRYPT_ONLY'`)
    for (const purpose of ['private-half', 'grant']) {
      const words = ['destroy', purpose, '1', '--backups-are-gone', '--yes']
      expect((await run(...words, ...operators.signed)).stderr).not.toMatch('Rows still name')
      await operators.confirm(['key', ...words], installation.env)
      expect(await run(...words, ...operators.signed)).toMatchObject({ status: 0 })
    }
    expect(await destroyed()).toEqual([NAMES_NO_KEY])
  })
})
