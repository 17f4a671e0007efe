// `tokenmill schema login`: it makes users with the rights of one role, who can connect to one database only. The
// gateway's user can't read cards.
import { readFile, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { urlAs } from '../../src/store/access/logins.ts'
import { readAddress } from '../../src/store/connection/hosts.ts'
import { basicOf } from '../producers/gateway/bundle.ts'
import { runCommand } from '../support/command.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { startCommand } from '../support/process.ts'
import { untilReady } from '../support/ready.ts'

describe('urlAs', () => {
  it.each([
    [
      'postgres://owner:s%2Fecret@db.example:5432/vault?sslmode=verify-full',
      'db.example:5432/vault?sslmode=verify-full',
    ],
    ['postgresql://db.example/vault', 'db.example/vault'],
    ['postgres://o:p@a:1,b:2/vault?target_session_attrs=read-write', 'a:1,b:2/vault?target_session_attrs=read-write'],
    ['postgres:///vault?host=a,b&user=owner&password=secret', '/vault?host=a,b'],
    ['postgres://owner:se@cret@db.example/vault', 'db.example/vault'],
  ])('of %s changes the user alone', (url, rest) => {
    expect(urlAs(url, 'u', 'p')).toBe(`${url.split(':')[0]}://u:p@${rest}`)
  })

  it('of keywords is a URL of the same hosts', () => {
    const url = urlAs(`host=a,b port=1,2 dbname=vault user=owner password='se cret'`, 'u', 'p')
    expect(url).toBe('postgres://u:p@/vault?host=a%2Cb&port=1%2C2')
    expect(readAddress(url).hosts).toEqual([
      { host: 'a', port: 1 },
      { host: 'b', port: 2 },
    ])
  })
})

describe('a login', () => {
  const databases: FreshDatabase[] = []
  const installations: Installation[] = []
  const [first, second] = [() => installations[0] as Installation, () => installations[1] as Installation]
  beforeAll(async () => {
    for (const prefix of ['{login-a}', '{login-b}']) {
      const database = await freshDatabase()
      databases.push(database)
      const engine = { name: 'postgres', prefix, redisUrls: undefined, databaseUrl: database.url } as const
      installations.push(await openInstallation(engine))
    }
  })
  afterAll(async () => {
    for (const installation of installations) await installation.close()
    for (const database of databases) await database.drop()
  })

  const run = ({ env }: Installation, args: string[]) => runCommand(['schema', 'login', ...args], { env })
  const fileOf = (installation: Installation, name: string) => join(installation.dataDir, `${name}.env`)
  const urlOf = async (path: string) => parseEnv(await readFile(path, 'utf8'))['DATABASE_URL'] ?? ''
  /** The error's code, or what the statement answers. */
  const ask = async (url: string, text: string): Promise<unknown> => {
    const client = new Client({ connectionString: url })
    try {
      await client.connect()
      return (await client.query({ text, rowMode: 'array' })).rows[0]?.[0]
    } catch (error) {
      return (error as { code?: string }).code
    } finally {
      await client.end().catch(() => {})
    }
  }

  it('of the gateway is a member of its role, sees no card, and may become nobody who does', async () => {
    const path = fileOf(first(), 'gateway')
    const made = await run(first(), ['gateway', '--out', path])
    expect(made.code, made.stderr).toBe(0)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    const url = await urlOf(path)
    expect(made.stdout + made.stderr).not.toContain(new URL(url).password)
    expect(await ask(url, 'select session_user::text')).toMatch(/^tokenmill_gateway_[0-9a-f]{10}$/)
    expect(await ask(url, 'select count(*)::int from tokenmill.operation')).toBe(0)
    expect(await ask(url, 'select sealed from tokenmill.token')).toBe('42501')
    expect(await ask(url, 'reset role; select sealed from tokenmill.token')).toBe('42501')
    expect(await ask(url, `set role ${new URL(databases[0]?.url ?? '').username}`)).toBe('42501')
    const owner = databases[0]?.url ?? ''
    expect(
      await ask(
        owner,
        `select bool_or(rolcanlogin) from pg_roles where rolname in
      ('tokenmill_gateway', 'tokenmill_reader', 'tokenmill_queue')`,
      ),
    ).toBe(false)
    expect(await ask(owner, "select action from tokenmill.audit where action = 'schema.login'")).toBe('schema.login')
  })

  it('of the reader reads, and writes nothing', async () => {
    const path = fileOf(first(), 'reader')
    expect(await run(first(), ['reader', '--out', path])).toMatchObject({ code: 0 })
    const url = await urlOf(path)
    expect(await ask(url, 'select count(*)::int from tokenmill.receipt')).toBe(0)
    expect(await ask(url, 'select sealed from tokenmill.token')).toBe('42501')
    expect(await ask(url, 'select api_key_hash from tokenmill.client')).toBe('42501')
    expect(await ask(url, "insert into tokenmill.audit (actor, action, subject) values ('a', 'b', 'c')")).toBe('42501')
  })

  it('of one database isn’t let into another of the same server', async () => {
    const path = fileOf(second(), 'gateway')
    expect(await run(second(), ['gateway', '--out', path])).toMatchObject({ code: 0 })
    const own = await urlOf(path)
    const other = new URL(own)
    other.pathname = new URL(databases[0]?.url ?? '').pathname
    expect(new URL(own).username).not.toBe(new URL(await urlOf(fileOf(first(), 'gateway'))).username)
    expect(await ask(own, 'select count(*)::int from tokenmill.operation')).toBe(0)
    expect(await ask(other.href, 'select 1')).toBe('42501')
  })

  it('asked for again is left as it is, and gets another password only by --rotate', async () => {
    const path = fileOf(first(), 'gateway')
    const before = await urlOf(path)
    expect(await run(first(), ['gateway', '--out', path])).toEqual({ code: 0, stdout: 'up to date\n', stderr: '' })
    expect(await urlOf(path)).toBe(before)
    await rename(path, `${path}.old`)
    const stopped = await run(first(), ['gateway', '--out', path])
    expect([stopped.code, stopped.stderr]).toEqual([1, expect.stringMatching(/exists already.*--rotate/)])
    expect(await run(first(), ['gateway', '--out', path, '--rotate'])).toMatchObject({ code: 0 })
    expect(await ask(before, 'select 1')).toBe('28P01')
    expect(await ask(await urlOf(path), 'select 1')).toBe(1)
    const foreign = await run(first(), ['gateway', '--out', `${path}.old`])
    expect([foreign.code, foreign.stderr]).toEqual([
      1,
      expect.stringMatching(/does not hold the password of tokenmill_gateway_/),
    ])
  })

  it('is made by a database administrator from what --print-sql prints, which holds no password', async () => {
    const path = fileOf(second(), 'reader')
    const printed = await run(second(), ['reader', '--out', path, '--print-sql'])
    expect(printed.code, printed.stderr).toBe(0)
    const url = await urlOf(path)
    expect(printed.stdout).toContain("password 'SCRAM-SHA-256$")
    expect(printed.stdout).not.toContain(new URL(url).password)
    expect(await ask(url, 'select 1')).toBe('28P01')
    expect(await ask(databases[1]?.url ?? '', printed.stdout)).toBeUndefined()
    expect(await ask(url, 'select session_user::text')).toMatch(/^tokenmill_reader_/)
  })

  it('serves a gateway that says nothing of it; one that is the owner’s is warned of at every start', async () => {
    const start = (databaseUrl: string) =>
      startCommand(['gateway'], {
        env: {
          ...(first().env as Record<string, string>),
          DATABASE_URL: databaseUrl,
          TOKENMILL_KEK_FILE: undefined,
          TOKENMILL_HTTP_PORT: '0',
          TOKENMILL_LOG_LEVEL: 'info',
        },
      })
    const gateways = [start(await urlOf(fileOf(first(), 'gateway'))), start(databases[0]?.url ?? '')]
    const warnings: boolean[] = []
    for (const gateway of gateways) {
      const [, port] = await gateway.line(/"port":(\d+),"msg":"serving"/, { stream: 'stderr' })
      const answer = await fetch(`http://127.0.0.1:${port}/oidc/api/v2/card/t${'0'.repeat(26)}`, {
        headers: { authorization: await basicOf(first().clientFile) },
      })
      expect(answer.status).toBe(404)
      await untilReady(`http://127.0.0.1:${port}`)
      warnings.push(/"level":"?(warn|40)"?.*can read sealed cards/.test(gateway.stderr()))
      gateway.signal('SIGTERM')
      expect(await gateway.exit).toMatchObject({ code: 0 })
    }
    expect(warnings).toEqual([false, true])
  })
})
