// The reader of an explanation for somebody with a shell on a host: it reads everything.

import { z } from 'zod'
import { Problem } from '../../src/job/problem.ts'
import type { Queues } from '../../src/queue/engine.ts'
import * as clients from '../../src/store/access/clients.ts'
import * as batchList from '../../src/store/batch/batch-list.ts'
import { type Batch, WHOLE_BATCH } from '../../src/store/batch/batch-row.ts'
import { stateOf } from '../../src/store/batch/batch-state.ts'
import { readStallFacts } from '../../src/store/batch/stall.ts'
import * as operations from '../../src/store/job/operations.ts'
import * as outbox from '../../src/store/job/outbox.ts'
import * as search from '../../src/store/job/receipt-search.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import type { Db } from '../../src/store/pool.ts'
import * as intents from '../../src/store/provider/scheme-intents.ts'
import { ALL } from '../../src/store/sight.ts'
import * as shownTokens from '../../src/store/token/token-views.ts'
import { parseReuseToken, reuseTokenOf, type TokenRow } from '../../src/token/token.ts'
import { findLine, findReference } from './batch-line.ts'
import { findFailed } from './failed-set.ts'
import type { JobReader, NamedBatch, ReadAnnouncement, RowReader } from './job-reader.ts'
import type { StallReader } from './stalled-batches.ts'

/** For how long batches are searched for a reference if no batch was named. */
const SEARCH_MS = 2_000
const BATCHES_MAX = 10_000
/** No name of a third party's token is shorter. */
const THIRD_PARTY_LEAST = 14
const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i

export interface WholeSources {
  store: Db
  queues: Queues
  /** ms since the epoch. */
  now: number
}

/** The same of why batches are stalled. */
export function wholeStallReader(store: Db): StallReader {
  return {
    facts: batch => readStallFacts(store, batch),
    done: ids => receipts.findAll(store, ids),
    seesFailed: async () => true,
    seesQueues: true,
  }
}

export function wholeReader({ store, queues, now }: WholeSources): JobReader {
  return {
    async clients() {
      return (await clients.list(store)).map(({ clientId, name }) => ({ clientId, name, isWhole: true }))
    },
    receipts: ids => receipts.findAll(store, ids),
    told: ids => outbox.findTold(store, ids),
    async announcements(receiptId) {
      return (await outbox.listOf(store, receiptId)).map(announcementOf)
    },
    operation: receiptId => operations.find(store, receiptId),
    calls: receiptId => intents.listOf(store, receiptId),
    async tokenName(tokenId) {
      const [token] = await shownTokens.findByIds(store, [tokenId])
      return token && reuseTokenOf(token)
    },
    async token(name) {
      const found = await findToken(store, name)
      return found && { ...found, name: reuseTokenOf(found) }
    },
    byReference: (reference, limit) => search.findByReference(store, reference, limit),
    byToken: (tokenId, limit) => search.findByToken(store, tokenId, limit),
    async batches(batchId) {
      return (await batchList.findById(ALL, store, { batchId }, WHOLE_BATCH)).map(batch => namedOf(batch, now))
    },
    async failed(name, clientId) {
      return findFailed({ name, clientId }, { store, queues, now })
    },
    rows: rowReader(store, now),
  }
}

async function findToken(store: Db, name: string): Promise<TokenRow | undefined> {
  const id = parseReuseToken(name) ?? (UUID.test(name) ? name.toLowerCase() : undefined)
  if (id !== undefined) return shownTokens.find(store, id)
  const [token] = name.length >= THIRD_PARTY_LEAST ? await shownTokens.findByThirdParty(store, name) : []
  return token
}

function namedOf(batch: Batch, now: number): NamedBatch {
  const { batchNo, batchId, clientId } = batch
  return { batchNo, batchId, clientId, state: stateOf(batch, now) }
}

const Told = z.object({
  code: z.int(),
  jti: z.string().optional(),
  error: Problem.pick({ details: true }).optional(),
})

function announcementOf({ body, ...row }: outbox.Announcement): ReadAnnouncement {
  if (body === null) return row
  const { data } = Told.safeParse(JSON.parse(body))
  if (!data) return row
  const details = Object.entries(data.error?.details ?? {})
  const reasons = details.map(([field, { code, message }]) => ({ field, reason: code, text: message }))
  return { ...row, says: { code: data.code, ...(data.jti === undefined ? {} : { jti: data.jti }), reasons } }
}

function rowReader(store: Db, now: number): RowReader {
  return {
    async find(batch, name) {
      const line = /^\d{1,9}$/.test(name) ? Number(name) : undefined
      const byLine = line === undefined ? undefined : await findLine(store, batch, line)
      return byLine ?? findReference(store, batch, name)
    },
    async search(reference, { since, clientId }) {
      const asked = { order: 'newest', since, clientId, limit: BATCHES_MAX, now } as const
      const listed = await batchList.list(ALL, store, asked, WHOLE_BATCH)
      const until = performance.now() + SEARCH_MS
      let searched = 0
      for (const batch of listed) {
        if (performance.now() > until) break
        searched += 1
        const found = await findReference(store, batch, reference)
        if (found) return { found, searched, batches: listed.length }
      }
      return { found: undefined, searched, batches: listed.length }
    },
  }
}
