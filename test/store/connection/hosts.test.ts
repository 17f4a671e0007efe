// The hosts of DATABASE_URL: what its forms mean, and that the right server is found among servers that are dead,
// silent or foreign.
import { connect, createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ConfigError } from '../../../src/config.ts'
import { openLog } from '../../../src/log.ts'
import { readAddress } from '../../../src/store/connection/hosts.ts'
import { openStore } from '../../../src/store/pool.ts'
import { type Bench, openBench } from '../../cli/command-bench.ts'
import { until } from '../../support/until.ts'

const hostsOf = (url: string) => readAddress(url).hosts.map(({ host, port }) => `${host} ${port}`)

describe('DATABASE_URL names', () => {
  it.each([
    ['postgres://a:1,b:2/db', ['a 1', 'b 2']],
    ['postgres://a,b/db?target_session_attrs=read-write', ['a 5432', 'b 5432']],
    ['postgresql://u:p@a:1,[::1]:2,[fe80::1]/db', ['a 1', '::1 2', 'fe80::1 5432']],
    ['postgres:///db?host=a,b&port=1,2', ['a 1', 'b 2']],
    ['postgres://u@/db?host=a,b,&port=7', ['a 7', 'b 7', 'localhost 7']],
    ['postgres://%2Frun%2Fpg:1,b/db', ['/run/pg 1', 'b 5432']],
    ['postgres:///db?host=/run/a,/run/b', ['/run/a 5432', '/run/b 5432']],
    ["host=a,b port='1,2' dbname=db user=u password='it\\'s'", ['a 1', 'b 2']],
  ])('several hosts: %s', (url, hosts) => {
    expect(hostsOf(url)).toEqual(hosts)
  })

  it('an account and parameters that are the same for all', () => {
    const { url } = readAddress('postgres://us%40er:p%2Cw@a:1,b:2/d%20b?sslmode=disable&target_session_attrs=primary')
    expect(url).toBe('postgres://us%40er:p%2Cw@localhost/d%20b?sslmode=disable')
    expect(readAddress(`host=a,b user=u password='p w@' dbname=d`).url).toBe('postgres://u:p%20w%40@localhost/d?')
  })

  it('one host by the URL as it is', () => {
    for (const url of [
      'postgres://u:p@h:1/db?sslmode=disable',
      'postgres://u@/db?host=/run/pg',
      'postgres://u:p w@h/d',
    ])
      expect(readAddress(url)).toEqual({ url, hosts: [] })
  })

  it.each([
    ['postgres://a:1,b:2/db?target_session_attrs=standby', /target_session_attrs must be read-write/],
    ['postgres:///db?host=a,b,c&port=1,2', /names 3 hosts, but 2 ports/],
    ['postgres://a:x,b/db', /a port is no number/],
    ['postgres://a:1,b:70000/db', /a port is no number/],
    [`postgres://${'h,'.repeat(16)}h/db`, /at most 16 hosts/],
    ['postgres://u:secret/word@h/db', /cannot be read/],
    ['host = a,b secret', /cannot be read as keywords/],
  ])('nothing that can be used, in one line that quotes nothing: %s', (url, line) => {
    const read = () => readAddress(url)
    expect(read).toThrow(ConfigError)
    expect(read).toThrow(line)
    expect(read).not.toThrow(/secret/)
  })
})

describe('of several hosts', () => {
  let bench: Bench
  let forms: { url: string; keywords: string; parameters: string }
  const silent = createServer(() => undefined)
  beforeAll(async () => {
    bench = await openBench()
    await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
    const { port: hanging } = silent.address() as { port: number }
    const { username, password, port, pathname } = new URL(bench.url)
    const list = `127.0.0.1:1,127.0.0.1:${port}`
    const lists = { host: '127.0.0.1,127.0.0.1', port: `1,${port}` }
    const silently = { host: `127.0.0.1,${lists.host}`, port: `${hanging},${lists.port}` }
    forms = {
      url: `postgres://${username}:${password}@${list}${pathname}?target_session_attrs=read-write`,
      parameters: `postgres://${username}:${password}@${pathname}?${new URLSearchParams(lists)}`,
      keywords: `host=${silently.host} port=${silently.port} user=${username} password=${password} dbname=${pathname.slice(1)}`,
    }
  })
  afterAll(async () => {
    silent.close()
    await bench?.close()
  })

  it.each(['url', 'parameters', 'keywords'] as const)(
    'the one that answers is found, as a list in its %s',
    async form => {
      const env = { DATABASE_URL: forms[form] }
      const upgraded = await bench.cli(['schema', 'upgrade', '--make-kek', `${bench.dataDir}/kek`], { env })
      expect(upgraded, upgraded.stderr).toMatchObject({ status: 0 })
      expect(await bench.cli(['client', 'list'], { env })).toMatchObject({ status: 0 })
    },
  )

  it('one that answers late is waited for by a process that has just begun', async () => {
    const { port } = new URL(bench.url)
    const slow = createServer(client => {
      setTimeout(() => client.pipe(connect(Number(port), '127.0.0.1')).pipe(client), 2_500)
    })
    await new Promise<void>(resolve => slow.listen(0, '127.0.0.1', resolve))
    const url = forms.url.replace(`:${port}/`, `:${(slow.address() as { port: number }).port}/`)
    const store = openStore(url, { log: openLog('silent'), connectionsMax: 1 })
    // Patience of less than 2.5 s would never do; this process itself may stand still for longer than it has.
    const ask = () =>
      store.query({ text: 'select 1 as one' }).then(
        ({ rows }) => rows,
        () => undefined,
      )
    expect(await until(ask, { what: 'an answer' })).toEqual([{ one: 1 }])
    await store.close()
    slow.close()
  })

  it('none is worked on that is a copy of the store on another server, until `schema upgrade` is given it alone', async () => {
    const copy = `${forms.url}&application_name=copy`
    const change = `update tokenmill.cluster set system_identifier = system_identifier || '0'`
    await bench.rows(change)
    expect(await bench.cli(['client', 'list'], { env: { DATABASE_URL: copy } })).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("no host of DATABASE_URL that takes writes is this installation's"),
    })
    expect(await bench.cli(['schema', 'upgrade'])).toMatchObject({ status: 0 })
    expect(await bench.cli(['client', 'list'], { env: { DATABASE_URL: copy } })).toMatchObject({ status: 0 })
  })

  it('none that was switched to read-only is worked on, and one that is again writable is', async () => {
    const url = `${forms.url}&application_name=switched`
    const store = openStore(url, { log: openLog('silent'), connectionsMax: 1 })
    const ask = () => store.query({ text: 'select 1 as one' })
    await ask()
    const name = new URL(bench.url).pathname.slice(1)
    await bench.rows(`alter database ${name} set default_transaction_read_only = on`)
    const write = { text: `update tokenmill.cluster set seen_at = now()` }
    await bench.rows(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
    )
    await expect(store.query(write)).rejects.toMatchObject({ code: 'store_away' })
    await expect(ask()).rejects.toMatchObject({ code: 'store_away', cause: { code: 'UNFIT' } })
    await bench.rows(
      `begin; set transaction read write; alter database ${name} reset default_transaction_read_only; commit`,
    )
    expect((await store.query(write)).count).toBe(1)
    await store.close()
  })
})
