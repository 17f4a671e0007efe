// Commands that wait for answers, as processes: they end if no answer can come.
import { readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as clients from '../../src/store/access/clients.ts'
import { describeEngines } from '../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'
import { startCommand } from '../support/process.ts'
import { testPan } from '../support/test-pan.ts'
import { ended, lifecycle, senderEnv } from './waiting.ts'

describeEngines('a command that waits for answers', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
  })
  afterAll(() => installation?.close())

  const command = (words: string[]) => startCommand(words, { env: senderEnv(engine, installation), group: true })
  const inFolder = (name: string) => join(installation.dataDir, name)

  async function write(name: string, lines: readonly string[]): Promise<string> {
    await writeFile(inFolder(name), lines.map(line => `${line}\n`).join(''))
    return inFolder(name)
  }
  const cards = (name: string, rows: number) =>
    write(name, ['card_number,expiry', ...Array.from({ length: rows }, (_, i) => `${testPan(i)},12/30`)])
  const jobs = (name: string, lines: number) =>
    write(
      name,
      Array.from({ length: lines }, () => JSON.stringify(lifecycle)),
    )
  const sale = [
    '7d1f2b80-4c1e-4a53-9b0c-3e5f6a7b8c01',
    ...[ENTITY, 'SALE', 'EUR', '25.00', '0.30', '0.10', '2026-11-20T10:15:00Z', '2026-11-20'],
  ].join()
  const ledger = (name: string) =>
    write(name, ['transaction_uid,entity_uid,type,currency,amount,fee,commission,created_at,clearing_date', sale])

  describe('with workers', () => {
    beforeAll(async () => {
      await installation.openWorkers()
    })

    it('ends with 78 where its client is unknown or revoked', async () => {
      const { clientFile, credentials } = await installation.addClient('revoked')
      await clients.revoke(installation.vault.store, credentials.signingKey.clientId)
      const strange = await strangeClient(installation)
      const children = [
        command(['submit', await jobs('a.ndjson', 3), '--client', clientFile]),
        command(['submit', await jobs('b.ndjson', 3), '--client', strange]),
        command(['migrate', await cards('c.csv', 3), '--client', clientFile]),
        command(['ingest', 'transactions', await ledger('d.csv'), '--client', clientFile]),
      ]
      for (const child of children) {
        expect(await ended(child), child.stderr()).toEqual({ code: 78, signal: null })
        expect(child.stderr()).toMatch(/takes nothing from client|does not know/)
      }
    })

    it('ends with 78 where its client is revoked in the midst of it', async () => {
      const { clientFile, credentials } = await installation.addClient('going')
      const child = command(['submit', await jobs('e.ndjson', 40_000), '--client', clientFile])
      await child.line(/"code":404/)
      await clients.revoke(installation.vault.store, credentials.signingKey.clientId)
      expect(await ended(child), child.stderr().slice(-1_000)).toEqual({ code: 78, signal: null })
      expect(child.stderr()).toContain(`takes nothing from client ${credentials.signingKey.clientId}`)
    })
  })
})

/** Writes the file of a client that this installation doesn't know; everything else in it is right. */
async function strangeClient({ clientFile }: Installation): Promise<string> {
  const path = join(dirname(clientFile), 'strange.json')
  const file = JSON.parse(await readFile(clientFile, 'utf8')) as { client_id: string }
  await writeFile(path, JSON.stringify({ ...file, client_id: `c${'0'.repeat(25)}` }))
  return path
}
