// What the tests of producers share: new keys of a client and an installation, and a scripted worker that checks each
// envelope as a real one does and answers as the test says.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  randomBytes,
  randomUUID,
} from 'node:crypto'
import { pino } from 'pino'
import type { Credentials, Handle } from '../../producers/client.ts'
import { type InstallationKey, type Result, sealResult } from '../../src/job/answer/result.ts'
import { resultsQueue } from '../../src/job/catalogue.ts'
import type { Kind } from '../../src/job/composition.ts'
import { askedOf, envelopeDigest } from '../../src/job/envelope/digest.ts'
import { Claims, JobData, peek, verify } from '../../src/job/envelope/envelope.ts'
import { jobId, receiptId, resultId } from '../../src/job/envelope/ids.ts'
import type { Disposition, Queues, Worker } from '../../src/queue/engine.ts'
import { readPublicCaptureKey } from '../../src/vault/capture/encrypt.ts'
import { makeSigningKey } from '../../src/vault/client-key.ts'
import { sealStatement } from '../../src/vault/key-statement.ts'
import { until } from '../support/until.ts'

export const silent = pino({ level: 'silent' })

export const TOKEN = 't01jd3x8z7q2m4n6p8r0s2t4v6w'
export const lifecycle = (id: string = TOKEN) => ({ id, action: 'SUSPEND' as const })

export interface Parties {
  credentials: Credentials
  installation: InstallationKey
  /** The statements that travel with results. */
  newKeys?: readonly string[]
  /** Private JWK of the client, public JWK of the installation, private half of the capture key. */
  clientJwk: Record<string, unknown>
  installationJwk: Record<string, unknown>
  captureJwk: Record<string, unknown>
  capturePrivate: KeyObject
}

export async function makeParties(): Promise<Parties> {
  const own = generateKeyPairSync('ed25519')
  const theirs = generateKeyPairSync('ed25519')
  const capture = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const clientId = `c${randomBytes(13).toString('hex').slice(0, 25)}`
  const captureJwk = { ...capture.publicKey.export({ format: 'jwk' }), alg: 'RSA-OAEP-256', use: 'enc', kid: 'shop-1' }
  return {
    credentials: {
      userId: randomUUID(),
      entityId: randomUUID(),
      audience: 'tokenmill',
      tokenScope: undefined,
      baseUrl: 'http://127.0.0.1/oidc',
      signingKey: { clientId, kid: 'own-1', alg: 'EdDSA', privateKey: own.privateKey },
      installationKeys: new Map([['inst-1', { alg: 'EdDSA' as const, publicKey: theirs.publicKey }]]),
      captureKeys: { jwe: await readPublicCaptureKey('shop-1', JSON.stringify(captureJwk)), pgp: undefined },
    },
    installation: { kid: 'inst-1', alg: 'EdDSA', privateKey: theirs.privateKey },
    clientJwk: { ...own.privateKey.export({ format: 'jwk' }), kid: 'own-1', alg: 'EdDSA' },
    installationJwk: { ...theirs.publicKey.export({ format: 'jwk' }), kid: 'inst-1', alg: 'EdDSA', use: 'sig' },
    captureJwk,
    capturePrivate: capture.privateKey,
  }
}

export interface Seen {
  id: string
  jws: string
  block: string | undefined
  claims: Claims
}

export interface FakeWorker {
  /** Every envelope that was worked, in order. */
  seen: Seen[]
  /** How many jobs were taken and not yet answered, and the highest such number so far. */
  open: () => number
  openMax: () => number
  close(): Promise<void>
}

/** What the scripted worker does with a job; `answer` publishes a signed result for it. */
export type Script = (seen: Seen, answer: (over?: Partial<Result>) => Promise<void>) => Promise<Disposition | undefined>

const answerAll: Script = async (_, answer) => {
  await answer()
  return undefined
}

export function fakeWorker(queues: Queues, parties: Parties, kinds: Kind[], script: Script = answerAll): FakeWorker {
  const { signingKey } = parties.credentials
  const publicKey = createPublicKey({ key: parties.clientJwk as JsonWebKey, format: 'jwk' })
  const seen: Seen[] = []
  let open = 0
  let openMax = 0
  async function work(id: string, data: unknown): Promise<Disposition> {
    const { jws, block } = JobData.parse(data)
    const peeked = peek(jws)
    if (typeof peeked === 'string') throw new Error(`dropped: ${peeked}`)
    if (!(await verify(jws, { alg: signingKey.alg, publicKey }))) throw new Error('dropped: signature')
    const one = { id, jws, block, claims: Claims.parse(peeked.payload) }
    seen.push(one)
    open += 1
    openMax = Math.max(openMax, open)
    try {
      return (
        (await script(one, over => answer(queues, parties, one.claims, { envelope: envelopeOf(jws), ...over }))) ?? {
          done: true,
        }
      )
    } finally {
      open -= 1
    }
  }
  const workers: Worker[] = kinds.map(kind =>
    queues.work(kind, job => work(job.id, job.data), {
      concurrency: 50,
      onDefect: error => {
        throw error
      },
    }),
  )
  return {
    seen,
    open: () => open,
    openMax: () => openMax,
    close: async () => {
      await Promise.all(workers.map(worker => worker.close(1_000)))
    },
  }
}

/** A key that the installation's key announces. */
export function makeNextKey({ installation, credentials }: Parties): { key: InstallationKey; statement: string } {
  const { kid, alg, publicJwk, privateJwk } = makeSigningKey()
  const privateKey = createPrivateKey({ key: privateJwk.reveal() as JsonWebKey, format: 'jwk' })
  const now = Date.now()
  const { audience } = credentials
  const statement = sealStatement({ audience, publicJwk, from: now + 60_000, now }, installation)
  return { key: { kid, alg, privateKey }, statement }
}

export const envelopeOf = (jws: string) => envelopeDigest(jws).toString('base64url')

/** What the answer to such a job has in `answers`. */
export function answersOf(kind: string, request: Record<string, unknown> = lifecycle()): string {
  return askedOf(kind, request).digest()?.toString('base64url') ?? ''
}

/** The handle of a job that another process has sent, in an envelope that isn't known here. */
export function handleOf({ credentials }: Parties, jti: string, kind = 'token-lifecycle'): Handle {
  const receipt = receiptId(credentials.signingKey.clientId, jti)
  return { jti, receiptId: receipt, kind, answers: answersOf(kind), envelope: envelopeOf('sent elsewhere') }
}

/** Publishes a result as the announcer does. `claims` without a request: that of `lifecycle`. */
export async function answer(
  queues: Queues,
  { credentials, installation, newKeys }: Pick<Parties, 'credentials' | 'installation' | 'newKeys'>,
  claims: Pick<Claims, 'jti' | 'kind' | 'reference' | 'reply_to'> & Partial<Pick<Claims, 'request'>>,
  over: Partial<Result> = {},
): Promise<void> {
  const { clientId } = credentials.signingKey
  const receipt = receiptId(clientId, claims.jti)
  const revision = over.revision ?? 1
  const now = new Date().toISOString()
  const result: Result = {
    v: 1,
    type: 'result',
    result_id: resultId(receipt, revision),
    receipt_id: receipt,
    revision,
    kind: claims.kind,
    jti: claims.jti,
    answers: answersOf(claims.kind, claims.request),
    ...(claims.reference !== undefined && { reference: claims.reference }),
    status: 'SUCCEEDED',
    code: 200,
    record: { reuse_token: TOKEN, token_status: 'SUSPENDED' },
    attempt: 1,
    accepted_at: now,
    completed_at: now,
    ...over,
  }
  const about = { clientId, resultId: result.result_id, revision }
  const data = sealResult(JSON.stringify(result), about, installation, newKeys)
  const copy = createHash('sha256').update(data.jws).update(randomUUID()).digest('base64url')
  await queues.add(resultsQueue(clientId, claims.reply_to), { id: `r_${copy}`, data })
}

/** Publishes the result of a job that lies on its queue, and leaves it there. */
export async function answerWhenSent(
  queues: Queues,
  parties: Parties,
  claims: Pick<Claims, 'jti' | 'kind' | 'reply_to'>,
): Promise<void> {
  const id = jobId(parties.credentials.signingKey.clientId, claims.jti)
  const { data } = await until(() => queues.get(claims.kind, id), { what: `the job ${claims.jti}` })
  await answer(queues, parties, claims, { envelope: envelopeOf((data as { jws: string }).jws) })
}
