// make-secrets.sh, run as an operator runs it.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'

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

  it('makes every file that docker-compose.yml mounts, with the passwords that the last release had in .env', () => {
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
})
