// make-secrets.sh, run as an operator runs it.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { Client } from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { findRedis, startRedis } from '../support/redis.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

describe('make-secrets.sh', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tokenmill-secrets-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const run = () => execFileSync('sh', [join(root, 'ops/compose/make-secrets.sh')], { cwd: folder, env: {} })
  const made = () =>
    Object.fromEntries(
      readdirSync(join(folder, 'secrets')).map(name => [name, readFileSync(join(folder, 'secrets', name), 'utf8')]),
    )

  it('makes every file that docker-compose.yml mounts, with the passwords that are in .env', () => {
    writeFileSync(join(folder, 'docker-compose.yml'), '')
    writeFileSync(join(folder, '.env'), 'POSTGRES_PASSWORD=of1postgres\nREDIS_PASSWORD="of2redis"\n')
    run()
    expect(made()).toEqual({
      'postgres-password': 'of1postgres',
      'redis.conf': 'requirepass of2redis\n',
      'store.env': 'DATABASE_URL=postgres://tokenmill:of1postgres@postgres:5432/tokenmill\n',
      'queue.env': 'REDIS_URL=redis://:of2redis@redis:6379\n',
      'grafana-password': expect.stringMatching(/^[0-9a-f]{48}$/),
    })
    const mounted = [...read('docker-compose.yml').matchAll(/file: \.\/secrets\/(\S+)/g)].map(([, name = '']) => name)
    expect(Object.keys(made()).sort()).toEqual(mounted.sort())
    expect(statSync(join(folder, 'secrets')).mode & 0o777).toBe(0o700)
  })

  it('leaves what is there, and makes what is missing of it anew', () => {
    const before = made()
    rmSync(join(folder, '.env'))
    rmSync(join(folder, 'secrets/store.env'))
    run()
    expect(made()).toEqual(before)
  })

  describe('with a password of any characters', () => {
    const HARD = [
      `a/b?c#d@e:f%g&h+i=j k`,
      `it's "so" \\ $HOME \`id\``,
      'pä$$wörd-€-𝕡',
      '"quoted"',
      "'single'",
      '%20',
      '\\x41',
      '-n',
      '{"a":1}',
    ]
    let servers = 0

    it.each(HARD)('%s writes URLs and a redis.conf that mean just it, and keeps it', async password => {
      const own = mkdtempSync(join(folder, 'hard-'))
      writeFileSync(join(own, 'docker-compose.yml'), '')
      const env = { POSTGRES_PASSWORD: password, REDIS_PASSWORD: password }
      const make = (env: NodeJS.ProcessEnv) =>
        execFileSync('sh', [join(root, 'ops/compose/make-secrets.sh')], { cwd: own, env })
      const said = (name: string) => readFileSync(join(own, 'secrets', name), 'utf8')
      make(env)
      expect(said('postgres-password')).toBe(password)
      const [, database = ''] = /^DATABASE_URL=(.*)\n$/.exec(said('store.env')) ?? []
      expect(new Client({ connectionString: database }).password).toBe(password)
      const [, url = ''] = /^REDIS_URL=(.*)\n$/.exec(said('queue.env')) ?? []
      const told = new Redis(url, { lazyConnect: true })
      expect(told.options.password).toBe(password)
      told.disconnect()
      const before = [said('store.env'), said('queue.env')]
      for (const name of ['store.env', 'queue.env']) rmSync(join(own, 'secrets', name))
      make({})
      expect([said('store.env'), said('queue.env')]).toEqual(before)
      // Redis itself reads the file.
      if (servers++ > 2 || !findRedis()) return
      const server = await startRedis({ config: join(own, 'secrets/redis.conf') })
      const redis = new Redis({ port: server.port, password, maxRetriesPerRequest: 1 })
      expect(await redis.ping()).toBe('PONG')
      redis.disconnect()
      await server.stop()
    })

    it('is read from a file .env as Compose reads it', () => {
      const own = mkdtempSync(join(folder, 'env-'))
      writeFileSync(join(own, 'docker-compose.yml'), '')
      writeFileSync(join(own, '.env'), `POSTGRES_PASSWORD='it"s \\ $raw'\r\nREDIS_PASSWORD="say \\"so\\" \\$1"\n`)
      execFileSync('sh', [join(root, 'ops/compose/make-secrets.sh')], { cwd: own, env: {} })
      expect(readFileSync(join(own, 'secrets/postgres-password'), 'utf8')).toBe('it"s \\ $raw')
      expect(readFileSync(join(own, 'secrets/queue.env'), 'utf8')).toBe(
        `REDIS_URL=redis://:${[...Buffer.from('say "so" $1')].map(byte => `%${byte.toString(16).padStart(2, '0')}`).join('')}@redis:6379\n`,
      )
    })
  })
})
