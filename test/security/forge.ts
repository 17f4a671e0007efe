// Makes jobs with any header, payload and signature, and puts them straight into a queue. A desk collects their
// answers.
import { createPrivateKey, generateKeyPairSync, type JsonWebKey, type KeyObject, randomUUID, sign } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Credentials } from '../../producers/client/client-file.ts'
import type { Client } from '../../producers/client.ts'
import type { Result } from '../../src/job/answer/result.ts'
import { ROLES } from '../../src/job/catalogue.ts'
import { JOB_TYP } from '../../src/job/envelope/envelope.ts'
import { jobId, receiptId } from '../../src/job/envelope/ids.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { until } from '../support/until.ts'

export type Json = Record<string, unknown>

export interface Forged {
  header?: Json
  /** Replace claims of a good job; undefined leaves a claim out. */
  claims?: Json
  /** The payload, instead of claims. */
  payload?: string | Buffer
  key?: KeyObject
  block?: string
  /** The queue it is put into; that of its kind. */
  queue?: string
}

/** The claims of a good job of this client; `over` replaces some of them. */
export function claimsOf({ signingKey, userId, entityId, audience }: Credentials, over: Json = {}): Json {
  const iat = Math.floor(Date.now() / 1000)
  const claims: Json = {
    iss: signingKey.clientId,
    aud: audience,
    sub: userId,
    entity_id: entityId,
    roles: ROLES,
    iat,
    jti: `f-${randomUUID()}`,
    kind: 'token-lifecycle',
    request: { id: `t${'0'.repeat(26)}`, action: 'SUSPEND' },
    ...over,
  }
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined))
}

/** A compact JWS, signed with the client's own (Ed25519) key unless told otherwise. */
export function forge(credentials: Credentials, { header = {}, claims = {}, payload, key }: Forged = {}): string {
  const { kid, privateKey } = credentials.signingKey
  const head = Object.fromEntries(
    Object.entries({ alg: 'EdDSA', kid, typ: JOB_TYP, ...header }).filter(([, value]) => value !== undefined),
  )
  const body = payload ?? JSON.stringify(claimsOf(credentials, claims))
  const signed = `${base64url(JSON.stringify(head))}.${base64url(body)}`
  return `${signed}.${sign(null, Buffer.from(signed), key ?? privateKey).toString('base64url')}`
}

export const base64url = (text: string | Buffer) => Buffer.from(text).toString('base64url')

export function otherKey(): KeyObject {
  return generateKeyPairSync('ed25519').privateKey
}

/** A system client's credentials, from the file that its role holds. */
export async function systemCredentials(dataDir: string, name: string, like: Credentials): Promise<Credentials> {
  const jwk = JSON.parse(await readFile(join(dataDir, 'system', `${name}.jwk`), 'utf8')) as JsonWebKey & { kid: string }
  const privateKey = createPrivateKey({ key: jwk, format: 'jwk' })
  return { ...like, signingKey: { clientId: name, kid: jwk.kid, alg: 'EdDSA', privateKey } }
}

export interface Desk {
  /** Every answer so far to this jti. */
  answersTo(jti: string): Result[]
  /** Waits for the answer that follows the first `after` answers. */
  answer(jti: string, options?: { after?: number; ms?: number }): Promise<Result>
  /** All answers that have arrived. */
  all(): Result[]
}

/**
 * Takes all results of this client's default queue, which the client library verifies. `forWhom`: the client that the
 * receipts belong to.
 */
export function openDesk(client: Client, forWhom = client.clientId): Desk {
  const found = new Map<string, Result[]>()
  client.results(delivery => {
    if (delivery.type !== 'result') return
    found.set(delivery.receipt_id, [...(found.get(delivery.receipt_id) ?? []), delivery])
  })
  const answersTo = (jti: string) => found.get(receiptId(forWhom, jti)) ?? []
  return {
    answersTo,
    all: () => [...found.values()].flat(),
    answer: (jti, { after = 0, ms = 300_000 } = {}) =>
      until(() => answersTo(jti)[after], { ms, what: `an answer to ${jti.slice(0, 60)}` }),
  }
}

/** Puts a job into its queue as it is. Returns its id there. */
export async function put(queues: Queues, kind: string, data: unknown, id?: string): Promise<string> {
  const named = id ?? `j_${randomUUID()}`
  await queues.add(kind, { id: named, data })
  return named
}

/** A forged job of this client under its proper id, and its jti. */
export async function send(queues: Queues, credentials: Credentials, forged: Forged = {}): Promise<string> {
  const { kind, jti } = claimsOf(credentials, { jti: `f-${randomUUID()}`, ...forged.claims }) as {
    kind: string
    jti: string
  }
  const jws = forge(credentials, { ...forged, claims: { ...forged.claims, jti } })
  const data = forged.block === undefined ? { jws } : { jws, block: forged.block }
  await put(
    queues,
    forged.queue ?? kind,
    data,
    typeof jti === 'string' ? jobId(credentials.signingKey.clientId, jti) : undefined,
  )
  return jti
}
