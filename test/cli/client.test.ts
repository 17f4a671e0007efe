import { generateKeyPairSync } from 'node:crypto'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ClientFile, readCredentials } from '../../producers/client/client-file.ts'
import { type Bench, openBench } from './command-bench.ts'

const ENTITY = '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
const ROLES = 'TOKEN_WRITE,TOKEN_READ'

let bench: Bench
beforeAll(async () => {
  bench = await openBench()
  await bench.cli(['schema', 'upgrade', '--make-kek', join(bench.dataDir, 'kek')])
  await bench.cli(['scope', 'add', '--entity', ENTITY])
})
afterAll(() => bench.close())

const add = (name: string, ...more: string[]) =>
  bench.cli(['client', 'add', name, '--entity', ENTITY, '--roles', ROLES, ...more])
const audits = (subject: string) =>
  bench.rows<{ action: string }>('select action from tokenmill.audit where subject = $1 order by audit_id', {
    values: [subject],
  })

describe('client add', () => {
  it('refuses what it can not use with 64, in one line, before anything is opened', async () => {
    const wrong = [
      ['client', 'add', '../x', '--entity', ENTITY, '--roles', ROLES],
      ['client', 'add', 'shop', '--entity', 'not-a-uuid', '--roles', ROLES],
      ['client', 'add', 'shop', '--entity', ENTITY, '--roles', 'TOKEN_WRITE,KING'],
      ['client', 'add', 'shop', '--roles', ROLES],
      ['client', 'add'],
    ]
    for (const words of wrong) {
      const { status, stdout, stderr } = await bench.cli(words, { env: { DATABASE_URL: 'postgres://127.0.0.1:1/x' } })
      expect(status, words.join(' ')).toBe(64)
      expect(stdout).toBe('')
      expect(stderr).toMatch(/^tokenmill: .+\n/)
    }
  })

  it('refuses a public key that holds its private half, or is for no signature of ours', async () => {
    const file = join(bench.dataDir, 'wrong.jwk')
    const { privateKey } = generateKeyPairSync('ed25519')
    await writeFile(file, JSON.stringify(privateKey.export({ format: 'jwk' })))
    expect(await add('shop', '--public-key', file)).toMatchObject({ status: 64 })
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' })
    await writeFile(file, JSON.stringify(publicKey.export({ format: 'jwk' })))
    expect(await add('shop', '--public-key', file)).toMatchObject({ status: 64 })
    expect((await add('shop', '--public-key', join(bench.dataDir, 'none.jwk'))).stderr).toContain('does not exist')
  })

  it('prints what --client takes, whose keys are read and fit', async () => {
    const { status, stdout, json } = await add('shop-a', '--json')
    expect(status).toBe(0)
    const file = ClientFile.parse(json())
    expect(Object.keys(json()).slice(0, 3)).toEqual(['client_id', 'user_id', 'api_key'])
    expect(file.client_id).toMatch(/^c[a-z0-9]{25}$/)
    expect(file.entity_id).toBe(ENTITY)
    expect(file.token_scope).toMatch(/^[0-9a-f-]{36}$/)
    const path = join(bench.dataDir, 'printed.json')
    await writeFile(path, stdout)
    const credentials = await readCredentials(path)
    expect(credentials.signingKey).toMatchObject({ clientId: file.client_id, alg: 'EdDSA' })
    expect(credentials.captureKeys.jwe?.type).toBe('jwe-rsa')
    expect(credentials.captureKeys.pgp?.type).toBe('pgp')
    expect(credentials.installationKeys.size).toBe(1)
    expect((await audits(file.client_id)).map(({ action }) => action)).toEqual(['client.add'])
  })

  it('is shown, by whatever name the owner of the database gave it, as no terminal obeys it', async () => {
    const { client_id: id } = ClientFile.parse((await add('shop-hostile', '--json')).json())
    const rename = (name: string) =>
      bench.rows('update tokenmill.client set name = $2 where client_id = $1', { values: [id, name] })
    const name = 'shop\u001b[2J\nc0  shop\u2066\u0085'
    await rename(name)
    const text = (await bench.cli(['client', 'list'])).stdout
    const listed = await bench.cli(['client', 'list', '--json'])
    await rename('shop-hostile')
    expect(text).toMatch(
      new RegExp(String.raw`^${id} +shop\\u\{1b\}\[2J\\u\{a\}c0 {2}shop\\u\{2066\}\\u\{85\} +active `, 'm'),
    )
    for (const shown of [text, listed.stdout]) expect(shown).not.toMatch(/(?!\n)\p{C}/u)
    expect(listed.json()).toContainEqual(expect.objectContaining({ client_id: id, name }))
  })

  it('says what the client may name its work by, and of an older client afterwards', async () => {
    const numbers = ClientFile.parse((await add('shop-numbers', '--names', 'numeric', '--json')).json())
    const plain = ClientFile.parse((await add('shop-plain', '--json')).json())
    expect([numbers.names, plain.names]).toEqual(['numeric', undefined])
    const path = join(bench.dataDir, 'clients', 'shop-numbers', 'client.json')
    expect(await readCredentials(path)).toMatchObject({ names: 'numeric' })
    const rule = async () => {
      const listed = (await bench.cli(['client', 'list', '--json'])).json() as unknown as Record<string, unknown>[]
      return listed.filter(({ name }) => /^shop-(numbers|plain)$/.test(`${name}`)).map(({ names }) => names)
    }
    expect(await rule()).toEqual(['numeric', 'checked'])
    expect((await bench.cli(['client', 'list'])).stdout).toMatch(/shop-numbers +active .* numeric /)
    expect(await bench.cli(['client', 'names', 'shop-plain', 'numeric'])).toMatchObject({ status: 0 })
    expect(await bench.cli(['client', 'names', 'shop-plain', 'all'])).toMatchObject({ status: 64 })
    expect(await rule()).toEqual(['numeric', 'numeric'])
    expect((await audits(plain.client_id)).map(({ action }) => action)).toEqual(['client.add', 'client.names'])
    expect(await add('shop-x', '--names', 'all')).toMatchObject({ status: 64 })
  })

  it('writes files that only their owner reads, and the API key into none of them', async () => {
    const { json } = await add('shop-b', '--json')
    const { api_key: apiKey = '' } = ClientFile.parse(json())
    expect(apiKey).toMatch(/^[A-Za-z0-9_-]{43}$/)
    const dir = join(bench.dataDir, 'clients', 'shop-b')
    const names = await readdir(dir)
    expect(names.sort()).toEqual([
      'client.json',
      expect.stringMatching(/^jwe-.*\.jwk$/),
      expect.stringMatching(/^pgp-.*\.asc$/),
      'signing-key.jwk',
    ])
    for (const name of names) {
      expect((await stat(join(dir, name))).mode & 0o777).toBe(0o600)
      expect(await readFile(join(dir, name), 'utf8')).not.toContain(apiKey)
    }
    expect((await readCredentials(join(dir, 'client.json'))).entityId).toBe(ENTITY)
    const stored = await bench.rows<{ text: string }>('select json_agg(c)::text as text from tokenmill.client c')
    expect(stored[0]?.text).not.toContain(apiKey)
  })

  it('does not overwrite a key, and leaves no client behind when it stops for that', async () => {
    const before = await bench.rows('select client_id from tokenmill.client')
    const { status, stderr } = await add('shop-b')
    expect(status).toBe(1)
    expect(stderr).toContain('exists already')
    expect(await bench.rows('select client_id from tokenmill.client')).toEqual(before)
  })

  it('gives an entity its first capture keys once', async () => {
    const { json } = await bench.cli(['capture-key', 'list', '--entity', ENTITY, '--json'])
    expect(json<{ type: string }[]>().map(({ type }) => type)).toEqual(['jwe-rsa', 'pgp'])
  })

  it('takes the key that a client made itself, its algorithm with it', async () => {
    const path = join(bench.dataDir, 'rsa.jwk')
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    await writeFile(path, JSON.stringify({ ...publicKey.export({ format: 'jwk' }), alg: 'PS256' }))
    const { status, json, stderr } = await add('own-key', '--public-key', path, '--json')
    expect(status).toBe(0)
    expect(json()['signing_key_file']).toBeNull()
    expect(stderr).toContain('private JWK into signing_key_file')
    const made = await bench.cli(['client', 'key', 'add', 'own-key'])
    expect(made).toMatchObject({ status: 1, stdout: '' })
    expect(made.stderr).toContain('signs with PS256')
  })
})

describe('keys of a client', () => {
  it('are at most two active, also when added at once', async () => {
    const { client_id: id } = (await add('two-keys', '--json')).json<{ client_id: string }>()
    const added = await Promise.all(Array.from({ length: 4 }, () => bench.cli(['client', 'key', 'add', id, '--json'])))
    expect(added.map(({ status }) => status).sort()).toEqual([0, 1, 1, 1])
    const active = await bench.rows(`select kid from tokenmill.client_key where client_id = $1 and state = 'ACTIVE'`, {
      values: [id],
    })
    expect(active).toHaveLength(2)
  })

  it('retire until a moment, are revoked for good, and never come back', async () => {
    const { json } = await bench.cli(['client', 'key', 'list', 'two-keys', '--json'])
    const [first, second] = json<{ kid: string }[]>().map(({ kid }) => kid)
    const until = '2031-01-31T12:00:00.000Z'
    // One key id in 64 begins with a dash; behind `--` it isn't read as an option.
    const retire = (kid = '', at = until) =>
      bench.cli(['client', 'key', 'retire', '--until', at, '--json', '--', 'two-keys', kid])
    const retired = await retire(first)
    expect(retired.json()).toMatchObject({ kid: first, state: 'RETIRED', valid_until: until })
    expect(await bench.cli(['client', 'key', 'revoke', '--', 'two-keys', second ?? ''])).toMatchObject({ status: 0 })
    const again = await retire(second)
    expect(again).toMatchObject({ status: 1 })
    const keys = await bench.cli(['client', 'key', 'list', 'two-keys', '--json'])
    expect(keys.json<{ state: string }[]>().map(({ state }) => state)).toEqual(['RETIRED', 'REVOKED'])
    expect(await retire(first, 'soon')).toMatchObject({ status: 64 })
    expect(await bench.cli(['client', 'key', 'revoke', 'two-keys', 'unknown'])).toMatchObject({ status: 1 })
    // One thumbprint in 64 begins with a dash and looks like an option.
    const dashed = `-${'h'.repeat(42)}`
    const late = ['client', 'key', 'retire', 'two-keys', dashed, '--until', until]
    expect((await bench.cli(late)).stderr).toContain('This client has no key with this kid')
  })
})

describe('client revoke and api-key rotate', () => {
  it('rotate prints a new API key and changes the stored hash', async () => {
    const { client_id: id, api_key: old } = (await add('rotating', '--json')).json<{
      client_id: string
      api_key: string
    }>()
    const hash = () => bench.rows('select api_key_hash from tokenmill.client where client_id = $1', { values: [id] })
    const before = await hash()
    const { json } = await bench.cli(['client', 'api-key', 'rotate', 'rotating', '--json'])
    expect(json()['api_key']).not.toBe(old)
    expect(await hash()).not.toEqual(before)
    expect(await bench.cli(['client', 'api-key', 'rotate', 'worker'])).toMatchObject({ status: 1 })
  })

  it('a revoked client gets nothing any more', async () => {
    const { client_id: id } = (await add('leaving', '--json')).json<{ client_id: string }>()
    expect(await bench.cli(['client', 'revoke', id])).toMatchObject({ status: 0, stdout: `${id} is revoked\n` })
    for (const words of [
      ['client', 'revoke', id],
      ['client', 'key', 'add', id],
      ['client', 'api-key', 'rotate', id],
    ])
      expect((await bench.cli(words)).stderr).toMatch(/^tokenmill: This client was revoked at /)
    expect((await audits(id)).map(({ action }) => action)).toEqual(['client.add', 'client.revoke'])
    const listed = (await bench.cli(['client', 'list'])).stdout
    expect(listed).toMatch(new RegExp(`${id}\\s+leaving\\s+revoked`))
  })

  it('an unknown client is said to be unknown, an ambiguous name to be ambiguous', async () => {
    expect((await bench.cli(['client', 'revoke', 'nobody'])).stderr).toContain('There is no such client')
    await add('twin', '--out', join(bench.dataDir, 'one'))
    await add('twin', '--out', join(bench.dataDir, 'two'))
    expect((await bench.cli(['client', 'revoke', 'twin'])).stderr).toContain('give the client id')
  })
})
