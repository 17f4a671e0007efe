// A pack of a migration by an older release: its manifest is readable, and the pack says what that release didn't
// record.
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { pdfWords } from '../../report/pdf-words.ts'
import { runCommand } from '../../support/command.ts'

const RELEASE = fileURLToPath(new URL('../../cli/release-0-3', import.meta.url))

let folder: string
const path = (name: string) => join(folder, name)
const tokenmill = (args: string[]) =>
  runCommand(args, { env: { TOKENMILL_DATA_DIR: folder, DATABASE_URL: undefined, REDIS_URL: undefined }, cwd: folder })
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tokenmill-older-pack-'))
  await cp(RELEASE, folder, { recursive: true })
})
afterAll(() => rm(folder, { recursive: true, force: true }))

it('a migration of release 0.3 is packed without a database, and what it did not record is told', async () => {
  const client = ['--client', 'shop/client.json']
  const made = await tokenmill(['manifest', 'pack', 'cards.csv', '--no-total', ...client])
  expect(made.stderr).toBe('')
  expect(made).toMatchObject({ code: 3, stdout: expect.stringContaining('1: 0 decided, 1 open') })
  const found = JSON.parse(await readFile(path('cards.csv.pack.json'), 'utf8'))
  expect(found.counts).toMatchObject({ CREATED: 6, DUPLICATE: 1, REJECTED: 1, SKIPPED: 0 })
  for (const member of ['repairs', 'references', 'total', 'migration']) expect(found).not.toHaveProperty(member)
  for (const member of ['command', 'operator', 'pgp_keys']) expect(found.batches[0].manifest).not.toHaveProperty(member)
  const words = pdfWords(await readFile(path('cards.csv.pack.pdf'))).split('\n')
  expect(words.filter(word => word === 'not recorded')).toHaveLength(3)
  expect(words).toContain('Repairs: not recorded.')
  const verified = await tokenmill(['manifest', 'verify', 'cards.csv.pack.json', ...client])
  expect(verified.code, verified.stdout).toBe(0)
  expect(verified.stdout).toContain('holds   counts and exceptions of the results, counted anew')
})

it('whoever has the client’s public key alone can verify it', async () => {
  const { d: _, ...jwk } = JSON.parse(await readFile(path('shop/signing-key.jwk'), 'utf8'))
  await writeFile(path('public.jwk'), JSON.stringify(jwk))
  const verified = await tokenmill(['manifest', 'verify', 'cards.csv.pack.json', '--key', 'public.jwk'])
  expect(verified.code, verified.stderr).toBe(0)
})
