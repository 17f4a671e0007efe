// `tokenmill capture-key`: the line of keys of an alias, as an operator sees it, and a rotation that is killed.
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { statementIn } from '../../src/vault/capture/statement.ts'
import { startCommand } from '../support/process.ts'
import { until } from '../support/until.ts'
import { type Bench, openBench } from './command-bench.ts'

const ENTITY = '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'

let bench: Bench
beforeAll(async () => {
  bench = await openBench()
  await bench.cli(['schema', 'upgrade', '--make-kek', join(bench.dataDir, 'kek')])
})
afterAll(() => bench.close())

const run = (...words: string[]) => bench.cli(['capture-key', ...words])
const lineOf = (alias: string) =>
  bench.rows<{ number: number; state: string }>(
    'select number, state from tokenmill.capture_key where alias = $1 order by number',
    { values: [alias] },
  )
const audited = async (subject: string) =>
  (
    await bench.rows<{ action: string; outcome: string }>(
      'select action, outcome from tokenmill.audit where subject = $1 order by audit_id',
      { values: [subject] },
    )
  ).map(({ action, outcome }) => `${action} ${outcome}`)

it('makes a line of one key, whose public half carries the statement', async () => {
  for (const [alias, type] of [
    ['rsa', 'jwe-rsa'],
    ['gpg', 'pgp'],
  ]) {
    const added = await run('add', String(alias), '--entity', ENTITY, '--type', String(type))
    expect(statementIn(added.stdout)).toMatch(/^eyJ/)
    const shown = await run('show', String(alias))
    expect(shown.status).toBe(0)
    expect(statementIn(shown.stdout)).toMatch(/^eyJ/)
    expect(await lineOf(String(alias))).toEqual([{ number: 1, state: 'ACTIVE' }])
  }
  expect(await run('show', 'nobody')).toMatchObject({ status: 1 })
})

it('goes on after a kill in the midst of a rotation, and makes no second key after one at its end', async () => {
  const owner = new pg.Client({ connectionString: bench.url })
  await owner.connect()
  await owner.query('begin')
  await owner.query(`select from tokenmill.capture_key where alias = 'rsa' for update`)
  const killed = startCommand(['capture-key', 'rotate', 'rsa'], { env: bench.env as Record<string, string> })
  await until(async () => {
    const [waiting] = await bench.rows<{ waits: boolean }>(
      `select true as waits from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock' and application_name = 'tokenmill cli'`,
    )
    return waiting?.waits
  })
  killed.signal('SIGKILL')
  await killed.exit
  await owner.query('rollback')
  await owner.end()
  await until(async () => {
    const rest = await bench.rows(
      `select from pg_stat_activity where datname = current_database() and application_name = 'tokenmill cli'`,
    )
    return rest.length === 0
  })
  expect(await lineOf('rsa')).toEqual([{ number: 1, state: 'ACTIVE' }])

  const again = await run('rotate', 'rsa', '--json')
  expect(again.json()).toMatchObject({ number: 2, is_new: true })
  const late = await run('rotate', 'rsa', '--json')
  expect(late).toMatchObject({ status: 0, stderr: expect.stringContaining('nothing was changed') })
  expect(late.json()).toMatchObject({ number: 2, is_new: false })
  expect(await lineOf('rsa')).toHaveLength(2)
  expect(await audited('rsa')).toEqual(['capture-key.add done', 'capture-key.rotate done'])
})

it('retires a key by its number, not its only known successor too early, and not twice', async () => {
  expect(await run('retire', 'rsa')).toMatchObject({ status: 1, stderr: expect.stringContaining('--key') })
  await bench.rows(`update tokenmill.capture_key set created_at = now() + interval '30 s' where number = 2`)
  expect(await run('retire', 'rsa', '--key', '1')).toMatchObject({ status: 1, stderr: expect.stringContaining('10 s') })
  await bench.rows(`update tokenmill.capture_key set created_at = created_at - interval '1 minute'`)
  expect(await run('retire', 'rsa', '--key', '7')).toMatchObject({ status: 1 })
  expect(await run('retire', 'rsa', '--key', '1', '--until', '2000-01-01')).toMatchObject({ status: 64 })
  const until = '2999-01-01T00:00:00.000Z'
  const retired = await run('retire', 'rsa', '--key', '1', '--until', until, '--reason', 'the page is new', '--json')
  expect(retired.json()).toEqual({ alias: 'rsa', number: 1, state: 'RETIRED', until })
  expect(await run('retire', 'rsa', '--key', '1')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining(`already retired at ${until}`),
  })
  expect(await audited('rsa/1')).toEqual([
    ...['capture-key.retire refused', 'capture-key.retire done', 'capture-key.retire refused'],
  ])
  expect((await run('list')).stdout).toMatch(/^rsa\/1\s+jwe-rsa\s+RETIRED/m)
  expect(
    (await bench.cli(['doctor', '--json'])).json<{ checks: { name: string; state: string }[] }>().checks,
  ).toContainEqual(expect.objectContaining({ name: 'granted rights', state: 'well' }))
})

it('does not add to a line that ended, and never gives its alias again', async () => {
  await run('retire', 'rsa', '--key', '2')
  expect(await run('rotate', 'rsa')).toMatchObject({ status: 1, stderr: expect.stringContaining('never used again') })
  expect(await run('rotate', 'nobody')).toMatchObject({ status: 1, stderr: expect.stringContaining('no such') })
  expect(await run('add', 'rsa', '--entity', ENTITY)).toMatchObject({ status: 1 })
  expect(await run('show', 'rsa')).toMatchObject({ status: 1, stderr: expect.stringContaining('retired') })
})

const COLUMNS = 'entity_id, type, public_key, state, created_at, wrapped_private, private_version'
/** Inserts a key as the database's owner could, as the second key of its line. */
const copyAs2 = (alias: string) =>
  `insert into tokenmill.capture_key (alias, number, ${COLUMNS})
select alias, 2, ${COLUMNS.replace('created_at', "now() + interval '1 year'")}
from tokenmill.capture_key where alias = '${alias}' and number = 1`

it('goes on with a line whose newest key was retired before its time', async () => {
  await run('add', 'spare', '--entity', ENTITY, '--type', 'jwe-ec')
  await run('rotate', 'spare')
  await bench.rows(`update tokenmill.capture_key set created_at = created_at - interval '11 seconds'`)
  expect(await run('retire', 'spare', '--key', '2')).toMatchObject({ status: 0 })
  expect((await run('rotate', 'spare', '--json')).json()).toMatchObject({ number: 3, is_new: true })
})

it('hands no key on that somebody put into the database', async () => {
  await run('add', 'forged', '--entity', ENTITY, '--type', 'jwe-ec')
  for (const created of ["now() + interval '1 year'", 'now()']) {
    await bench.rows(copyAs2('forged'))
    await bench.rows(`update tokenmill.capture_key set created_at = ${created} where alias = 'forged' and number = 2`)
    expect(await run('rotate', 'forged')).toMatchObject({
      status: 78,
      stdout: '',
      stderr: expect.stringContaining('not written by tokenmill'),
    })
    const listed = (await run('list', '--json')).json<Record<string, unknown>[]>()
    expect(
      listed
        .filter(({ alias }) => alias === 'forged')
        .map(({ public_key: key }) => typeof key)
        .sort()
        .reverse(),
    ).toEqual([...['string', 'object']])
    await bench.rows(`delete from tokenmill.capture_key where alias = 'forged' and number = 2`)
  }
})

it('retires no only key without its number while a rotation ends', async () => {
  await run('add', 'late', '--entity', ENTITY, '--type', 'jwe-ec')
  const rotation = new pg.Client({ connectionString: bench.url })
  await rotation.connect()
  await rotation.query('begin')
  await rotation.query(`select from tokenmill.capture_key where alias = 'late' for no key update`)
  const retiring = run('retire', 'late')
  await until(async () => {
    const [waiting] = await bench.rows<{ waits: boolean }>(
      `select true as waits from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock' and query like '%capture_key%'`,
    )
    return waiting?.waits
  })
  await rotation.query(copyAs2('late'))
  await rotation.query('commit')
  await rotation.end()
  expect(await retiring).toMatchObject({ status: 1, stderr: expect.stringContaining('--key') })
  await bench.rows(`delete from tokenmill.capture_key where alias = 'late' and number = 2`)
})

it('holds no private half in clear, in the store, the audit or what was printed', async () => {
  const said = JSON.stringify([await run('list', '--json'), await run('show', 'gpg')])
  expect(said).not.toMatch(/PRIVATE KEY|\\?"d\\?":/)
  const rows = JSON.stringify([
    await bench.rows('select public_key, statement from tokenmill.capture_key'),
    await bench.rows('select detail from tokenmill.audit'),
  ])
  expect(rows).not.toMatch(/PRIVATE KEY|\\"d\\":/)
})
