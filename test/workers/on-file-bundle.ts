// Makes single jobs and chunks that name owners, and works them on the real line in the test's process.
import { randomUUID } from 'node:crypto'
import { tokenBatch } from '../../producers/token-batch.ts'
import type { Result } from '../../src/job/answer/result.ts'
import type { RecordKind, Role } from '../../src/job/catalogue.ts'
import { ownerOf } from '../../src/job/on-file.ts'
import type { RecordResult } from '../../src/job/outcome.ts'
import type { StoredReference } from '../../src/store/reference/source-references.ts'
import * as references from '../../src/store/reference/source-references.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { parseReuseToken } from '../../src/token/token.ts'
import type { Installation } from '../support/installation.ts'
import { testPan } from '../support/test-pan.ts'
import { type Job, openWorld, type World } from './provider/bundle.ts'

export interface ChunkOptions {
  batchId?: string
  /** The number of the chunk. */
  number?: number
  /** The line of the chunk's first record; the others follow. */
  line?: number
  policy?: Record<string, unknown>
  recordKind?: RecordKind
  /** The reference of each record, by its place. */
  references?: readonly string[]
  dryRun?: boolean
  /** The roles that the envelope claims. */
  roles?: readonly Role[]
}

export interface OnFileWorld {
  world: World
  scope: string
  chunkJob(requests: readonly Record<string, unknown>[], options?: ChunkOptions): Promise<Job>
  /** Works a chunk. Returns the result of each record. */
  chunk(requests: readonly Record<string, unknown>[], options?: ChunkOptions): Promise<RecordResult[]>
  createJob(pan: number, onFile?: Record<string, unknown>): Promise<Job>
  /** A single job. */
  create(pan: number, onFile?: Record<string, unknown>): Promise<Result>
  reverse(job: Job): Promise<unknown>
  reference(owner: Record<string, unknown>): Promise<StoredReference | undefined>
  token(reuseToken: unknown): Promise<StoredToken | undefined>
}

/** Makes a record of a card. `pan`: the index of the test number. */
export function record(pan: number, onFile?: Record<string, unknown>, more: Record<string, unknown> = {}) {
  const card = { cardNumber: testPan(pan), expiryMonth: 12, expiryYear: 2031, cardholderName: 'ANNA MEYER' }
  return { card, ...more, ...(onFile ? { on_file: onFile } : {}) }
}

/** An owner by a short name. */
export function owner(name: string, more: Record<string, unknown> = {}): Record<string, unknown> & { card_id: string } {
  return { provider: 'stripe', customer_id: `cus_${name}`, card_id: `card_${name}`, ...more }
}

export async function openOnFile(
  installation: Installation,
  scope = installation.scope,
  beside?: World,
): Promise<OnFileWorld> {
  const world = await openWorld(installation, { beside })
  const { credentials, vault } = installation
  const captureKey = credentials.captureKeys.jwe
  if (!captureKey) throw new Error('these credentials hold no JWE key')
  const acceptedAt = Math.floor(Date.now() / 1000) - 1
  const chunkJob: OnFileWorld['chunkJob'] = async (requests, options = {}) => {
    const { batchId = `f-${randomUUID()}`, number = 0, line = number * 100 + 1, recordKind = 'token-create' } = options
    const { policy, references, roles, dryRun = false } = options
    const tokenScope = recordKind === 'token-create' ? scope : undefined
    const named = { batchId: dryRun ? `dry-${batchId}` : batchId, recordKind, tokenScope, acceptedAt, captureKey }
    const lines = requests.map((request, index) =>
      JSON.stringify({ line: line + index, reference: references?.[index], request }),
    )
    const plan = { ...named, dryRun, ...(policy ? { policy } : {}) }
    const ask = await tokenBatch(credentials.signingKey.clientId, plan, { lines, number })
    if ('refused' in ask) throw new Error(`refused: ${ask.reason} ${ask.field}`)
    return world.job('token-batch', ask.request as Record<string, unknown>, { jti: ask.jti, block: ask.block, roles })
  }
  const createJob: OnFileWorld['createJob'] = async (pan, onFile) =>
    world.job('token-create', {
      token_scope: scope,
      ...(await world.cardOf(testPan(pan))),
      ...(onFile ? { on_file: onFile } : {}),
    })
  return {
    world,
    scope,
    chunkJob,
    async chunk(requests, options) {
      const { records, error } = await world.run(await chunkJob(requests, options))
      if (!records) throw new Error(JSON.stringify(error))
      return records
    },
    createJob,
    create: async (pan, onFile) => world.run(await createJob(pan, onFile)),
    async reverse({ receiptId, envelope }) {
      const result = await world.ask('reversal', { receipt_id: receiptId, envelope }, { bySystem: true })
      return result.record?.['reversal_status'] ?? result.error
    },
    async reference(given) {
      const id = ownerOf(given as Parameters<typeof ownerOf>[0], scope)
      const [found] = (await references.findByOwners(vault.store, [id])).values()
      return found
    },
    async token(reuseToken) {
      const [row] = await tokens.findByIds(vault.store, [parseReuseToken(String(reuseToken)) ?? ''])
      return row
    },
  }
}
