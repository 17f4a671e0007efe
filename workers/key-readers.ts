// Records which readers of results know the announced signing key, as the claim `knows_key` of their jobs says. A record
// that fails is only missing where an operator asks before the announced time.
import { openCache } from '../src/cache.ts'
import type { Clock } from '../src/clock.ts'
import { describeError, type Logger } from '../src/logger.ts'
import * as signingKeyReaders from '../src/store/access/signing-key-readers.ts'
import type { Db } from '../src/store/pool.ts'

const READERS_MAX = 10_000
const RECORDED_MS = 3_600_000

export interface KeyReaders {
  note(kid: string, reader: signingKeyReaders.Reader): void
}

export function openKeyReaders({ store, clock, log }: { store: Db; clock: Clock; log: Logger }): KeyReaders {
  const recorded = openCache<true>({ max: READERS_MAX, lifetime: { ms: RECORDED_MS, clock } })
  return {
    note(kid, reader) {
      const name = `${kid} ${reader.clientId} ${reader.replyTo ?? ''}`
      if (recorded.get(name)) return
      recorded.set(name, true)
      signingKeyReaders.acknowledge(store, kid, reader).catch(error => {
        log.debug({ error: describeError(error) }, 'it was not recorded that a reader knows the announced signing key')
      })
    },
  }
}
