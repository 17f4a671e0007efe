import { chmod, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ClientFile, readCredentials } from '../../producers/client/client-file.ts'
import { attach, discard, type Embedded } from '../../src/embedded/server.ts'
import { cli } from './command-bench.ts'

describe('the embedded default', () => {
  let dataDir: string
  let held: Embedded
  const command = (words: string[], more: NodeJS.ProcessEnv = {}) =>
    cli(words, { env: { TOKENMILL_DATA_DIR: dataDir, ...more } })
  const devClient = async () => ClientFile.parse(JSON.parse(await readFile(join(dataDir, 'dev-client.json'), 'utf8')))

  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'tokenmill-embedded-'))
    await chmod(dataDir, 0o711)
    // The suite stays attached, so that no command has to start and stop the server.
    held = await attach(dataDir)
  })
  afterAll(async () => {
    await held.release()
    discard(dataDir)
    await rm(dataDir, { recursive: true, force: true })
  })

  it('needs no step before the first command', async () => {
    const { status, json } = await command(['client', 'list', '--json'])
    expect(status).toBe(0)
    expect(json<{ client_id: string }[]>().map(client => client.client_id)).toEqual([
      'gateway',
      'scheduler',
      'worker',
      'console',
    ])
  })

  it('makes a key-encryption key and a ready-made client, once', async () => {
    const { status, json } = await command(['schema', 'upgrade', '--json'])
    expect(status).toBe(0)
    expect(json()).toMatchObject({ kek_file: join(dataDir, 'kek'), files: [join(dataDir, 'dev-client.json')] })
    expect((await stat(join(dataDir, 'kek'))).mode & 0o777).toBe(0o600)
    expect((await stat(join(dataDir, 'dev-client.json'))).mode & 0o777).toBe(0o600)
    const file = await devClient()
    expect(file).toMatchObject({
      base_url: 'http://127.0.0.1:8080/oidc',
      audience: 'tokenmill',
      api_key: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      token_scope: expect.any(String),
      capture_keys: { jwe: expect.anything(), pgp: expect.anything() },
    })
    expect((await readCredentials(join(dataDir, 'dev-client.json'))).tokenScope).toBe(file.token_scope)
    expect((await command(['schema', 'upgrade'])).stdout).toBe('up to date\n')
    expect(await devClient()).toEqual(file)
  })

  it('brings the file of the ready-made client up to date: address, and capture keys that were retired', async () => {
    const before = await devClient()
    const alias = before.capture_keys.jwe?.alias ?? ''
    await command(['capture-key', 'add', 'jwe-new', '--entity', before.entity_id, '--type', 'jwe-ec'])
    expect(await command(['capture-key', 'retire', alias])).toMatchObject({ status: 0, stderr: '' })
    await command(['schema', 'upgrade'], { TOKENMILL_HTTP_PORT: '9999' })
    const after = await devClient()
    expect(after.base_url).toBe('http://127.0.0.1:9999/oidc')
    expect(after.capture_keys.jwe?.alias).toBe('jwe-new')
    expect(after).toMatchObject({ client_id: before.client_id, api_key: before.api_key })
  })

  it('stops with 78 where the key-encryption key is gone, and makes no other in its place', async () => {
    const kek = join(dataDir, 'kek')
    await rename(kek, `${kek}.away`)
    const { status, stderr } = await command(['client', 'list'])
    expect(status).toBe(78)
    expect(stderr).toContain('restore it')
    await expect(stat(kek)).rejects.toThrow('ENOENT')
    await rename(`${kek}.away`, kek)
  })

  it('is not used by a pure producer, which is told so', async () => {
    const { status, stderr } = await command(['client', 'list'], { REDIS_URL: 'redis://127.0.0.1:1' })
    expect(status).toBe(78)
    expect(stderr).toMatch(/^tokenmill: DATABASE_URL: only REDIS_URL is set/)
  })
})
