// Upgrades a database of release 0.3.0 and checks that its content still works. `release-0-3/` holds the dump, the
// keys, a client's files, and the answers of that release to the work that is sent again here. `half.*` is what that
// release left of a migration when command and workers were killed: ten of thirty chunks have receipts, eight are in
// the results, and the checkpoint names three.
import { randomBytes, randomUUID } from 'node:crypto'
import { chmod, cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCommand } from '../support/command.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { type Child, startCommand } from '../support/process.ts'
import { confirmationIn } from './key/two-operators.ts'

const RELEASE = join(import.meta.dirname, 'release-0-3')
const API_KEY = '6hW0f4L7UfBuwGHw4goZ6Hk9So1x4HEC5EJ0azFyYA0'
const SCOPE = '5aa8d5d2-65bf-450b-bc8f-37e351b45fca'

/** Roles and rights on the database itself belong to the whole server, so a dump of one database doesn't hold them. */
const MAKE_ROLES = `do $$
declare name text;
begin
  perform pg_advisory_xact_lock(hashtextextended('tokenmill roles', 0));
  foreach name in array array['tokenmill_reader', 'tokenmill_queue', 'tokenmill_gateway'] loop
    if not exists (select from pg_roles where rolname = name) then execute format('create role %I nologin', name); end if;
  end loop;
  grant tokenmill_reader to tokenmill_gateway;
  execute format('grant create on database %I to tokenmill_queue', current_database());
end $$`

describe('an installation of release 0.3.0, upgraded', () => {
  let database: FreshDatabase
  let dir: string
  let env: Record<string, string>
  let workers: Child

  beforeAll(async () => {
    database = await freshDatabase({ empty: true })
    dir = await mkdtemp(join(tmpdir(), 'tokenmill-release-'))
    await cp(RELEASE, dir, { recursive: true })
    // git keeps no modes, and key files that others may read are refused.
    const keys = ['kek', ...(await readdir(join(dir, 'system'))).map(name => `system/${name}`), 'shop/signing-key.jwk']
    for (const file of keys) await chmod(join(dir, file), 0o600)
    for (const dump of ['store', 'half'])
      await restore(database.url, gunzipSync(await readFile(join(RELEASE, `${dump}.sql.gz`))).toString())
    await beginAnHourAgo()
    env = {
      DATABASE_URL: database.url,
      REDIS_URL: '',
      TOKENMILL_DATA_DIR: dir,
      TOKENMILL_KEK_FILE: join(dir, 'kek'),
      TOKENMILL_METRICS_PORT: '0',
      TOKENMILL_HTTP_PORT: '0',
      // Long, because the receipts of the dump get older every day.
      TOKENMILL_RECEIPT_DAYS: '3650',
    }
    const upgrade = await run(['schema', 'upgrade'])
    // A slow upgrade may also say what it is doing.
    expect(upgrade).toEqual({ code: 0, stdout: expect.any(String), stderr: expect.not.stringContaining('tokenmill: ') })
    workers = startCommand(['workers'], { env })
    await workers.line(/"working"/, { stream: 'stderr' })
  })
  afterAll(async () => {
    workers?.signal('SIGTERM')
    await workers?.exit
    await database.drop()
    await rm(dir, { recursive: true, force: true })
  })

  const run = (args: string[]) => runCommand(args, { env, cwd: dir })

  async function ask<R extends object>(text: string, values: unknown[] = []): Promise<R[]> {
    const client = new Client({ connectionString: database.url })
    await client.connect()
    try {
      return (await client.query<R>(text, values)).rows
    } finally {
      await client.end()
    }
  }

  async function rowsOf(file: string): Promise<string[][]> {
    const [, ...lines] = (await readFile(join(dir, file), 'utf8')).trimEnd().split('\n')
    return lines.map(line => line.split(','))
  }

  /** A batch must end within a week, and the fixture gets older every day. */
  async function beginAnHourAgo(): Promise<void> {
    const path = join(dir, 'half.csv.results.csv.checkpoint.json')
    const checkpoint = JSON.parse(await readFile(path, 'utf8'))
    const begun = new Date(Date.now() - 3_600_000).toISOString()
    await writeFile(path, `${JSON.stringify({ ...checkpoint, started_at: begun })}\n`)
    await ask(`update tokenmill.batch set accepted_at = date_trunc('second', $1::timestamptz) where batch_id = $2`, [
      begun,
      checkpoint.batch_id,
    ])
  }

  it('follows in the directory of cards what workers of that release still write', async () => {
    const client = new Client({ connectionString: database.url })
    await client.connect()
    try {
      const [id, first, other] = [randomUUID(), randomBytes(32), randomBytes(32)]
      const cards = async () =>
        (await client.query('select fp, version from tokenmill.card where token_id = $1', [id])).rows
      const shortOf = (whole: Buffer) => new RegExp(whole.toString('hex', 0, 16).replace(/(.{4})/g, '$1-?'))
      const insert = (tokenId: string) =>
        client.query(
          `insert into tokenmill.token (token_id, token_scope, status, token_type, fingerprint, created_at, updated_at, version)
values ($1, $1, 'ACTIVE', 'REUSE', $2, now(), now(), 1) on conflict on constraint one_live_token_per_card do nothing`,
          [tokenId, first],
        )
      await insert(id)
      expect((await insert(randomUUID())).rowCount).toBe(0)
      expect(await cards()).toEqual([{ fp: expect.stringMatching(shortOf(first)), version: 1 }])
      await client.query('update tokenmill.token set fingerprint = $2 where token_id = $1', [id, other])
      expect(await cards()).toEqual([{ fp: expect.stringMatching(shortOf(other)), version: 1 }])
      // The row is as this release writes it; then a worker of release 0.3 changes it.
      await client.query(
        `update tokenmill.token set cards = array(select fp from tokenmill.card where token_id = $1)
where token_id = $1`,
        [id],
      )
      await client.query('update tokenmill.token set fingerprint = $2 where token_id = $1', [id, first])
      expect(await cards()).toEqual([{ fp: expect.stringMatching(shortOf(first)), version: 1 }])
      await client.query(`update tokenmill.token set status = 'DELETED', fingerprint = null where token_id = $1`, [id])
      expect(await cards()).toEqual([])
      const { rows } =
        await client.query(`select count(*)::int as lost from tokenmill.token as t where status <> 'DELETED'
and not exists (select from tokenmill.card as c where c.token_id = t.token_id)`)
      expect(rows).toEqual([{ lost: 0 }])
    } finally {
      await client.end()
    }
  })

  it('answers every job that it had answered, as it did, by its receipt', async () => {
    const again = await run(['submit', 'work.ndjson', '--client', 'shop/client.json'])
    expect(again.code).toBe(3)
    const told = answersIn(again.stdout)
    expect(told).toHaveLength(6)
    expect(told).toEqual(answersIn(await readFile(join(dir, 'work.results.ndjson'), 'utf8')))
  })

  it('answers them and replays its file before the keys of its receipts are written, in between and after', async () => {
    const replay = async () => {
      const again = await run(['submit', 'work.ndjson', '--client', 'shop/client.json'])
      expect(answersIn(again.stdout)).toEqual(answersIn(await readFile(join(dir, 'work.results.ndjson'), 'utf8')))
      const migrated = await run(['migrate', 'cards.csv', '--client', 'shop/client.json', '--scope', SCOPE])
      expect(migrated.code).toBe(3)
      const [then, now] = [await rowsOf('cards.csv.results.csv'), await rowsOf('cards.csv.replay.results.csv')]
      expect(now.map(row => row.slice(0, 5))).toEqual(then.map(row => row.slice(0, 5)))
    }
    const isFilled = async () =>
      (await ask<{ is_filled: boolean }>('select is_filled from tokenmill.receipt_fill'))[0]?.is_filled
    const lacking = async () =>
      (
        await ask<{ receipt_id: string }>(`select receipt_id from tokenmill.receipt as r where not exists (
  select from tokenmill.receipt_key as k where k.receipt_id = r.receipt_id and k.day = r.day)`)
      ).length
    expect([await isFilled(), await lacking()]).toEqual([true, 0])
    await ask('truncate tokenmill.receipt_key')
    await ask(`update tokenmill.receipt_fill set is_filled = false, filled_to = default, answered_to = 0,
  week = (select date_trunc('week', min(day))::date from tokenmill.receipt)`)
    await replay()
    await ask(`insert into tokenmill.receipt_key (receipt_id, day, revision)
select receipt_id, day, revision from tokenmill.receipt order by jti limit (select count(*) / 2 from tokenmill.receipt)`)
    await replay()
    expect(await lacking()).toBeGreaterThan(0)
    expect(await run(['schema', 'upgrade'])).toMatchObject({ code: 0 })
    expect([await isFilled(), await lacking()]).toEqual([true, 0])
    await replay()
    const twice = await ask('select from tokenmill.receipt group by receipt_id having count(*) > 1')
    expect(twice).toEqual([])
  })

  it('counts its batches as left alone, with what they came to', async () => {
    const listed = await run(['batch', 'list', '--json'])
    const left = { state: 'ABANDONED', chunks: null, revision: 0 }
    expect(JSON.parse(listed.stdout)).toEqual([
      expect.objectContaining({ ...left, record_kind: 'token-create', records_done: 50 }),
      expect.objectContaining({ ...left, record_kind: 'transaction', records_done: 2 }),
      expect.objectContaining({ ...left, record_kind: 'token-create', records_done: 8 }),
    ])
  })

  it('continues a migration that stopped half-way, with the same command: each row once, and none twice', async () => {
    const batchId = JSON.parse(await readFile(join(dir, 'half.csv.results.csv.checkpoint.json'), 'utf8')).batch_id
    const receiptsOf = () =>
      ask<{ jti: string; envelope: string }>(
        `select jti, encode(envelope_digest, 'hex') as envelope from tokenmill.receipt where jti like $1 || '-%' order by jti`,
        [batchId],
      )
    const tokensOf = () =>
      ask<{ token_id: string }>(
        `select token_id from tokenmill.token where batch_no = (select batch_no from tokenmill.batch where batch_id = $1)`,
        [batchId],
      )
    const [before, tokens, given] = [await receiptsOf(), await tokensOf(), await rowsOf('half.csv.results.csv')]
    expect([before.length, given.length]).toEqual([10, 40])
    const command = ['migrate', 'half.csv', '--client', 'shop/client.json', '--scope', SCOPE, '--chunk', '5']
    const resumed = await run([...command, '--in-flight', '2'])
    expect(resumed).toMatchObject({ code: 3, stdout: expect.stringContaining(batchId) })
    const results = await rowsOf('half.csv.results.csv')
    expect(results.map(([line]) => Number(line))).toEqual(Array.from({ length: 150 }, (_, row) => row + 2))
    // Those that were answered before have the tokens of then.
    expect(results.slice(0, 40).map(row => row.slice(0, 5))).toEqual(given.map(row => row.slice(0, 5)))
    const after = await receiptsOf()
    expect(after).toHaveLength(30)
    expect(after).toEqual(expect.arrayContaining(before))
    const made = await tokensOf()
    expect(made).toEqual(expect.arrayContaining(tokens))
    const ofOutcome = (outcome: string) => results.filter(row => row[2] === outcome).length
    expect([made.length, ofOutcome('DUPLICATE'), ofOutcome('REJECTED')]).toEqual([ofOutcome('CREATED'), 9, 13])
    const manifest = JSON.parse(await readFile(join(dir, 'half.csv.manifest.json'), 'utf8'))
    expect(manifest).toMatchObject({ batch_id: batchId, rows: 150 })
    // A batch that was begun in rows stays in rows.
    expect(manifest.options).not.toHaveProperty('record_form')
    const verify = ['manifest', 'verify', 'half.csv.manifest.json', '--client', 'shop/client.json']
    expect(await run(verify)).toMatchObject({ code: 0 })
    const listed = async () => JSON.parse((await run(['batch', 'list', '--json'])).stdout)
    const finished = { batch_id: batchId, state: 'FINISHED', chunks_done: 30, records_done: 150 }
    await expect.poll(listed).toContainEqual(expect.objectContaining(finished))
  })

  it('replays a file that it had migrated with the tokens that it had given', async () => {
    const again = await run(['migrate', 'cards.csv', '--client', 'shop/client.json', '--scope', SCOPE])
    expect(again.code).toBe(3)
    const replayed = await rowsOf('cards.csv.replay.results.csv')
    expect(replayed.map(row => row.slice(0, 5))).toEqual(
      (await rowsOf('cards.csv.results.csv')).map(row => row.slice(0, 5)),
    )
  })

  it('finds every card by its fingerprint, whose token is the one of then', async () => {
    await writeFile(join(dir, 'later.csv'), await readFile(join(dir, 'cards.csv')))
    const later = await run(['migrate', 'later.csv', '--client', 'shop/client.json', '--scope', SCOPE, '--again'])
    expect(later.code).toBe(3)
    const [before, after] = [await rowsOf('cards.csv.results.csv'), await rowsOf('later.csv.results.csv')]
    expect(after.map(row => row[2])).toEqual([
      'UNCHANGED',
      'UNCHANGED',
      'REJECTED',
      // A job had changed the holder's name before.
      'UPDATED',
      // The card's token had been deleted before.
      'CREATED',
      'UNCHANGED',
      'DUPLICATE',
      'UNCHANGED',
    ])
    const kept = [0, 1, 3, 5, 6, 7]
    expect(kept.map(at => after[at]?.[4])).toEqual(kept.map(at => before[at]?.[4]))
    expect(after[4]?.[4]).not.toBe(before[4]?.[4])
  })

  it('verifies a manifest that it had signed', async () => {
    const verified = await run(['manifest', 'verify', 'cards.csv.manifest.json', '--client', 'shop/client.json'])
    expect(verified).toMatchObject({ code: 0 })
  })

  it('answers a PUT over HTTP that it had answered, under the same idempotency key and API key', async () => {
    const gateway = startCommand(['gateway'], { env, cwd: dir })
    try {
      const [, port] = await gateway.line(/"port":(\d+),"msg":"serving"/, { stream: 'stderr' })
      const { user_id: user } = JSON.parse(await readFile(join(dir, 'shop/client.json'), 'utf8'))
      const response = await fetch(`http://127.0.0.1:${port}/oidc/api/v2/card`, {
        method: 'PUT',
        headers: {
          authorization: `Basic ${Buffer.from(`${user}:${API_KEY}`).toString('base64')}`,
          'content-type': 'application/json',
          'idempotency-key': 'put-of-030',
        },
        body: await readFile(join(dir, 'put.json'), 'utf8'),
      })
      expect(response.status).toBe(200)
      expect(await response.json()).toMatchObject(JSON.parse(await readFile(join(dir, 'put.answer.json'), 'utf8')))
    } finally {
      gateway.signal('SIGTERM')
      await gateway.exit
    }
  })

  it('turns the fingerprint key only once an operator has said that no worker of that release is left', async () => {
    const isBeside = async () =>
      (await ask<{ beside_older: boolean }>('select beside_older from tokenmill.card_phase'))[0]
    const refused = await run(['key', 'rotate', 'fingerprint'])
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('--all-upgraded') })
    expect(await isBeside()).toEqual({ beside_older: true })
    const dueIndexes = async () =>
      (
        await ask<{ name: string }>(`select relname as name from pg_index join pg_class on pg_class.oid = indexrelid
where indrelid = 'tokenmill.token'::regclass and indisvalid and relname in ('token_due', 'token_expires') order by relname`)
      ).map(({ name }) => name)
    // The index of that release stays, because its scheduler needs it.
    expect(await dueIndexes()).toEqual(['token_due', 'token_expires'])
    const turned = await run(['key', 'rotate', 'fingerprint', '--all-upgraded'])
    expect(turned).toMatchObject({ code: 0, stdout: expect.stringContaining('fingerprint/2 stands alone') })
    expect(await isBeside()).toEqual({ beside_older: false })
    expect(await dueIndexes()).toEqual(['token_due'])
    // The triggers for receipts and answers of that release are removed.
    expect(await ask(`select from pg_trigger where tgname in ('receipt_has_its_key', 'answer_is_counted')`)).toEqual([])
  })

  it('then refuses what a worker of that release would write', async () => {
    const [id, whole] = [randomUUID(), randomBytes(32)]
    const insert = (columns: string, values: string) =>
      ask(
        `insert into tokenmill.token (token_id, token_scope, status, token_type, created_at, updated_at, version, ${columns})
values ($1, $1, 'ACTIVE', 'REUSE', now(), now(), 1, ${values})`,
        [id, whole],
      )
    const refuses = (work: Promise<unknown>) => expect(work).rejects.toThrow(/worker of release 0\.3 wrote here/)
    await refuses(insert('fingerprint', '$2'))
    // The row is as release 0.3 wrote it.
    await insert('fingerprint, cards', `$2, '{}'`)
    await refuses(ask('update tokenmill.token set fingerprint = $2 where token_id = $1', [id, randomBytes(32)]))
    await refuses(ask(`update tokenmill.token set status = 'DELETED', fingerprint = null where token_id = $1`, [id]))
    await ask('update tokenmill.token set fingerprint = null where token_id = $1', [id])
    await ask(`delete from tokenmill.token where token_id = $1`, [id])
  })

  it('gives the signing key a code, so that new client files hold it', async () => {
    const kids = (await ask<{ kid: string }>('select kid from tokenmill.signing_key')).map(({ kid }) => kid)
    const { entity_id: entity } = JSON.parse(await readFile(join(dir, 'shop', 'client.json'), 'utf8'))
    const add = ['client', 'add', 'new', '--entity', entity, '--roles', 'TOKEN_WRITE', '--out', join(dir, 'new')]
    expect(await run(add)).toMatchObject({ code: 0 })
    const made = JSON.parse(await readFile(join(dir, 'new', 'client.json'), 'utf8'))
    expect(made.installation_keys.keys).toEqual(kids.map(kid => expect.objectContaining({ kid })))
  })

  it('turns to another key-encryption key, which then opens the private halves that it had wrapped', async () => {
    workers.signal('SIGTERM')
    await workers.exit
    const [old, anew] = [join(dir, 'kek'), join(dir, 'second-kek')]
    await run(['key', 'make', 'kek', anew])
    const list = (...files: string[]) =>
      writeFile(join(dir, 'keks'), files.map(file => `file:${file}\n`).join(''), { mode: 0o600 })
    await list(old, anew)
    const both = { env: { ...env, TOKENMILL_KEK_FILE: '', TOKENMILL_KEK: join(dir, 'keks') }, cwd: dir }
    const operator = async (name: string) => {
      const { entity_id: entity } = JSON.parse(await readFile(join(dir, 'shop', 'client.json'), 'utf8'))
      const out = join(dir, name)
      await runCommand(['client', 'add', name, '--entity', entity, '--roles', 'ADMIN', '--out', out], both)
      return ['--operator', join(out, 'client.json')]
    }
    const [one, other] = [await operator('one'), await operator('other')]
    const rotate = ['key', 'rotate', 'kek', '--to', `file:${anew}`, ...one]
    const { code: status, stderr } = await runCommand(rotate, both)
    const confirm = ['key', 'confirm', confirmationIn({ status, stderr }), ...other, '--yes']
    expect(await runCommand(confirm, both)).toMatchObject({ code: 0 })
    const turned = await runCommand(rotate, both)
    expect(turned).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/ data keys and, by them, 3 private halves open/),
    })
    await list(anew)
    expect(await runCommand(['capture-key', 'list'], both)).toMatchObject({ code: 0 })
    const listed = await runCommand(['key', 'list', 'kek', '--json'], both)
    expect(JSON.parse(listed.stdout)).toMatchObject([
      { state: 'RETIRED', keys_wrapped: 0, on_this_host: false },
      { state: 'ACTIVE', on_this_host: true },
    ])
  })
})

async function restore(url: string, dump: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(MAKE_ROLES)
    await client.query(dump)
  } finally {
    await client.end()
  }
}

/** The part of the results that must not change: the outcome of each line, and its token. */
function answersIn(results: string): unknown[] {
  const lines = results
    .trimEnd()
    .split('\n')
    .filter(line => line.startsWith('{'))
  const answers = lines.map(line => JSON.parse(line) as Record<string, unknown>)
  return answers
    .sort((a, b) => Number(a['line']) - Number(b['line']))
    .map(({ line, receipt_id, kind, jti, reference, status, code, record, error }) => {
      const { reuse_token, analytics_token, last_four, token_status } = { ...(record as Record<string, unknown>) }
      const { details } = { ...(error as Record<string, unknown>) }
      const subject = { reuse_token, analytics_token, last_four, token_status, details }
      return { line, receipt_id, kind, jti, reference, status, code, subject }
    })
}
