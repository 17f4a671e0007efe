// The reader of an explanation for a person of the console: every statement takes the person's sight. It doesn't read the
// outcomes of chunks, nor the values of third parties' tokens.
import type { Catalogue } from '../../../src/job/catalogue.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import { findById } from '../../../src/store/batch/batch-list.ts'
import { stateOf } from '../../../src/store/batch/batch-state.ts'
import { SEEN_BATCH } from '../../../src/store/console/batches.ts'
import * as names from '../../../src/store/explain/names.ts'
import type { Db } from '../../../src/store/pool.ts'
import type { Sight } from '../../../src/store/sight.ts'
import { formatReuseToken, parseReuseToken } from '../../../src/token/token.ts'
import type { JobReader } from '../../operate/job-reader.ts'
import { storeReader } from '../../operate/store-reader.ts'
import { findCopy } from './undecided.ts'

export interface ReaderDeps {
  store: Db
  /** Undefined: they don't answer. */
  queues: Queues | undefined
  catalogue: Catalogue
  /** ms since the epoch. */
  now: number
}

const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i

export function readerOf(sight: Sight, { store, queues, catalogue, now }: ReaderDeps): JobReader {
  const shared = storeReader(sight, store)
  return {
    ...shared,
    async tokenName(tokenId) {
      const token = await names.findToken(sight, store, tokenId)
      return token && nameOf(token)
    },
    async token(name) {
      const id = parseReuseToken(name) ?? (UUID.test(name) ? name.toLowerCase() : undefined)
      const token = id === undefined ? undefined : await names.findToken(sight, store, id)
      return token && { ...token, name: nameOf(token) }
    },
    async batches(batchId) {
      return (await findById(sight, store, { batchId }, SEEN_BATCH)).map(batch => ({
        ...batch,
        state: stateOf(batch, now),
      }))
    },
    async failed(name) {
      const copy = queues && (await findCopy(name, { queues, catalogue, clients: await shared.clients() }))
      return copy ? [copy] : []
    },
  }
}

/** The token as senders know it; one of a third party by its id alone. */
function nameOf({ tokenId, thirdPartyType }: names.SeenToken): string {
  return thirdPartyType === null ? formatReuseToken(tokenId) : tokenId
}
