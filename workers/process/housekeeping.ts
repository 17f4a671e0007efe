// Recurring tasks on the store and the queues: retention, scrubbing of the failed set, reply queues that nobody reads. The
// scheduler's process runs them; several processes at once do no harm. It has no key of the vault, so what ends with an event is
// a loop of the workers (workers/composition.ts).
import type { Config } from '../../src/config.ts'
import { peek } from '../../src/job/envelope/envelope.ts'
import { clearNumbersOf } from '../../src/job/pan-in-names.ts'
import type { FailedCopy } from '../../src/queue/failed.ts'
import { scrubFailed, trimFailed } from '../../src/queue/failed.ts'
import { every } from '../../src/recurring.ts'
import * as retention from '../../src/store/retention.ts'
import { readClock } from '../../src/store/server.ts'
import { holdsPossiblePan } from '../../src/token/possible-pan.ts'
import type { Deps } from '../deps.ts'
import { removeUnread } from '../reply-queues.ts'

export type HousekeepingDeps = Pick<Deps, 'store' | 'queues' | 'clock' | 'log' | 'catalogue'>

/** Something that is done every hour beside what is here. */
export interface Chore {
  name: string
  /** `now`: ms since the epoch, by the store's clock. */
  run(deps: HousekeepingDeps, at: { now: number } & Pick<Config, 'receiptDays' | 'reportDays'>): Promise<unknown>
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** A process that never lives for an hour deletes, too, and not while it begins. */
const FIRST_MS = 5 * MINUTE_MS
const CARD_DATA_MS = 15 * MINUTE_MS

export function startHousekeeping(
  deps: HousekeepingDeps,
  chores: readonly Chore[],
  { receiptDays, reportDays, firstMs = FIRST_MS }: Pick<Config, 'receiptDays' | 'reportDays'> & { firstMs?: number },
): () => Promise<void> {
  // By the store's clock: a host whose own is wrong would delete too early, private halves of keys among them.
  const everyHour = (sweep: (now: number) => Promise<unknown>) =>
    every(HOUR_MS, async () => void (await sweep(await readClock(deps.store))), { ...deps, firstMs })
  const stops = [
    everyHour(now => retention.sweep(deps.store, receiptDays, now)),
    ...chores.map(({ run }) => everyHour(now => run(deps, { now, receiptDays, reportDays }))),
    every(MINUTE_MS, () => tidyFailed(deps), deps),
    every(HOUR_MS, () => tidyReplyQueues(deps), deps),
  ]
  return async () => {
    await Promise.all(stops.map(stop => stop()))
  }
}

/** Removes copies of failed jobs beyond 10,000 and after seven days, and their card data after 15 minutes, although encrypted. */
async function tidyFailed({ queues, catalogue }: Pick<HousekeepingDeps, 'queues' | 'catalogue'>): Promise<void> {
  let failure: { error: unknown } | undefined
  const eachKind = async (tidy: (kind: string) => Promise<unknown>) => {
    for (const kind of catalogue.kinds) {
      try {
        await tidy(kind)
      } catch (error) {
        // Trouble with one kind spares the others.
        failure ??= { error }
      }
    }
  }
  // Trimmed first: after a mass failure most copies go, and nobody has to look for card data in them.
  await eachKind(kind => trimFailed(queues, kind))
  await eachKind(kind => scrubFailed(queues, kind, CARD_DATA_MS, withoutCard))
  if (failure) throw failure.error
}

/** What the lines of a chunk of transactions give as masked card numbers. */
function maskedOf(request: unknown): string[] {
  const { columns, transactions } = (request ?? {}) as { columns?: { masked_card?: unknown }; transactions?: unknown }
  const rows = Array.isArray(transactions) ? transactions : []
  const given = [columns?.masked_card, rows.map(row => row?.transaction?.masked_card)].flat()
  return given.filter(value => typeof value === 'string')
}

/** The copy without its card data. It can't be sent again, but still says who sent the job. */
export function withoutCard(copy: FailedCopy): FailedCopy {
  const peeked = peek(copy.jws)
  const request = typeof peeked === 'string' ? undefined : peeked.payload['request']
  const { encrypted_card: encrypted } = (request ?? {}) as { encrypted_card?: unknown }
  const holdsCard =
    copy.block !== undefined ||
    typeof peeked === 'string' ||
    encrypted !== undefined ||
    clearNumbersOf(request).length > 0 ||
    maskedOf(request).some(holdsPossiblePan)
  if (!holdsCard) return copy
  const { block: _, ...rest } = copy
  return { ...rest, jws: '' }
}

async function tidyReplyQueues(deps: HousekeepingDeps): Promise<void> {
  for (const queue of await removeUnread(deps))
    deps.log.warn({ queue }, 'a reply queue that nobody reads any more is removed')
}
