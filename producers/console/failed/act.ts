// Acts on failed jobs: on one, and on all that a filter matches.
import {
  FAILED_ACTS,
  FAILED_MOST,
  type FailedActName,
  failedSubject,
  isAble,
} from '../../../src/job/system/failed-act.ts'
import type { WhyNot } from '../../../src/queue/failed/copy.ts'
import { digestOf, type SelectedCopy, SKEW_MS, selectCopies } from '../../../src/queue/failed/selection.ts'
import { actRoutes } from '../acts/act-routes.ts'
import { type ActSubject, type Asking, actIn, mayDo, type ShownAct, wordOf } from '../acts/subject.ts'
import { command, count, moment } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { copyOf } from './copy.ts'
import { type Filter, fixed, listPath, optionsOf, readFilter, readMoment, sinceOf, writeMoment } from './filter.ts'
import { clientOf, copyFilterOf, copyPath } from './list.ts'
import { clientsOf, type ListedCopy } from './set.ts'
import { faultText, jobs, MANY, notDone, reasonText } from './text.ts'
import { openTurns } from './turns.ts'

/** How long the page of an act counts at most, in ms. */
const COUNT_MS = 5_000
/** Of a person who opens the pages of two acts, both are counted. */
const inTurn = openTurns({ most: 4, mostOfOne: 2 })

const ONE: ActSubject = {
  route: '/failed/:kind/:id/:act',
  at: 'failed',

  async show(asking) {
    const found = await findOne(asking)
    if (!found) return undefined
    const { copy, act } = found
    const { kind, id, whyNot } = copy
    return {
      act,
      to: path`/failed/${kind}/${id}/${wordOf(act)}`,
      back: { to: copyPath(copy), text: 'Back to the job' },
      shown: html`<p>${kind}, <code>${copy.code}</code> ${faultText(copy.code)} Failed ${moment(copy.failedAt)} UTC, of ${clientOf(copy)}.</p>`,
      counted: jobs(1),
      effect: isAble(copy, act) ? FAILED_ACTS[act].effect('This job') : undefined,
      instead: whyNot === undefined ? '' : `It can not be sent again: ${reasonText(whyNot)}.`,
      seen: digestOf([copy]),
      fields: {},
      command: commandOf(act, id),
    }
  },

  async sign(asking) {
    const found = await findOne(asking)
    if (!found) return undefined
    const { copy, act } = found
    return { act, subject: copy.id, parameters: { kind: copy.kind }, batchNo: null }
  },
}

/** The command, which needs a reason where nobody can take the act back. */
export function commandOf(act: FailedActName, ...words: string[]): Html {
  const reason = FAILED_ACTS[act].isFinal ? ['--reason', 'TEXT'] : []
  return command('tokenmill', 'failed', wordOf(act), ...words, ...reason)
}

async function findOne(asking: Asking): Promise<{ copy: ListedCopy; act: FailedActName } | undefined> {
  const { deps, session, asked } = asking
  const act = actIn(FAILED_ACTS, 'failed', asked)
  const copy = act && (await copyOf(deps, session, asked.params))
  return copy && act && { copy, act }
}

const SET: ActSubject = {
  ...MANY,
  route: '/failed/all/:act',
  at: 'failed',
  takesQuery: true,

  async show({ deps, session, asked }) {
    const act = actIn(FAILED_ACTS, 'failed', asked)
    const now = deps.clock()
    const filter = fixed(readFilter(deps.catalogue, asked.given), now)
    if (!act || filter.kind === undefined) return undefined
    // Jobs that failed just now may still be on their way here, and would change the number.
    const upTo = now - SKEW_MS
    const { kind } = filter
    // Nobody else gets the page, so nothing is counted for them.
    if (!mayDo(act, session)) return shownMany({ filter, act, upTo, now }, [])
    const selected = await inTurn(session.personId, () =>
      selectCopies(
        deps.queues,
        { ...copyFilterOf(filter, now), kind, upTo },
        { seen: clientsOf(deps, session), now, most: FAILED_MOST, lookMs: COUNT_MS },
      ),
    )
    return shownMany({ filter, act, upTo, now }, selected)
  },

  async sign({ deps, session, asked }) {
    const act = actIn(FAILED_ACTS, 'failed', asked)
    const { given } = asked
    const filter = readFilter(deps.catalogue, given)
    const { kind, code, clientId } = filter
    const [n, upTo] = [Number(given['count']), readMoment(String(given['up_to']))]
    if (!act || kind === undefined || upTo === undefined) return undefined
    if (!(Number.isInteger(n) && n >= 1 && n <= FAILED_MOST)) return undefined
    if (clientId !== undefined && (await clientsOf(deps, session)(clientId)) === undefined) return undefined
    // The page of the act has a moment here; a span would end at another one than the person saw.
    if (filter.since !== undefined && readMoment(filter.since) === undefined) return undefined
    const since = sinceOf(filter, 0)
    const parameters = {
      kind,
      filter: {
        ...(code !== undefined && { code }),
        ...(clientId !== undefined && { client_id: clientId }),
        ...(since !== undefined && { since }),
      },
      count: n,
      up_to: upTo,
    }
    return { act, subject: failedSubject({ kind }), parameters, batchNo: null }
  },
}

interface Many {
  filter: Filter
  act: FailedActName
  upTo: number
  now: number
}

/** What was counted; undefined: too much to count. `busy`: nothing was. */
type Counted = readonly SelectedCopy[] | 'busy' | undefined

function shownMany({ filter, act, upTo, now }: Many, counted: Counted): ShownAct {
  const selected = counted === 'busy' ? undefined : counted
  const { kind = '', code, clientId, since } = filter
  const able = selected?.filter(copy => isAble(copy, act)) ?? []
  const set = { kind, ...(code && { code }), ...(clientId && { client: clientId }), ...(since && { since }) }
  const what = `${jobs(able.length)}`
  return {
    act,
    to: path`/failed/all/${wordOf(act)}`,
    back: { to: listPath(filter), text: 'Back to the list' },
    shown: html`${described(filter, upTo)}${selected && stays(selected, act)}`,
    counted: what,
    effect: able.length === 0 ? undefined : `${FAILED_ACTS[act].effect(what)} Jobs that fail later are not touched.`,
    instead: insteadOf(counted),
    seen: digestOf(selected ?? []),
    fields: { ...set, count: String(selected?.length ?? 0), up_to: writeMoment(upTo) },
    command: commandOf(act, ...optionsOf(filter, now), '--until', new Date(upTo + 1).toISOString()),
  }
}

/** Which jobs, in the words of the filter. */
function described(filter: Filter, upTo: number): Html {
  const since = sinceOf(filter, 0)
  const { kind = '', code, clientId } = filter
  return html`<dl class="facts">
<div><dt>Kind</dt><dd>${kind}</dd></div>
<div><dt>Fault</dt><dd>${code === undefined ? 'any' : html`<code>${code}</code> ${faultText(code)}`}</dd></div>
<div><dt>Client</dt><dd>${clientId === undefined ? 'any' : html`<code>${clientId}</code>`}</dd></div>
<div><dt>Failed</dt><dd>${since === undefined ? undefined : html`from ${moment(since)} `}up to ${moment(upTo)} UTC</dd></div>
</dl>`
}

/** Those that can't be sent again, counted by why. */
export function stays(selected: readonly Pick<SelectedCopy, 'whyNot'>[], act: FailedActName): Html | undefined {
  if (FAILED_ACTS[act].takes === 'all') return undefined
  const words = [...new Set(selected.map(({ whyNot }) => whyNot))].filter(word => word !== undefined)
  if (words.length === 0) return undefined
  const n = (word: WhyNot) => selected.filter(({ whyNot }) => whyNot === word).length
  return html`<p>These can not be sent again, and stay:</p>
<ul>${words.map(word => html`<li>${notDone(n(word), word)}</li>`)}</ul>`
}

function insteadOf(selected: Counted): string {
  if (selected === 'busy') return 'Other failed jobs are being counted. Wait a moment, then load this page again.'
  if (selected === undefined)
    return `There are more than ${jobs(FAILED_MOST)}, or more than can be counted here. One act is about ${count(FAILED_MOST)} at most: choose a fault, a client or a shorter time, or use the command.`
  if (selected.length === 0) return 'No such job failed up to this moment. Those of the last seconds are counted soon.'
  return 'None of these can be sent again.'
}

export const failedActRoutes = [actRoutes(SET), actRoutes(ONE)]
