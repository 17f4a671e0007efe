// `tokenmill key compromise fingerprint`: it replaces the key in phases, lists the cards that the former version
// exposed before the workers remove its fingerprints, and goes on where it stopped.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { beginBoth } from '../../../src/acts/key/card-phase.ts'
import { beginRotation } from '../../../src/acts/key/key-rotation.ts'
import * as dataKeys from '../../../src/store/access/data-keys.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { startCommand } from '../../support/process.ts'
import { testPan } from '../../support/test-pan.ts'
import { insertTokens } from '../../workers/reseal/tokens.ts'
import { cli } from '../command-bench.ts'

const TOKENS = 600

describeOnRedis('key compromise fingerprint', engine => {
  let installation: Installation
  let tokens: string[]
  beforeAll(async () => {
    installation = await openInstallation(engine)
    tokens = await insertTokens(installation.vault.store, installation.vault.ring, installation.scope, TOKENS)
    await installation.openWorkers()
    const client = await installation.connect()
    const card = await client.encryptCard({ cardNumber: testPan(TOKENS), expiryMonth: 12, expiryYear: 2031 })
    const analytics = { token_scope: installation.scope, token_type: 'ANALYTICS', ...card }
    expect(await client.call('token-create', analytics)).toMatchObject({ code: 200 })
  })
  afterAll(() => installation?.close())

  const run = (...words: string[]) => cli(['key', ...words], { env: installation.env })
  const ask = async <R>(text: string) => (await installation.vault.store.query<R>({ text })).rows
  const states = async () =>
    (await dataKeys.list(installation.vault.store))
      .filter(({ purpose }) => purpose === 'fingerprint')
      .map(({ version, state }) => `${version} ${state}`)
  const cards = () =>
    ask<{ version: number; rows: number }>('select version, count(*) as rows from tokenmill.card group by 1 order by 1')
  const exposedIn = async (path: string) => (await readFile(path, 'utf8')).trimEnd().split('\n').slice(1).sort()
  const killedAfter = async (words: string[], line: RegExp) => {
    const child = startCommand(['key', ...words], { env: installation.env as Record<string, string> })
    await child.line(line, { stream: 'stderr' })
    await child.kill9()
  }

  it('turns the key to a fresh version in one command, and lists every token with a card', async () => {
    const by = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const
    expect(await beginRotation(installation.vault, 'fingerprint', by)).toMatchObject({ version: 2 })
    await killedAfter(['compromise', 'fingerprint', '--yes'], /Cards are written under fingerprint\/3, too/)
    expect(await states()).toEqual(['1 ACTIVE', '2 DESTROYED', '3 PENDING'])
    // The list can't be written to an existing file, so the former fingerprints stay.
    const taken = join(installation.dataDir, 'taken.csv')
    await writeFile(taken, '')
    const stopped = await run('compromise', 'fingerprint', '--yes', '--out', taken)
    expect(stopped).toMatchObject({ status: 1, stderr: expect.stringContaining('exists already') })
    expect((await installation.vault.lives.read()).phase).toMatchObject({ phase: 'NEW', writes: [3], looks: [3, 1] })
    expect(await cards()).toEqual([
      { version: 1, rows: TOKENS + 1 },
      { version: 3, rows: TOKENS },
    ])
    expect(await run('rotate', 'fingerprint')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('run `tokenmill key compromise fingerprint`'),
    })
    const out = join(installation.dataDir, 'exposed.csv')
    const ended = await run('compromise', 'fingerprint', '--yes', '--out', out, '--json')
    expect(ended).toMatchObject({ status: 0 })
    expect(ended.json()).toEqual({
      purpose: 'fingerprint',
      version: 1,
      exposed: { 'card.fp': TOKENS + 1 },
      file: out,
    })
    const [kept] = await ask<{ token_id: string }>('select token_id from tokenmill.card where version = 1')
    expect(await exposedIn(out)).toEqual([...tokens, kept?.token_id].map(id => `card.fp,${id}`).sort())
    expect(await states()).toEqual(['1 DECRYPT_ONLY', '2 DESTROYED', '3 ACTIVE'])
    expect((await installation.vault.lives.read()).phase).toMatchObject({ phase: 'SINGLE', writes: [3], looks: [3, 1] })
    expect(await cards()).toEqual([
      { version: 1, rows: 1 },
      { version: 3, rows: TOKENS },
    ])
    const steps = await ask<{ step: string }>(
      `select detail ->> 'step' as step from tokenmill.audit
where action = 'data-key.compromise' and outcome = 'done' order by audit_id`,
    )
    expect(steps.map(({ step }) => step)).toEqual(['begin', 'begin', 'begin', 'list', 'end'])
  })

  it('ends a rotation that was under way, and says that its version is to be replaced, too', async () => {
    await killedAfter(['rotate', 'fingerprint'], /Cards are written under fingerprint\/4, too/)
    const first = await run('compromise', 'fingerprint', '--yes')
    expect(first).toMatchObject({
      status: 1,
      stdout: expect.stringContaining(`fingerprint/3 exposed ${TOKENS} in card.fp`),
      stderr: expect.stringContaining('made before fingerprint/3 was marked'),
    })
    expect(await states()).toEqual(['1 DECRYPT_ONLY', '2 DESTROYED', '3 DECRYPT_ONLY', '4 ACTIVE'])
    const second = await run('compromise', 'fingerprint', '--yes')
    expect(second).toMatchObject({
      status: 0,
      stdout: expect.stringContaining(`fingerprint/4 exposed ${TOKENS} in card.fp`),
    })
    expect((await states()).slice(3)).toEqual(['4 DECRYPT_ONLY', '5 ACTIVE'])
    const by = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const
    expect(await beginBoth(installation.vault, 2, by)).toEqual({ refused: 'raced' })
    expect(await cards()).toEqual([
      { version: 1, rows: 1 },
      { version: 5, rows: TOKENS },
    ])
  })
})
