// `tokenmill failed retry` and `failed discard`: chooses copies, runs the act for each, and puts the results into
// words.
import { type FailedFacts, findFailed } from '../../../producers/operate/failed-set.ts'
import type { By } from '../../../src/acts/act.ts'
import { discardFailed, retryFailed } from '../../../src/acts/failed.ts'
import { RETRY_REFUSALS, type RetryRefusal } from '../../../src/queue/failed/copy.ts'
import type { JsonOption } from '../../command.ts'
import { EXIT, Stop } from '../../exit.ts'
import { withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { print, say, type Terminal, table } from '../../terminal.ts'
import { type FilterOptions, filterOf, type OpenedSet, openSet } from './failed.ts'

type ActOptions = JsonOption & FilterOptions & OperatorOptions
type RetryOptions = ActOptions & { dryRun?: boolean }

export function retry(terminal: Terminal, ids: readonly string[], options: RetryOptions): Promise<void> {
  return withSession(terminal, async session => {
    const opened = await openSet(session)
    const chosen = await choose(opened, ids, options)
    if (options.dryRun) return tellPlan(terminal, chosen, options)
    const retried: string[] = []
    const left: { id: string; why: RetryRefusal }[] = []
    for (const job of chosen) {
      // If the act is sure to be refused, it is refused here, before it is signed.
      const verdict =
        job.whyNot === undefined
          ? await retryFailed(job, await actorOf('failed.retry', job, options, opened), opened)
          : { refused: job.whyNot }
      if ('done' in verdict) retried.push(job.id)
      else left.push({ id: job.id, why: verdict.refused })
    }
    for (const { id, why } of left) say(terminal, `${id}: ${RETRY_REFUSALS[why]}.`)
    const submitAgain = left.filter(({ why }) => why === 'card_data_removed').map(({ id }) => id)
    print(terminal, options, { retried, submit_again: submitAgain, left }, `${retried.length} sent again`)
    if (left.length > 0)
      throw new Stop(`${left.length} of ${chosen.length} failed jobs were not sent again`, EXIT.incomplete)
  })
}

/** Prints how many copies of each kind will be sent again, and how many can't be. */
function tellPlan(terminal: Terminal, chosen: readonly FailedFacts[], options: RetryOptions): void {
  const kinds = [...new Set(chosen.map(({ kind }) => kind))].map(kind => {
    const ofKind = chosen.filter(job => job.kind === kind)
    const count = (why: FailedFacts['whyNot']) => ofKind.filter(({ whyNot }) => whyNot === why).length
    return {
      kind,
      would_go: count(undefined),
      card_data_removed: count('card_data_removed'),
      expired: count('expired'),
      client_revoked: count('client_revoked'),
    }
  })
  const rows = kinds.map(one => Object.values(one).map(String))
  print(terminal, options, kinds, table(['KIND', 'WOULD GO', 'CARD DATA REMOVED', 'EXPIRED', 'CLIENT REVOKED'], rows))
}

export function discard(terminal: Terminal, ids: readonly string[], options: ActOptions): Promise<void> {
  return withSession(terminal, async session => {
    const filters = [options.kind, options.fault, options.client, options.since, options.until]
    if (ids.length === 0 && filters.every(filter => filter === undefined))
      throw new Stop('Name the copies to discard, or filter them, for example with --kind.', EXIT.usage)
    const opened = await openSet(session)
    const discarded: string[] = []
    for (const job of await choose(opened, ids, options)) {
      const verdict = await discardFailed(job, await actorOf('failed.discard', job, options, opened), opened)
      if ('done' in verdict) discarded.push(job.id)
    }
    print(terminal, options, { discarded }, `${discarded.length} discarded`)
  })
}

/** The chosen copies. Throws `Stop` for an id that isn't in the failed set. */
async function choose(opened: OpenedSet, ids: readonly string[], options: FilterOptions): Promise<FailedFacts[]> {
  const filter = await filterOf(opened.store, options)
  const found = await findFailed({ ...filter, ids: ids.length === 0 ? undefined : ids }, opened)
  const unknown = ids.filter(id => !found.some(job => job.id === id))
  if (unknown.length > 0)
    throw new Stop(
      `No failed job that the options allow has the id ${unknown.join(', ')}; see \`tokenmill failed list\`.`,
    )
  return found
}

const actorOf = (action: string, { id }: FailedFacts, options: OperatorOptions, { store }: OpenedSet): Promise<By> =>
  byOf({ action, subject: id }, options, store)
