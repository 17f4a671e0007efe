// The simulated KMS as a process: what a key has wrapped opens again after a restart of it.
import { afterEach, expect, it } from 'vitest'
import { openKms } from '../../src/vault/kms/open.ts'
import { type Child, startCommand } from '../support/process.ts'

let running: Child | undefined
const before = { ...process.env }
afterEach(async () => {
  await running?.kill9()
  for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name]
  Object.assign(process.env, before)
})

async function start(): Promise<Record<string, string>> {
  running = startCommand(['simulate', 'kms', '--json', '--port', '0'])
  const [printed] = await running.line(/\{[^}]*\}/)
  return JSON.parse(printed)
}

it('prints the settings to start tokenmill with, keeps what its keys wrapped over a restart, and ends at Ctrl-C', async () => {
  const { TOKENMILL_KEK: uri = '', ...env } = await start()
  Object.assign(process.env, env)
  const wrapped = await (await openKms(uri)).wrap(Buffer.from('a key'), 'p')
  running?.signal('SIGINT')
  expect(await running?.exit).toMatchObject({ code: 0 })
  const again = await start()
  Object.assign(process.env, { AWS_ENDPOINT_URL_KMS: again['AWS_ENDPOINT_URL_KMS'] })
  // Another limit makes a separate client, for the new endpoint.
  const kek = await openKms(again['TOKENMILL_KEK'] ?? '', { wholeMs: 14_000 })
  expect((await kek.unwrap(wrapped, 'p')).toString()).toBe('a key')
})
