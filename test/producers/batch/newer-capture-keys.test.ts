// A list is encrypted to the capture key that the client was given last, as a single card is.
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type Client, connect } from '../../../clients/node/connect.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import { openRedis } from '../../../src/queue/open-redis.ts'
import { kidOf, sealCaptureStatement, withStatement } from '../../../src/vault/capture/statement.ts'
import { describeRedis, redisUrl } from '../../support/engines.ts'
import { until } from '../../support/until.ts'
import { type FakeWorker, fakeWorker, makeParties, type Parties, silent } from '../bundle.ts'

describeRedis('a client that took newer capture keys', () => {
  let parties: Parties
  let queues: Queues
  let worker: FakeWorker
  let client: Client

  /** A public capture key with the installation's statement about it. */
  async function stated(jwk: Record<string, unknown>): Promise<Record<string, unknown>> {
    const text = JSON.stringify(jwk)
    const { audience, entityId } = parties.credentials
    const key = { alias: String(jwk['kid']), entityId, kid: await kidOf(text), until: Date.now() + 86_400_000 }
    const statement = sealCaptureStatement({ audience, key, now: Date.now() }, parties.installation)
    return JSON.parse(withStatement(text, statement))
  }

  beforeEach(async () => {
    parties = await makeParties()
    const prefix = `{newer-keys-${process.pid}-${randomBytes(4).toString('hex')}}`
    queues = await openRedis([redisUrl() ?? ''], { prefix, lockMs: 30_000, log: silent })
    worker = fakeWorker(queues, parties, ['token-batch'])
    const { credentials, installationJwk, clientJwk, captureJwk } = parties
    client = await connect({
      redisUrl: redisUrl() ?? '',
      prefix,
      replyTo: 'own',
      credentials: {
        file: {
          client_id: credentials.signingKey.clientId,
          user_id: credentials.userId,
          entity_id: credentials.entityId,
          signing_key_file: null,
          capture_keys: { jwe: { alias: 'shop-1', public_key_file: 'elsewhere' } },
          base_url: credentials.baseUrl,
          audience: credentials.audience,
          installation_keys: { keys: [installationJwk] },
        },
        signingKey: clientJwk,
        captureKeys: { jwe: await stated(captureJwk) },
      },
    })
  })
  afterEach(async () => {
    await client?.close()
    await worker?.close()
    await queues?.close()
  })

  /** The alias of the key to which the block of a list is encrypted. */
  async function aliasOfList(batchId: string): Promise<unknown> {
    const seen = worker.seen.length
    const sending = client.batch({ kind: 'token-lifecycle', batchId }, [{ id: 'x', action: 'SUSPEND' }]).next()
    sending.catch(() => {}) // The scripted worker answers without records.
    await until(() => worker.seen.length > seen)
    const block = worker.seen.at(-1)?.claims.request['block'] as { public_key_alias?: string } | undefined
    return block?.public_key_alias
  }

  it('encrypts lists to them', async () => {
    expect(await aliasOfList('before')).toBe('shop-1')
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const jwk = { ...publicKey.export({ format: 'jwk' }), alg: 'RSA-OAEP-256', use: 'enc', kid: 'shop-2' }
    await client.takeCaptureKeys({ keys: [await stated(jwk)], openpgp: [] })
    expect(await aliasOfList('after')).toBe('shop-2')
  })
})
