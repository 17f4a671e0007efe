// Runs the lines of docs/two-hosts.md in two folders instead of two hosts: the first runs workers, the
// second serves HTTP and can't read cards. The last step downloads a report that the first host made.
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type OwnPostgres, startPostgres } from '../support/own-postgres.ts'
import { type Child, startShell } from '../support/process.ts'
import { findRedis, freePort, type RedisServer, startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const root = join(import.meta.dirname, '../..')

describe.skipIf(!findRedis())('docs/two-hosts.md', () => {
  const roles: Child[] = []
  let place: string
  let postgres: OwnPostgres
  let redis: RedisServer
  beforeAll(async () => {
    place = await mkdtemp(join(tmpdir(), 'tokenmill-hosts-'))
    ;[postgres, redis] = await Promise.all([startPostgres(), startRedis()])
  })
  afterAll(async () => {
    for (const role of roles) role.signal('SIGTERM')
    await Promise.all(roles.map(role => role.exit))
    await redis?.stop()
    await postgres?.remove()
    await rm(place, { recursive: true, force: true })
  })

  /** Makes a folder with the program. The host's own settings are in its environment. */
  const openHost = async (name: string, more: Record<string, string> = {}) => {
    const cwd = join(place, name)
    await mkdir(cwd)
    await symlink(join(root, 'bin'), join(cwd, 'bin'))
    const env = { DATABASE_URL: undefined, REDIS_URL: undefined, TOKENMILL_METRICS_PORT: '0', TOKENMILL_PROCESSES: '1' }
    return {
      cwd,
      run: async (lines: string) => {
        const child = startShell(lines, { cwd, env: { ...env, ...more } })
        const { code } = await child.exit
        expect(code, `${lines}\n${child.stderr()}`).toBe(0)
        return child.stdout()
      },
      /** Starts lines that run on, as in a terminal. */
      start: async (lines: string, says: RegExp) => {
        const child = startShell(lines.replace(/^(env|node) /m, 'exec $1 '), { cwd, env: { ...env, ...more } })
        roles.push(child)
        await child.line(says, { stream: 'stderr' })
        return child
      },
    }
  }

  it('tried as it is written on two hosts ends with a report that the other host made', async () => {
    const port = String(await freePort())
    const page = await readPage()
    const ownerUrl = await makeOwner(postgres.url, page)
    const reports = pathToFileURL(join(place, 'reports')).href
    const here = (lines: string) =>
      lines
        .replaceAll('postgres://tokenmill:PASSWORD@db.example/tokenmill', ownerUrl)
        .replaceAll('redis://redis.example:6379', redis.url)
        .replaceAll('file:///mnt/reports', reports)
        .replaceAll('file:///mnt/audit', pathToFileURL(join(place, 'audit')).href)
        .replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`)
    const blocks = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, lines = '']) => here(lines))
    const [setUp = '', working = '', serving = '', asking = ''] = blocks
    expect(blocks).toHaveLength(4)

    const first = await openHost('first')
    const printed = await first.run(setUp)
    const settings = setUp.split('\n').filter(line => line.startsWith('export '))
    for (const line of working.trim().split('\n'))
      await first.start([...settings, line].join('\n'), /"msg":"(working|scheduling)"/)

    const second = await openHost('second', { TOKENMILL_HTTP_PORT: port })
    const copied = [...page.matchAll(/`([a-z-]+\.(?:env|jwk|json))`/g)].map(([, name = '']) => name)
    expect(new Set(copied)).toEqual(
      new Set(['gateway.env', 'gateway.jwk', 'gateway-keys.jwk', 'installation-keys.json']),
    )
    for (const name of copied) {
      const path = name.endsWith('.env') ? name : join('.tokenmill/system', name)
      await cp(join(first.cwd, path), join(second.cwd, path), { recursive: true })
    }
    const gateway = await second.start(serving, /"msg":"serving"/)
    expect(gateway.stderr()).not.toContain('can read sealed cards')

    const examine = async () => {
      const examined = await first.run([...settings, 'node bin/tokenmill.mjs doctor --json || true'].join('\n'))
      const { checks } = JSON.parse(examined) as { checks: { name: string; state: string; says: string }[] }
      // Servers that a busy machine doesn't let answer tell nothing.
      return checks.some(({ says }) => says.includes('no answer within')) ? undefined : checks
    }
    const checks = await until(examine)
    const ofServers = /^(postgres (durability|max_wal_size|checkpoint_timeout|wal_compression)|redis memory)$/
    // The servers of a test have settings of their own.
    expect(checks.filter(({ name, state }) => state !== 'well' && !ofServers.test(name))).toEqual([])

    const fact = (name: string) => new RegExp(`^${name} +(\\S+)`, 'm').exec(printed)?.[1] ?? ''
    // A reader has a minute; a slow machine may need longer to make the report.
    const patient = asking.replace('--retry 60', '--retry 500')
    await second.run(patient.replace('USER_ID:API_KEY', `${fact('user_id')}:${fact('api_key')}`))
    const report = await readFile(join(second.cwd, 'report.csv'), 'utf8')
    expect(report).toMatch(/^record,/)
    const [made = ''] = await readdir(join(place, 'reports'))
    expect(await readFile(join(place, 'reports', made), 'utf8')).toBe(report)
    expect(await readdir(join(second.cwd, '.tokenmill'))).toEqual(['system'])
  })
})

const readPage = () => readFile(join(root, 'docs/two-hosts.md'), 'utf8')

/** Runs the statements of the page for PostgreSQL's administrator, with other names. Returns the owner's URL. */
async function makeOwner(adminUrl: string, page: string): Promise<string> {
  const statements = [...page.matchAll(/`(create (?:role|database) [^`]+)`/g)].map(([, text = '']) => text)
  expect(statements).toHaveLength(2)
  const client = new Client({ connectionString: adminUrl })
  await client.connect()
  for (const text of statements) await client.query(text.replaceAll(/\btokenmill\b/g, 'vault'))
  await client.end()
  const url = new URL(adminUrl)
  return `postgres://vault:PASSWORD@${url.host}/vault`
}
