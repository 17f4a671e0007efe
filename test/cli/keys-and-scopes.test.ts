import { generateKeyPairSync } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Secret } from '../../src/secret.ts'
import { openCaptureKey } from '../../src/vault/capture/capture-key.ts'
import { openCard } from '../../src/vault/capture/open-card.ts'
import { fileKeyProvider } from '../../src/vault/kek/file.ts'
import { keksOf } from '../../src/vault/kek/provider.ts'
import { openPrivateHalves } from '../../src/vault/private-half.ts'
import { openKeyRing, type WrappedKey } from '../../src/vault/ring/key-ring.ts'
import { type Bench, openBench } from './command-bench.ts'

const ENTITY = '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
const CARD = { cardNumber: '4111111111111111', expiryMonth: 12, expiryYear: 2031, cvv: '123' }

let bench: Bench
beforeAll(async () => {
  bench = await openBench()
  await bench.cli(['schema', 'upgrade', '--make-kek', join(bench.dataDir, 'kek')])
})
afterAll(() => bench.close())

const audited = () => bench.rows<{ action: string; subject: string }>('select action, subject from tokenmill.audit')

/** Decrypts as a worker does. */
async function decrypt(encrypted: string, alias: string): Promise<Record<string, unknown>> {
  const [row] = await bench.rows<{ type: 'jwe-rsa' | 'jwe-ec' | 'pgp'; private: Buffer; version: number }>(
    'select type, wrapped_private as private, private_version as version from tokenmill.capture_key where alias = $1',
    { values: [alias] },
  )
  if (!row) throw new Error('no such key')
  const keks = keksOf(await fileKeyProvider(join(bench.dataDir, 'kek')))
  const keys = await bench.rows<WrappedKey>(
    'select purpose, version, kek_id as "kekId", wrapped, state from tokenmill.data_key',
  )
  const halves = openPrivateHalves(await openKeyRing(keks, keys))
  const half = { wrappedPrivate: row.private, privateVersion: row.version }
  const key = await openCaptureKey({ alias, type: row.type, ...half }, halves)
  const opened = await openCard(encrypted, key)
  if (!(opened instanceof Secret)) throw new Error(opened.reason)
  return JSON.parse(opened.reveal()) as Record<string, unknown>
}

describe('scope', () => {
  it('refuses choices that there are not', async () => {
    for (const more of [['--bin-digits', '7'], ['--requestor', 'BANK'], ['--entity', 'x'], []]) {
      const entity = more.length === 0 ? [] : ['--entity', ENTITY]
      expect((await bench.cli(['scope', 'add', ...entity, ...more])).status).toBe(64)
    }
  })

  it('is made, printed, listed and audited', async () => {
    const words = ['scope', 'add', '--entity', ENTITY.toUpperCase(), '--par', '--requestor', 'PSP', '--bin-digits', '6']
    const { status, json } = await bench.cli([...words, '--json'])
    expect(status).toBe(0)
    const made = json<{ token_scope: string }>()
    expect(made).toMatchObject({ entity_id: ENTITY, par: true, network_tokens: false, requestor: 'PSP', bin_digits: 6 })
    const listed = await bench.cli(['scope', 'list', '--entity', ENTITY, '--json'])
    expect(listed.json<unknown[]>()).toEqual([{ ...made, created_at: expect.any(String) }])
    expect((await bench.cli(['scope', 'list'])).stdout).toContain(made.token_scope)
    expect(await audited()).toContainEqual({ action: 'scope.add', subject: made.token_scope })
  })
})

describe('capture-key', () => {
  it('prints the public half alone, of each type', async () => {
    const rsa = await bench.cli(['capture-key', 'add', 'k-rsa', '--entity', ENTITY])
    expect(JSON.parse(rsa.stdout)).toMatchObject({ kty: 'RSA', kid: 'k-rsa', alg: 'RSA-OAEP-256' })
    const ec = await bench.cli(['capture-key', 'add', 'k-ec', '--entity', ENTITY, '--type', 'jwe-ec', '--json'])
    expect(JSON.parse(ec.json<{ public_key: string }>().public_key)).not.toHaveProperty('d')
    const pgp = await bench.cli(['capture-key', 'add', 'k-pgp', '--entity', ENTITY, '--type', 'pgp'])
    expect(pgp.stdout).toMatch(/^-----BEGIN PGP PUBLIC KEY BLOCK-----/)
    expect(await audited()).toContainEqual({ action: 'capture-key.add', subject: 'k-pgp' })
  })

  it('never gives an alias twice', async () => {
    const { status, stderr } = await bench.cli(['capture-key', 'add', 'k-rsa', '--entity', ENTITY])
    expect({ status, stderr }).toMatchObject({ status: 1, stderr: expect.stringContaining('is or was in use') })
  })

  it('refuses a file that holds no private key, without repeating it', async () => {
    const file = join(bench.dataDir, 'no.pem')
    await writeFile(file, 'hunter2')
    const { status, stderr } = await bench.cli(['capture-key', 'add', 'k', '--entity', ENTITY, '--import', file])
    expect(status).toBe(64)
    expect(stderr).not.toContain('hunter2')
  })

  it('imports a key that was made elsewhere', async () => {
    const file = join(bench.dataDir, 'key.pem')
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    await writeFile(file, privateKey.export({ format: 'pem', type: 'pkcs8' }))
    const words = ['capture-key', 'add', 'k-imported', '--entity', ENTITY, '--import', file]
    expect((await bench.cli([...words, '--type', 'pgp'])).status).toBe(64)
    expect((await bench.cli(words)).status).toBe(0)
  })

  it('retires once', async () => {
    expect((await bench.cli(['capture-key', 'retire', 'k-imported'])).status).toBe(0)
    expect((await bench.cli(['capture-key', 'retire', 'k-imported'])).stderr).toContain('was already retired at')
    expect((await bench.cli(['capture-key', 'retire', 'unknown'])).stderr).toContain('no such capture key')
  })
})

describe('encrypt-card', () => {
  const encrypt = (alias: string, ...more: string[]) =>
    bench.cli(['encrypt-card', '--alias', alias, ...more], { stdin: JSON.stringify(CARD) })

  it('makes what a worker opens, with captureTime and without the cvv', async () => {
    for (const alias of ['k-rsa', 'k-ec', 'k-pgp']) {
      const { status, stdout } = await encrypt(alias)
      expect(status).toBe(0)
      const { captureTime, ...card } = await decrypt(stdout.trim(), alias)
      expect(card).toEqual({ cardNumber: CARD.cardNumber, expiryMonth: 12, expiryYear: 2031 })
      expect(Math.abs(Date.parse(String(captureTime)) - Date.now())).toBeLessThan(60_000)
    }
  })

  it('keeps the cvv where that is asked for', async () => {
    const { json } = await encrypt('k-rsa', '--with-cvv', '--json')
    const { encrypted_card: encrypted } = json<{ encrypted_card: string }>()
    expect(await decrypt(encrypted, 'k-rsa')).toMatchObject({ cvv: '123' })
  })

  it('refuses an unknown or retired key, and input that is no JSON, which it does not repeat', async () => {
    expect((await encrypt('unknown')).stderr).toContain('no such capture key')
    expect((await encrypt('k-imported')).stderr).toContain('is retired')
    const { status, stderr } = await bench.cli(['encrypt-card', '--alias', 'k-rsa'], { stdin: '4111111111111111,' })
    expect(status).toBe(64)
    expect(stderr).not.toContain('4111')
  })

  it("needs no store where the client's file has the key", async () => {
    const words = ['client', 'add', 'shop', '--entity', ENTITY, '--roles', 'TOKEN_WRITE']
    await bench.cli(words)
    const file = join(bench.dataDir, 'clients', 'shop', 'client.json')
    const producer = { DATABASE_URL: undefined, REDIS_URL: 'redis://127.0.0.1:1' }
    const run = (alias: string) =>
      bench.cli(['encrypt-card', '--alias', alias, '--client', file], { stdin: JSON.stringify(CARD), env: producer })
    const { status, stdout } = await run('k-pgp')
    expect(status).toBe(0)
    expect(await decrypt(stdout.trim(), 'k-pgp')).toMatchObject({ cardNumber: CARD.cardNumber })
    expect(await run('elsewhere')).toMatchObject({ status: 1 })
  })
})
