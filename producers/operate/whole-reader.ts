// The reader of an explanation for somebody with a shell on a host: it reads everything.

import type { Catalogue } from '../../src/job/catalogue.ts'
import type { Queues } from '../../src/queue/engine.ts'
import * as batchList from '../../src/store/batch/batch-list.ts'
import { type Batch, WHOLE_BATCH } from '../../src/store/batch/batch-row.ts'
import { stateOf } from '../../src/store/batch/batch-state.ts'
import { findStallFacts } from '../../src/store/batch/stall.ts'
import { listReceipts } from '../../src/store/explain/jobs.ts'
import type { Db } from '../../src/store/pool.ts'
import { findThirdPartyTokens } from '../../src/store/provider/scheme-tokens.ts'
import { ALL } from '../../src/store/sight.ts'
import * as shownTokens from '../../src/store/token/token-views.ts'
import { parseReuseToken, reuseTokenOf, type TokenRow } from '../../src/token/token.ts'
import { findLine, findReference } from './batch-line.ts'
import { findFailed } from './failed-set.ts'
import type { JobReader, NamedBatch, RowReader } from './job-reader.ts'
import type { StallReader } from './stalled-batches.ts'
import { storeReader } from './store-reader.ts'

/** For how long batches are searched for a reference if no batch was named. */
const SEARCH_MS = 2_000
const BATCHES_MAX = 10_000
/** No name of a third party's token is shorter. */
const THIRD_PARTY_LEAST = 14
const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i

export interface WholeSources {
  store: Db
  queues: Queues
  catalogue: Catalogue
  /** ms since the epoch. */
  now: number
}

/** The same of why batches are stalled. */
export function wholeStallReader(store: Db): StallReader {
  return {
    facts: batch => findStallFacts(ALL, store, batch),
    done: ids => listReceipts(ALL, store, ids),
    seesFailed: async () => true,
    seesQueues: true,
  }
}

export function wholeReader({ store, queues, catalogue, now }: WholeSources): JobReader {
  return {
    ...storeReader(ALL, store),
    async tokenName(tokenId) {
      const [token] = await shownTokens.findByIds(store, [tokenId])
      return token && reuseTokenOf(token)
    },
    async token(name) {
      const found = await findToken(store, name)
      return found && { ...found, name: reuseTokenOf(found) }
    },
    async batches(batchId) {
      return (await batchList.findById(ALL, store, { batchId }, WHOLE_BATCH)).map(batch => namedOf(batch, now))
    },
    async failed(name, clientId) {
      return findFailed({ name, clientId }, { store, queues, catalogue, now })
    },
    rows: rowReader(store, now),
  }
}

async function findToken(store: Db, name: string): Promise<TokenRow | undefined> {
  const id = parseReuseToken(name) ?? (UUID.test(name) ? name.toLowerCase() : undefined)
  if (id !== undefined) return shownTokens.find(store, id)
  const ids = name.length >= THIRD_PARTY_LEAST ? await findThirdPartyTokens(store, [name]) : []
  const rows = await shownTokens.findByIds(store, ids)
  return rows.find(({ status, thirdParty }) => status !== 'DELETED' && thirdParty?.token === name)
}

function namedOf(batch: Batch, now: number): NamedBatch {
  const { batchNo, batchId, clientId } = batch
  return { batchNo, batchId, clientId, state: stateOf(batch, now) }
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
