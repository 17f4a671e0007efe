// `tokenmill batch pause`, `resume`, `cancel` and `note`: asks for confirmation, runs the act, and puts its result into words.
import { type BatchRefusal, cancelBatch, noteBatch, pauseBatch, resumeBatch } from '../../../src/acts/batch.ts'
import { systemClock } from '../../../src/clock.ts'
import * as batchList from '../../../src/store/batch/batch-list.ts'
import { type Batch, WHOLE_BATCH } from '../../../src/store/batch/batch-row.ts'
import { stateOf } from '../../../src/store/batch/batch-state.ts'
import type { Store } from '../../../src/store/pool.ts'
import { ALL } from '../../../src/store/sight.ts'
import { holdsPossiblePan } from '../../../src/token/possible-pan.ts'
import { confirm } from '../../confirm.ts'
import { EXIT, Stop } from '../../exit.ts'
import { openCommandStore, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { moment, print, say, type Terminal } from '../../terminal.ts'
import { type ClientOption, findOne, shownBatch } from './view.ts'

type ActOptions = ClientOption & OperatorOptions & { all?: boolean; yes?: boolean }

/** No envelope, and so no chunk, of a batch starts later than this after its first chunk. */
const LIFE_MS = 7 * 86_400_000
/** The most batches that one `--all` changes. */
const ALL_MAX = 10_000

const REFUSED: Record<BatchRefusal, string> = {
  finished: 'is finished',
  cancelled: 'is cancelled',
  paused: 'was paused before',
  not_paused: 'is not paused',
  at_limit: 'was stopped by its sender (--limit); it goes on when the sender runs the command again',
}

export function pause(terminal: Terminal, id: string | undefined, options: ActOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const chosen = await choose(store, id, options, state => state !== 'PAUSED' && state !== 'ABANDONED')
    const changed = await each(store, chosen, 'batch.pause', options, (batch, by) => pauseBatch(store, batch, by))
    const lines = changed.map(
      batch =>
        `${batch.batchId} is paused; its chunks end at ${moment(batch.acceptedAt + LIFE_MS)} at the latest, paused or not.`,
    )
    print(terminal, options, shown(changed, options), lines.length === 0 ? 'No batch is under way.' : lines)
  })
}

export function resume(terminal: Terminal, id: string | undefined, options: ActOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const chosen = await choose(store, id, options, (state, batch) => state === 'PAUSED' && batch.pausedAt !== null)
    const act = (batch: Batch, by: By) => resumeBatch(store, batch, by, systemClock())
    const changed = await each(store, chosen, 'batch.resume', options, act)
    const lines = changed.map(({ batchId }) => `${batchId} goes on.`)
    print(terminal, options, shown(changed, options), lines.length === 0 ? 'No batch is paused.' : lines)
  })
}

export function cancel(terminal: Terminal, id: string, options: ActOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const batch = await findOne(store, id, options.client)
    if (batch.cancelledAt !== null) say(terminal, 'It was cancelled before.')
    else {
      if (!options.yes) await confirm(terminal, `Cancel ${id} of ${batch.clientId}, for good?`)
      const by = await byOf({ action: 'batch.cancel', subject: id }, options, store)
      const verdict = await cancelBatch(store, batch, by)
      if ('refused' in verdict) throw new Stop(`${id} ${REFUSED[verdict.refused]}.`)
      const { rowsLeft } = verdict.done
      say(
        terminal,
        rowsLeft === undefined
          ? 'How many rows are left undone is not known: no chunk said how many there are.'
          : `${rowsLeft} rows are left undone.`,
      )
    }
    const now = await findOne(store, id, batch.clientId)
    print(terminal, options, shownBatch(now, systemClock()), `${id} is cancelled; what was done stays done.`)
  })
}

export function note(terminal: Terminal, id: string, options: ActOptions): Promise<void> {
  const { reason = '' } = options
  if (reason.trim() === '') throw new Stop('Give the note with --reason.', EXIT.usage)
  if (holdsPossiblePan(reason))
    throw new Stop('The note holds digits that could be a card number. Write it without them.', EXIT.usage)
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const batch = await findOne(store, id, options.client)
    await noteBatch(store, batch, await byOf({ action: 'batch.note', subject: id }, options, store))
    print(terminal, options, shownBatch(batch, systemClock()), `The note on ${id} is written.`)
  })
}

type By = Awaited<ReturnType<typeof byOf>>

/**
 * Runs the act for each batch; returns those that were changed. If a single named batch is refused, the command ends
 * with 1; with `--all` it is skipped.
 */
async function each(
  store: Store,
  chosen: readonly Batch[],
  action: string,
  options: ActOptions,
  act: (batch: Batch, by: By) => Promise<{ done: Batch } | { refused: BatchRefusal }>,
): Promise<Batch[]> {
  const changed: Batch[] = []
  for (const batch of chosen) {
    const verdict = await act(batch, await byOf({ action, subject: batch.batchId }, options, store))
    if ('done' in verdict) changed.push(verdict.done)
    else if (!options.all) throw new Stop(`${batch.batchId} ${REFUSED[verdict.refused]}.`)
  }
  return changed
}

async function choose(
  store: Store,
  id: string | undefined,
  { all, client }: ActOptions,
  isChosen: (state: ReturnType<typeof stateOf>, batch: Batch) => boolean,
): Promise<Batch[]> {
  if ((id === undefined) === (all !== true)) throw new Stop('Name one batch, or give --all.', EXIT.usage)
  if (id !== undefined) return [await findOne(store, id, client)]
  const now = systemClock()
  const open = await batchList.list(
    ALL,
    store,
    { order: 'newest', clientId: client, state: 'open', limit: ALL_MAX, now },
    WHOLE_BATCH,
  )
  return open.filter(batch => isChosen(stateOf(batch, now), batch))
}

function shown(changed: readonly Batch[], { all }: ActOptions): unknown {
  const now = systemClock()
  const values = changed.map(batch => shownBatch(batch, now))
  return all ? values : values[0]
}
