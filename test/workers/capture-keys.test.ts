// Capture keys are replaced: senders with a former key go on, a key that somebody else put into the database is
// refused, and workers replace the keys of an entity if an operator switched that on.
import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openInstallationKey } from '../../cli/open/installation-key.ts'
import { type Credentials, readCredentials } from '../../producers/client/client-file.ts'
import type { Client } from '../../producers/client.ts'
import { tokenBatch } from '../../producers/token-batch.ts'
import { IDLE_MS } from '../../src/acts/capture-keys.ts'
import { ConfigError } from '../../src/config.ts'
import { openLog } from '../../src/log.ts'
import * as captureKeys from '../../src/store/access/capture-keys.ts'
import { makeCaptureKey } from '../../src/vault/capture/capture-key.ts'
import { encryptCard, type PublicCaptureKey, readPublicCaptureKey } from '../../src/vault/capture/encrypt.ts'
import { KEYS_MAX } from '../../src/vault/capture/keys-max.ts'
import { statementIn } from '../../src/vault/capture/statement.ts'
import { tendCaptureKeys } from '../../workers/process/capture-keys.ts'
import { cli } from '../cli/command-bench.ts'
import { type Caller, openGatewayFor } from '../producers/gateway/bundle.ts'
import { describeStore } from '../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'
import { testPan } from '../support/test-pan.ts'
import { until } from '../support/until.ts'
import type { OpenedWorkers } from '../support/workers.ts'
import { writeBatch } from '../support/write-batch.ts'

const DAY_MS = 86_400_000
const OTHER = '7b2a6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'

describeStore('a capture key that turns', engine => {
  let installation: Installation
  let caller: Caller
  let client: Client
  let workers: OpenedWorkers
  /** The credentials before any rotation. */
  let before: Credentials
  let jwe: PublicCaptureKey
  let pgp: PublicCaptureKey
  let cards = 0

  beforeAll(async () => {
    installation = await openInstallation(engine)
    workers = await installation.openWorkers()
    caller = await openGatewayFor(installation)
    client = await installation.connect()
    before = installation.credentials
    if (!before.captureKeys.jwe || !before.captureKeys.pgp) throw new Error('a client has a key of each form')
    ;({ jwe, pgp } = { jwe: before.captureKeys.jwe, pgp: before.captureKeys.pgp })
  })
  afterAll(async () => {
    await caller?.close()
    await installation?.close()
  })

  const store = () => installation.vault.store
  const run = (...words: string[]) => cli(['capture-key', ...words], { env: installation.env })
  const lineOf = (alias: string) => captureKeys.findLine(store(), alias)
  const freshCard = () => {
    cards += 1
    return { cardNumber: testPan(cards), expiryMonth: 12, expiryYear: 2031, captureTime: new Date().toISOString() }
  }
  async function create(to: PublicCaptureKey): Promise<string> {
    const card = { encrypted_card: await encryptCard(freshCard(), to), public_key_alias: to.alias }
    return (await client.call('token-create', { token_scope: installation.scope, ...card })).status
  }
  /** Backdates keys, because a further key is handed out only 10 s after it was made. */
  const settle = () =>
    store().query({ text: `update tokenmill.capture_key set created_at = created_at - interval '1 minute'` })
  const published = async () =>
    (await caller.call('GET', `/oidc/.well-known/capture-keys?entity_id=${ENTITY}`, { authorization: null })).body
  const statingNow = async () => ({
    ring: installation.vault.ring,
    signing: await openInstallationKey(store(), installation.vault.halves),
    audience: installation.session.config.audience,
  })
  async function tend(now = Date.now()): Promise<void> {
    const stating = await statingNow()
    const { halves } = installation.vault
    await tendCaptureKeys({ store: store(), halves, stating: () => stating, clock: () => now, log: openLog('silent') })
  }

  it('goes on for a page, a sender and blocks that hold the key from before, in both forms', async () => {
    for (const form of [jwe, pgp]) {
      const rotated = await run('rotate', form.alias, '--json')
      expect(rotated).toMatchObject({ status: 0, stderr: expect.stringContaining(`${form.alias}/2 is made`) })
      expect(rotated.json()).toMatchObject({ alias: form.alias, number: 2, is_new: true, entity_id: ENTITY })
    }
    // Making both keys may have taken longer than the ten seconds in which the former one is still published.
    await store().query({
      text: `update tokenmill.capture_key set created_at = now() + interval '30 s' where number = 2`,
    })
    expect(await published()).toMatchObject({ keys: [{ n: (await jwkOf(jwe.alias, 1))['n'] }] })
    await settle()
    const shown = await published()
    expect(shown).toMatchObject({ keys: [{ kid: jwe.alias, n: (await jwkOf(jwe.alias, 2))['n'] }] })
    const [newJwe, newPgp] = await Promise.all([jwe, pgp].map(async ({ alias }) => newestOf(alias)))
    if (!newJwe || !newPgp) throw new Error('each line has a key')
    // Workers read a line anew after 4 s.
    await until(async () => (await create(newJwe)) === 'SUCCEEDED')
    await until(async () => (await create(newPgp)) === 'SUCCEEDED')
    for (const to of [jwe, { ...newJwe, kid: 'unknown' }, pgp, newPgp]) expect(await create(to)).toBe('SUCCEEDED')
    for (const to of [jwe, newJwe])
      expect(
        await writeBatch(client, { ...installation, credentials: { ...before, captureKeys: { jwe: to, pgp } } }, [
          { ...freshCard(), captureTime: undefined },
        ]),
      ).toEqual(['CREATED'])
  })

  async function jwkOf(alias: string, number: number): Promise<Record<string, unknown>> {
    const key = (await lineOf(alias)).find(one => one.number === number)
    return JSON.parse(key?.publicKey ?? '{}') as Record<string, unknown>
  }
  async function newestOf(alias: string): Promise<PublicCaptureKey> {
    return readPublicCaptureKey(alias, (await lineOf(alias))[0]?.publicKey ?? '')
  }

  it('takes a migration whose rows are encrypted to the former and to the newer OpenPGP key', async () => {
    const lines = await Promise.all(
      [pgp, await newestOf(pgp.alias)].map(async (to, index) => {
        const encrypted = { encrypted_card: await encryptCard(freshCard(), to), public_key_alias: to.alias }
        return JSON.stringify({ line: index + 2, request: encrypted })
      }),
    )
    const acceptedAt = Math.floor(Date.now() / 1000)
    const batch = { batchId: randomUUID(), recordKind: 'token-create' as const, tokenScope: installation.scope }
    const ask = await tokenBatch(client.clientId, { ...batch, acceptedAt, captureKey: jwe }, { lines, number: 0 })
    if ('refused' in ask) throw new Error(ask.reason)
    const { records } = await client.call('token-batch', ask.request, { jti: ask.jti, block: ask.block })
    expect(records?.map(({ outcome }) => outcome)).toEqual(['CREATED', 'CREATED'])
  })

  it('shows when each key was last used, and by whom', async () => {
    // A worker writes uses once a minute, and when it ends.
    await workers.close()
    workers = await installation.openWorkers()
    const listed = (await run('list', '--json')).json<Record<string, unknown>[]>()
    const used = { last_used_at: expect.any(String), last_used_by: before.signingKey.clientId }
    expect(listed.filter(({ alias }) => alias === jwe.alias)).toMatchObject([
      { number: 1, ...used },
      { number: 2, ...used },
    ])
  })

  it('is taken over by a client that fetches it, with the statement of the installation', async () => {
    await tend()
    const document = await published()
    await client.takeCaptureKeys(document)
    const { encrypted_card: encrypted } = await client.encryptCard(freshCard())
    const header = JSON.parse(Buffer.from(encrypted.split('.')[0] ?? '', 'base64url').toString())
    expect(header.kid).toMatch(/^[\w-]{43}$/)
    expect(header.kid).not.toBe(jwe.alias)
    const made = await client.call('token-create', {
      token_scope: installation.scope,
      encrypted_card: encrypted,
      public_key_alias: jwe.alias,
    })
    expect(made.status).toBe('SUCCEEDED')
  })

  it('is refused by the library where somebody put another in its place, on the way or in the store', async () => {
    const document = await published()
    const forged = await makeCaptureKey('jwe-rsa', jwe.alias, installation.vault.halves)
    const half = JSON.parse(forged.publicKey) as Record<string, unknown>
    const { keys, ...rest } = document as { keys: Record<string, unknown>[] }
    const [genuine] = keys
    const ways = [
      { ...genuine, n: half['n'] },
      { ...genuine, n: half['n'], statement: undefined },
      { ...genuine, kid: 'another' },
      { ...genuine, statement: undefined },
    ]
    const other = await installation.connect()
    for (const key of ways) await expect(other.takeCaptureKeys({ ...rest, keys: [key] })).rejects.toThrow(ConfigError)
    await expect(other.takeCaptureKeys({ ...rest, keys: [ways[0], genuine] })).rejects.toThrow(ConfigError)
    expect((await other.encryptCard(freshCard())).public_key_alias).toBe(jwe.alias)

    // The key is changed in the store: the gateway doesn't hand it out, and workers and commands treat the row as absent.
    const [newest] = await lineOf(jwe.alias)
    await store().query({
      text: 'update tokenmill.capture_key set public_key = $2 where key_id = $1',
      values: [newest?.keyId, forged.publicKey],
    })
    expect(await published()).toMatchObject({ keys: [], openpgp: [{}] })
    expect(await run('show', jwe.alias)).toMatchObject({
      status: 78,
      stderr: expect.stringContaining('was not written by'),
    })
    expect(await run('rotate', jwe.alias, '--again')).toMatchObject({ status: 78 })
    await store().query({
      text: `update tokenmill.capture_key set statement = null, stated_by = null, stated_until = null where key_id = $1`,
      values: [newest?.keyId],
    })
    await tend()
    expect((await lineOf(jwe.alias))[0]?.statement).toBeNull()
    await store().query({
      text: 'update tokenmill.capture_key set public_key = $2 where key_id = $1',
      values: [newest?.keyId, newest?.publicKey],
    })
    await tend()
    await other.takeCaptureKeys(await published())
  })

  it('is refused in a file where the statement is of another key, or where there is none', async () => {
    const { clientFile } = await installation.addClient('with-files')
    const file = JSON.parse(await readFile(clientFile, 'utf8'))
    const path = file.capture_keys.jwe.public_key_file
    const stated = await readFile(path, 'utf8')
    const forged = JSON.parse((await makeCaptureKey('jwe-rsa', jwe.alias, installation.vault.halves)).publicKey)
    expect((await readCredentials(clientFile)).captureKeys.jwe?.kid).toMatch(/^[\w-]{43}$/)
    await writeFile(path, JSON.stringify({ ...JSON.parse(stated), n: forged.n }))
    await expect(readCredentials(clientFile)).rejects.toThrow('is not the one that the installation signed')
    const { statement: _, ...unsigned } = JSON.parse(stated)
    await writeFile(path, JSON.stringify(unsigned))
    await expect(readCredentials(clientFile)).rejects.toThrow('has no statement of the installation')
    expect(dirname(path)).toBe(join(installation.dataDir, 'clients', 'with-files'))
  })

  it('is stated anew before its statement ends, and when the installation signs with another key', async () => {
    const [newest] = await lineOf(jwe.alias)
    await tend()
    expect((await lineOf(jwe.alias))[0]?.statement).toBe(newest?.statement)
    await tend(Date.now() + 11 * DAY_MS)
    const later = (await lineOf(jwe.alias))[0]
    expect(later?.statement).not.toBe(newest?.statement)
    expect(later?.statedUntil).toBeGreaterThan((newest?.statedUntil ?? 0) + 10 * DAY_MS)
    await store().query({ text: `update tokenmill.capture_key set stated_by = 'a former key'` })
    await tend(Date.now() + 12 * DAY_MS)
    expect((await lineOf(jwe.alias)).every(({ statedBy }) => statedBy !== 'a former key')).toBe(true)
  })

  it('turns by itself only for an entity that an operator named, and retires what nobody uses', async () => {
    const alias = 'turning'
    await run('add', alias, '--entity', OTHER, '--type', 'jwe-ec')
    const numbers = async () => (await lineOf(alias)).map(({ number, state }) => `${number} ${state}`)
    await tend(Date.now() + 400 * DAY_MS)
    expect(await numbers()).toEqual(['1 ACTIVE'])
    expect(await run('turning', OTHER)).toMatchObject({ status: 64 })
    expect(await run('turning', OTHER, '--every', '90', '--reason', 'policy')).toMatchObject({ status: 0 })
    await tend(Date.now() + 89 * DAY_MS)
    expect(await numbers()).toEqual(['1 ACTIVE'])
    await tend(Date.now() + 91 * DAY_MS)
    expect(await numbers()).toEqual(['2 ACTIVE', '1 ACTIVE'])

    // A key that was used within 14 days isn't retired; its clients are told once a week.
    const spare = await installation.addClient('spare', { entity: OTHER })
    const { clientId } = spare.credentials.signingKey
    const [, former] = await lineOf(alias)
    const now = Date.now() + IDLE_MS + DAY_MS
    await captureKeys.noteUses(store(), [{ keyId: former?.keyId ?? '', clientId, at: now - DAY_MS }])
    await tend(now)
    await tend(now)
    expect(await numbers()).toEqual(['2 ACTIVE', '1 ACTIVE'])
    const { rows } = await store().query({
      text: `select client_id as client, subject, data from tokenmill.event where type = 'capture-key.in-use'`,
    })
    expect(rows).toEqual([
      { client: clientId, subject: `${alias}/1`, data: expect.objectContaining({ alias, number: 1 }) },
    ])

    // A week later they are told again with a later revision, although the former event was erased.
    const revision = async () => {
      const told = await store().query<{ revision: number }>({
        text: `select revision from tokenmill.event where type = 'capture-key.in-use'`,
      })
      return told.rows.map(row => row.revision)
    }
    const [first = 0] = await revision()
    await store().query({ text: `delete from tokenmill.event where type = 'capture-key.in-use'` })
    await captureKeys.noteUses(store(), [{ keyId: former?.keyId ?? '', clientId, at: now + 7 * DAY_MS }])
    await tend(now + 8 * DAY_MS)
    expect(await revision()).toEqual([first + 8])

    // If no key was used for days, as after a restored backup, uses may not have been noted, so no key is retired.
    await tend(now + IDLE_MS)
    expect(await numbers()).toEqual(['2 ACTIVE', '1 ACTIVE'])
    const keyId = (await lineOf(alias))[0]?.keyId ?? ''
    for (const days of [15, 28]) {
      await captureKeys.noteUses(store(), [{ keyId, clientId, at: now + days * DAY_MS }])
      await tend(now + days * DAY_MS)
      expect(await numbers()).toEqual(['2 ACTIVE', days === 28 ? '1 RETIRED' : '1 ACTIVE'])
    }
    expect(await run('turning', OTHER, '--off')).toMatchObject({ status: 0 })
    expect(await run('turning', OTHER, '--off')).toMatchObject({ status: 1 })
    const audited = await store().query<{ action: string; outcome: string }>({
      text: `select action, outcome from tokenmill.audit where subject in ($1, $2, $3) order by audit_id`,
      values: [OTHER, alias, `${alias}/1`],
    })
    expect(audited.rows.map(({ action, outcome }) => `${action} ${outcome}`)).toEqual([
      'capture-key.add done',
      'capture-key.turning done',
      'capture-key.rotate done',
      'capture-key.retire done',
      'capture-key.turning done',
      'capture-key.turning refused',
    ])
  })

  it('is a line of a bounded length, so that a card is tried with so many keys at most', async () => {
    const alias = 'long'
    await run('add', alias, '--entity', ENTITY, '--type', 'jwe-ec')
    for (let number = 2; number <= KEYS_MAX; number += 1)
      expect(await run('rotate', alias, '--again')).toMatchObject({ status: 0 })
    expect(await run('rotate', alias)).toMatchObject({
      status: 0,
      stderr: expect.stringContaining('nothing was changed'),
    })
    expect(await run('rotate', alias, '--again')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('the most'),
    })
    expect(await lineOf(alias)).toHaveLength(KEYS_MAX)
    expect((await lineOf(alias)).every(({ statement, publicKey }) => statement && !statementIn(publicKey))).toBe(true)
  })
})
