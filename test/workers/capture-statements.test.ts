// Capture keys that a client fetches while the installation's signing key is replaced, and from an attacker between the
// installation and the client.
import { createPrivateKey, type JsonWebKey, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openInstallationKey } from '../../cli/open/installation-key.ts'
import { ConfigError } from '../../src/config.ts'
import { openLog } from '../../src/log.ts'
import * as captureKeys from '../../src/store/access/capture-keys.ts'
import * as signingKeys from '../../src/store/access/signing-keys.ts'
import { makeCaptureKey } from '../../src/vault/capture/capture-key.ts'
import { kidOf, sealCaptureStatement } from '../../src/vault/capture/statement.ts'
import { makeSigningKey } from '../../src/vault/client-key.ts'
import { sealStatement } from '../../src/vault/key-statement.ts'
import { tendCaptureKeys } from '../../workers/process/capture-keys.ts'
import { cli } from '../cli/command-bench.ts'
import { type Caller, openGatewayFor } from '../producers/gateway/bundle.ts'
import { describeOnRedis } from '../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'

const CARD = { cardNumber: '4111111111111111', expiryMonth: 12, expiryYear: 2031 }

describeOnRedis('the statement about a capture key', engine => {
  let installation: Installation
  let caller: Caller
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['interactive'] })
    caller = await openGatewayFor(installation)
  })
  afterAll(async () => {
    await caller?.close()
    await installation?.close()
  })

  const published = async () =>
    (await caller.call('GET', `/oidc/.well-known/capture-keys?entity_id=${ENTITY}`, { authorization: null })).body
  const alias = () => installation.credentials.captureKeys.jwe?.alias ?? ''

  it('is worth nothing by a key that only its forger announces', async () => {
    const { kid, alg, publicJwk, privateJwk } = makeSigningKey()
    const forger = { kid, alg, privateKey: createPrivateKey({ key: privateJwk.reveal() as JsonWebKey, format: 'jwk' }) }
    const { audience } = installation.credentials
    const { publicKey } = await makeCaptureKey('jwe-rsa', alias(), installation.vault.halves)
    const stated = { alias: alias(), entityId: ENTITY, kid: await kidOf(publicKey), until: Date.now() + 3_600_000 }
    const statement = sealCaptureStatement({ audience, key: stated, now: Date.now() }, forger)
    const announced = sealStatement({ audience, publicJwk, from: 0, now: 0 }, forger)
    const client = await installation.connect()
    const forged = { keys: [{ ...JSON.parse(publicKey), statement }], openpgp: [], new_keys: [announced] }
    await expect(client.takeCaptureKeys(forged)).rejects.toThrow(ConfigError)
    for (const none of [{}, { keys: [], openpgp: [] }])
      await expect(client.takeCaptureKeys(none)).rejects.toThrow(ConfigError)
  })

  it('is of no use once it has ended', async () => {
    const late = await installation.connect({ clock: () => Date.now() + 31 * 86_400_000 })
    await expect(late.takeCaptureKeys(await published())).rejects.toThrow('ended at')
  })

  it('is made, and lines turn, beside a line that somebody changed', async () => {
    const { store, halves, ring } = installation.vault
    const run = (...words: string[]) => cli(['capture-key', ...words], { env: installation.env })
    const entity = randomUUID()
    for (const name of ['bad', 'good']) await run('add', name, '--entity', entity, '--type', 'jwe-ec')
    await run('turning', entity, '--every', '90')
    const [bad] = await captureKeys.findLine(store, 'bad')
    const foreign = (await makeCaptureKey('jwe-ec', 'bad', halves)).publicKey
    const set = `update tokenmill.capture_key set public_key = $2 where key_id = $1`
    await store.query({ text: set, values: [bad?.keyId, foreign] })
    const { audience } = installation.session.config
    const stating = { ring, signing: await openInstallationKey(store, halves), audience }
    const clock = () => Date.now() + 91 * 86_400_000
    await tendCaptureKeys({ store, halves, stating: () => stating, clock, log: openLog('silent') })
    const numbers = async (name: string) => (await captureKeys.findLine(store, name)).map(({ number }) => number)
    expect([await numbers('bad'), await numbers('good')]).toEqual([[1], [2, 1]])
    const refused = await store.query({
      text: `select from tokenmill.audit where outcome <> 'done' and subject = 'bad'`,
    })
    expect(refused.rows).toEqual([])
    await store.query({ text: set, values: [bad?.keyId, bad?.publicKey] })
  })

  it('is renewed when another key signs, and believed by a client that never read of that key', async () => {
    const { store } = installation.vault
    const rotated = await cli(['key', 'rotate', 'signing', '--now', '--yes'], { env: installation.env })
    expect(rotated.status).toBe(0)
    const signer = (await signingKeys.findPublic(store)).find(({ state }) => state === 'ACTIVE')?.kid
    // `show` states a key at once, as a worker does within a minute.
    for (const key of await captureKeys.list(store, ENTITY))
      expect(await cli(['capture-key', 'show', key.alias], { env: installation.env })).toMatchObject({ status: 0 })
    expect((await captureKeys.list(store, ENTITY)).map(({ statedBy }) => statedBy)).toEqual([signer, signer])

    const { new_keys: newKeys, ...rest } = await published()
    expect(newKeys).toHaveLength(1)
    const client = await installation.connect()
    await expect(client.takeCaptureKeys(rest)).rejects.toThrow(ConfigError)
    await client.takeCaptureKeys({ ...rest, new_keys: newKeys })
    const made = await client.call('token-create', {
      token_scope: installation.scope,
      ...(await client.encryptCard(CARD)),
    })
    expect(made.status).toBe('SUCCEEDED')
  })
})
