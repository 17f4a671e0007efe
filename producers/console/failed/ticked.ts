// Acts on failed jobs that are ticked in the list: their ids stand in the address of the act's page, so that it works without
// scripts, and the passkey signs exactly these.
import {
  FAILED_ACTS,
  type FailedActName,
  failedSubject,
  isAble,
  TICKED_MOST,
} from '../../../src/job/system/failed-act.ts'
import { digestOf } from '../../../src/queue/failed/selection.ts'
import { type ActSubject, type Asking, actIn, type ShownAct, wordOf } from '../acts/subject.ts'
import { html, path } from '../html.ts'
import { commandOf, stays } from './act.ts'
import { type Filter, listPath, readFilter } from './filter.ts'
import { findCopy, type ListedCopy } from './set.ts'
import { jobs, MANY } from './text.ts'
import { openTurns } from './turns.ts'

/** Each copy is read whole. */
const inTurn = openTurns({ most: 4, mostOfOne: 2 })

interface Ticked {
  act: FailedActName
  filter: Filter & { kind: NonNullable<Filter['kind']> }
  ids: readonly string[]
}

export const TICKED: ActSubject = {
  ...MANY,
  route: '/failed/ticked/:act',
  at: 'failed',
  takesQuery: true,

  async show({ deps, session, asked }) {
    const ticked = tickedIn(asked, deps)
    if (!ticked) return undefined
    const { filter, ids } = ticked
    if (ids.length === 0 || ids.length > TICKED_MOST) return shown(ticked, [])
    const found = await inTurn(session.personId, async () => {
      const copies: ListedCopy[] = []
      for (const id of ids) {
        const copy = await findCopy(deps, session, { kind: filter.kind, id })
        if (copy) copies.push(copy)
      }
      return copies
    })
    // None is there, or none is the person's to see.
    return found !== 'busy' && found.length === 0 ? undefined : shown(ticked, found)
  },

  async sign({ deps, asked }) {
    const ticked = tickedIn(asked, deps)
    if (!ticked || ticked.ids.length === 0 || ticked.ids.length > TICKED_MOST) return undefined
    const { act, filter, ids } = ticked
    const parameters = { kind: filter.kind, ids: [...ids] }
    return { act, subject: failedSubject(filter), parameters, batchNo: null }
  },
}

function shown({ act, filter, ids }: Ticked, found: readonly ListedCopy[] | 'busy'): ShownAct {
  const copies = found === 'busy' ? [] : found
  const able = copies.filter(copy => isAble(copy, act))
  const gone = found === 'busy' || copies.length === 0 ? 0 : ids.length - copies.length
  const what = jobs(able.length)
  const facts = html`<dl class="facts"><div><dt>Kind</dt><dd>${filter.kind}</dd></div><div><dt>Ticked</dt><dd>${jobs(ids.length)}</dd></div></dl>`
  const missing = gone === 0 ? undefined : html`<p>Gone meanwhile: ${jobs(gone)}.</p>`
  return {
    act,
    to: path`/failed/ticked/${wordOf(act)}`,
    back: { to: listPath(filter), text: 'Back to the list' },
    shown: html`${facts}${missing}${stays(copies, act)}`,
    counted: what,
    effect: able.length === 0 ? undefined : FAILED_ACTS[act].effect(what),
    instead: insteadOf(ids, found),
    seen: digestOf(copies),
    fields: { kind: filter.kind, ids: copies.map(({ id }) => id).join(',') },
    command: commandOf(act, ...copies.map(({ id }) => id)),
  }
}

function insteadOf(ids: readonly string[], found: readonly ListedCopy[] | 'busy'): string {
  if (ids.length === 0) return 'No job is ticked. Go back to the list and tick those that you mean.'
  if (ids.length > TICKED_MOST) return `${jobs(ids.length)} are ticked. One act is about ${TICKED_MOST} at most.`
  if (found === 'busy') return 'Other failed jobs are being read. Wait a moment, then load this page again.'
  return 'None of these can be sent again.'
}

/** The list's form sends `id` for each; the form of the act sends `ids`. */
function tickedIn(asked: Asking['asked'], { catalogue }: Asking['deps']): Ticked | undefined {
  const { given } = asked
  const act = actIn(FAILED_ACTS, 'failed', asked)
  const filter = readFilter(catalogue, given)
  const { kind } = filter
  if (!act || kind === undefined) return undefined
  const { id, ids } = given
  const named = Array.isArray(id) ? id : typeof id === 'string' ? [id] : typeof ids === 'string' ? ids.split(',') : []
  const all = named.filter((one): one is string => typeof one === 'string' && /^f_[\w-]{43}$/.test(one))
  return { act, filter: { ...filter, kind }, ids: [...new Set(all)] }
}
