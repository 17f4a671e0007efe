// The program in docs/upstream.md is run as it stands there, by a user that has the rights which that page gives it.
// The worker is scripted and checks each envelope as the real one does.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { readCredentials } from '../../producers/client/client-file.ts'
import { connect } from '../../producers/client.ts'
import { isRefusal } from '../../src/errors.ts'
import { type Result, sealResult } from '../../src/job/answer/result.ts'
import { resultsQueue } from '../../src/job/catalogue.ts'
import { jobId } from '../../src/job/envelope/ids.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { openRedis } from '../../src/queue/open-redis.ts'
import { openCard } from '../../src/vault/capture/open-card.ts'
import { kidOf, sealCaptureStatement, withStatement } from '../../src/vault/capture/statement.ts'
import { describeRedis } from '../support/engines.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import {
  type FakeWorker,
  fakeWorker,
  lifecycle,
  makeNextKey,
  makeParties,
  type Parties,
  silent,
  TOKEN,
} from './bundle.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const page = readFileSync(join(root, 'docs/upstream.md'), 'utf8')

/** The page's one block of this language that starts so. */
function block(language: string, start = ''): string {
  const blocks = [...page.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)]
  const found = blocks.filter(([, name, code = '']) => name === language && code.startsWith(start))
  expect(found).toHaveLength(1)
  return found[0]?.[2] ?? ''
}

describeRedis('docs/upstream.md', () => {
  const prefix = '{tokenmill}'
  let server: RedisServer
  let queues: Queues
  let parties: Parties
  let worker: FakeWorker | undefined
  let dir: string

  beforeEach(async () => {
    server = await startRedis()
    queues = await openRedis([server.url], { prefix, lockMs: 30_000, log: silent })
    parties = await makeParties()
    dir = mkdtempSync(join(tmpdir(), 'upstream-'))
    symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'))
    await writeFile(parties)
    const { clientId } = parties.credentials.signingKey
    const rule = block('', 'user shop').replace('CLIENT_ID', clientId).replace('PASSWORD', 'secret')
    const admin = new Redis(server.url)
    await admin.call('ACL', 'SETUSER', ...aclOf(rule))
    admin.disconnect()
  })
  afterEach(async () => {
    await worker?.close()
    await queues.close()
    await server.stop()
    rmSync(dir, { recursive: true, force: true })
  })

  const clientFile = () => join(dir, 'client.json')
  const ownUrl = () => server.url.replace('//', '//shop:secret@')

  async function writeFile({
    credentials,
    clientJwk,
    installation,
    installationJwk,
    captureJwk,
  }: Parties): Promise<void> {
    writeFileSync(join(dir, 'signing.jwk'), JSON.stringify(clientJwk))
    const { audience, entityId } = credentials
    const publicKey = JSON.stringify(captureJwk)
    const key = { alias: 'shop-1', entityId, kid: await kidOf(publicKey), until: Date.now() + 86_400_000 }
    const statement = sealCaptureStatement({ audience, key, now: Date.now() }, installation)
    writeFileSync(join(dir, 'capture.jwk'), withStatement(publicKey, statement))
    const file = {
      client_id: credentials.signingKey.clientId,
      user_id: credentials.userId,
      entity_id: credentials.entityId,
      signing_key_file: 'signing.jwk',
      token_scope: credentials.entityId,
      capture_keys: { jwe: { alias: 'shop-1', public_key_file: 'capture.jwk' } },
      base_url: credentials.baseUrl,
      audience: credentials.audience,
      installation_keys: { keys: [installationJwk] },
    }
    writeFileSync(clientFile(), JSON.stringify(file))
  }

  async function runExample(jti: string): Promise<Result> {
    writeFileSync(join(dir, 'upstream.ts'), block('ts'))
    const env = { ...process.env, REDIS_URL: ownUrl(), CLIENT_FILE: clientFile(), TOKENMILL_PREFIX: prefix, JTI: jti }
    const child = spawn(process.execPath, ['upstream.ts'], { cwd: dir, env, stdio: ['ignore', 'pipe', 'pipe'] })
    const code = new Promise(resolve => child.once('exit', resolve))
    const [printed, complaints] = await Promise.all([text(child.stdout), text(child.stderr)])
    expect({ code: await code, complaints }).toEqual({ code: 0, complaints: '' })
    return JSON.parse(printed) as Result
  }

  it('holds a program that creates a token, and gets the same answer when it is run again', async () => {
    const opener = { alias: 'shop-1', type: 'jwe-rsa', kid: '', privateKey: parties.capturePrivate } as const
    worker = fakeWorker(queues, parties, ['token-create'], async ({ claims }, tell) => {
      const opened = await openCard(String(claims.request['encrypted_card']), opener)
      const isCard = !isRefusal(opened) && opened.reveal().includes('4111111111111111')
      await tell({ record: { reuse_token: TOKEN, opened: isCard } })
      return undefined
    })
    const first = await runExample('order-1')
    const again = await runExample('order-1')
    expect(first).toMatchObject({ status: 'SUCCEEDED', jti: 'order-1', record: { reuse_token: TOKEN, opened: true } })
    expect(again.result_id).toBe(first.result_id)
    const { clientId } = parties.credentials.signingKey
    expect(worker?.seen.map(({ id }) => id)).toEqual([jobId(clientId, 'order-1'), jobId(clientId, 'order-1')])
  })

  it('holds a program that takes over the keys that the installation announces, and puts off what it cannot verify', async () => {
    const next = makeNextKey(parties)
    const stranger = makeNextKey(await makeParties())
    const { clientId } = parties.credentials.signingKey
    const unknown = { body: '{}', jws: sealResult('{}', { clientId, resultId: '', revision: 1 }, stranger.key).jws }
    const inbox = resultsQueue(clientId, 'example')
    await queues.add(inbox, { id: 'r_unknown', data: { ...unknown, new_keys: [stranger.statement] } })
    worker = fakeWorker(queues, { ...parties, installation: next.key, newKeys: [next.statement] }, ['token-create'])
    expect(await runExample('order-1')).toMatchObject({ status: 'SUCCEEDED', jti: 'order-1' })
    expect(await queues.stateOf(inbox, 'r_unknown')).toBe('delayed')
    await worker.close()
    worker = fakeWorker(queues, { ...parties, installation: next.key }, ['token-create'])
    expect(await runExample('order-2')).toMatchObject({ status: 'SUCCEEDED', jti: 'order-2' })
    expect([...(await readCredentials(clientFile())).installationKeys.keys()]).toEqual(['inst-1', next.key.kid])
  })

  it('gives rights that our own client library can do with, and that end at other queues', async () => {
    worker = fakeWorker(queues, parties, ['token-lifecycle'])
    const credentials = await readCredentials(clientFile())
    const client = await connect({ redisUrl: ownUrl(), credentials, log: silent, replyTo: 'own' })
    try {
      expect((await client.call('token-lifecycle', lifecycle())).status).toBe('SUCCEEDED')
      const reportRequest = {
        report_type: 'INVOICE',
        entity_id: credentials.entityId,
        parameters: {},
        mime_type: 'text/csv',
      }
      await expect(client.submit('report', reportRequest)).rejects.toThrow()
      expect((await queues.depth('report')).waiting).toBe(0)
      await queues.setNotice('live-keys', 'a list', 20_000)
      const own = await openRedis([ownUrl()], { prefix, lockMs: 30_000, log: silent })
      expect(await own.notice('live-keys')).toEqual({ text: 'a list', permitted: true })
      await expect(own.setNotice('live-keys', 'mine', 20_000)).rejects.toThrow()
      await own.close()
    } finally {
      await client.close()
    }
  })
})

/** The words of a rule in an ACL file, a selector being one word. */
function aclOf(rule: string): string[] {
  const [, ...words] = rule.match(/\([^)]*\)|\S+/g) ?? []
  return words
}
