// Makes cards with owners by jobs of an installation's client, and reads them from the store.
import { randomBytes, randomUUID } from 'node:crypto'
import type { Ask } from '../../../producers/ask.ts'
import type { Client } from '../../../producers/client.ts'
import { tokenBatch } from '../../../producers/token-batch.ts'
import { addEndpoint } from '../../../src/acts/events.ts'
import type { Result } from '../../../src/job/answer/result.ts'
import type { RecordKind } from '../../../src/job/choices.ts'
import { type OwnerRequest, ownerOf } from '../../../src/job/on-file.ts'
import type { RecordResult } from '../../../src/job/outcome.ts'
import * as references from '../../../src/store/reference/source-references.ts'
import * as tokens from '../../../src/store/token/tokens.ts'
import { parseReuseToken } from '../../../src/token/token.ts'
import type { Installation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'

type Json = Record<string, unknown>

export interface Owners {
  /** Makes or finds the token of this card for each of these owners, one after the other. Returns the token. */
  own(card: number, ...owners: OwnerRequest[]): Promise<string>
  /** Adds one owner. Returns the job's result. */
  add(card: number, owner: OwnerRequest): Promise<Result>
  release(owner: OwnerRequest, more?: Record<string, unknown>): Promise<Result>
  /** A batch of one chunk, not sent. */
  chunk(kind: RecordKind, requests: readonly Json[], more?: { dryRun?: boolean }): Promise<Ask & { jti: string }>
  /** Works such a batch. Returns the results of its records. */
  batch(kind: RecordKind, requests: readonly Json[], more?: { dryRun?: boolean }): Promise<RecordResult[]>
  /** Ids of the cards that this token's owners know it by. */
  ownersOf(id: string): Promise<string[]>
  statusOf(id: string): Promise<string | undefined>
  /** Data of the events that were written of the owners of this token. */
  told(id: string): Promise<Record<string, unknown>[]>
}

/** Subscribes a URL, so that events are written. No request is sent to it. */
export async function subscribe({ vault, credentials }: Installation): Promise<string> {
  const endpointId = randomUUID()
  const secret = { sealed: randomBytes(40), keyVersion: 1 }
  const url = `https://receiver.example/${endpointId}`
  const { clientId } = credentials.signingKey
  const endpoint = { endpointId, clientId, url, events: ['reference.released' as const] }
  const by = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const
  await addEndpoint(vault.store, vault.ring, { ...endpoint, secret }, by)
  return endpointId
}

export function openOwners(installation: Installation, client: Client): Owners {
  const { store } = installation.vault
  const { scope, credentials } = installation
  const uuidOf = (id: string) => parseReuseToken(id) ?? ''
  const owners: Owners = {
    async own(card, ...all) {
      const [result] = await Promise.all(all.map(owner => owners.add(card, owner)))
      return String(result?.record?.['reuse_token'])
    },
    async add(card, owner) {
      const sealed = await client.encryptCard({ cardNumber: testPan(card), expiryMonth: 12, expiryYear: 2031 })
      return client.call('token-create', { token_scope: scope, ...sealed, on_file: owner })
    },
    release: (owner, more = {}) =>
      client.call('reference', { token_scope: scope, ...owner, action: 'RELEASE', ...more }),
    async chunk(recordKind, requests, { dryRun = false } = {}) {
      const captureKey = credentials.captureKeys.jwe
      if (!captureKey) throw new Error('these credentials hold no JWE key')
      const acceptedAt = Math.floor(Date.now() / 1000)
      const name = dryRun ? `dry-${randomUUID()}` : randomUUID()
      const plan = { batchId: name, recordKind, tokenScope: scope, acceptedAt, captureKey, dryRun }
      const lines = requests.map((request, index) => JSON.stringify({ line: index + 2, request }))
      const ask = await tokenBatch(client.clientId, plan, { lines, number: 0 })
      if ('refused' in ask) throw new Error(`refused: ${ask.reason} ${ask.field}`)
      return ask
    },
    async batch(recordKind, requests, more) {
      const { request, jti, block } = await owners.chunk(recordKind, requests, more)
      const { records, error } = await client.call('token-batch', request, { jti, block })
      if (!records) throw new Error(JSON.stringify(error))
      return records
    },
    ownersOf: async id => (await references.findByTokens(store, [uuidOf(id)])).map(({ cardId }) => cardId).sort(),
    statusOf: async id => (await tokens.findByIds(store, [uuidOf(id)]))[0]?.status,
    async told(id) {
      const { rows } = await store.query<{ data: Record<string, unknown> }>({
        text: `select data from tokenmill.event where type = 'reference.released' and data->>'reuse_token' = $1
order by data->>'card_id', event_id`,
        values: [id],
      })
      return rows.map(({ data }) => data)
    },
  }
  return owners
}

/** Inserts references of these owners to the token directly, whatever the token's status. */
export function leaveAt({ vault, scope }: Installation, id: string, ...left: OwnerRequest[]): Promise<void> {
  const now = Date.now()
  const rest = {
    referenceNo: undefined,
    tokenId: parseReuseToken(id) ?? '',
    onFile: {},
    version: 1,
    createdAt: now,
    updatedAt: now,
    lastReceipt: randomUUID(),
    mark: null,
    givenAt: null,
    before: null,
  }
  return references.insertAll(
    vault.store,
    left.map(owner => ({ ...ownerOf(owner, scope), ...rest })),
  )
}

export function keyOf(installation: Installation, owner: OwnerRequest) {
  return ownerOf(owner, installation.scope)
}
