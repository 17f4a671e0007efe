// A re-encryption slows down for jobs on cards: it measures a real store, and reads the durations that workers report.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { beginReseal } from '../../../src/acts/key/reseal.ts'
import * as processes from '../../../src/store/access/processes.ts'
import { workReseal } from '../../../workers/reseal/reseal.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { insertTokens, openAll } from './tokens.ts'
import { turnKey } from './turn-key.ts'

const TOKENS = 1_000
const BY = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const
const PACE = {
  rowsPerSecondMax: 1_000_000,
  replicaLagMsMax: 10_000,
  workMsMax: 250,
  walBytesPerSecondMax: 1e12,
  writersMs: 0,
}

describeStore('a re-encryption beside slow jobs', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await insertTokens(installation.vault.store, installation.vault.ring, installation.scope, TOKENS)
  })
  afterAll(() => installation?.close())

  it('goes slower, says why, and ends', async () => {
    const { vault, session } = installation
    const turned = await turnKey(vault, 'seal')
    const busy = { host: 'busy', version: '1.0.0', kinds: ['token-create'], features: [], connections: 1 }
    const worker = { ...busy, role: 'interactive', keys: turned.ring.names() } as const
    await processes.see(vault.store, { ...worker, processId: randomUUID(), workMs: 251 })
    await beginReseal(vault.store, 'seal', BY)
    const said: unknown[] = []
    const log = Object.assign(Object.create(session.log), {
      info: (about: object, message: string) => said.push({ ...about, message }),
    })
    expect(await workReseal({ ...vault, ...turned, log }, PACE)).toBe('seal')
    expect(said).toContainEqual({
      purpose: 'seal',
      reasons: ['jobs on cards are slow'],
      message: 'a re-encryption goes slower',
    })
    expect(await openAll(vault.store, turned.ring)).toEqual({ [turned.version]: TOKENS })
  })
})
