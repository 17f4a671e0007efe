// What needs somebody, worst first, and the sentence with which the page begins. What can't be seen is unknown, never well. The
// thresholds are those of `tokenmill status`: the scheduler makes its checks and writes them to the store.
import { DEAD_MS } from '../../../src/store/console/now.ts'
import { word } from '../figures.ts'
import { type Path, path } from '../html.ts'
import { timeOf } from '../live/frame.ts'
import { HEARD_MS, isWatched, seesBatches, unseenSince } from '../pulse.ts'
import type { Facts, ShownBatch, Whole } from './facts.ts'

export type Tone = 'well' | 'warn' | 'unknown' | 'bad'

export interface Need {
  /** Names it among the needs of a page; a part of an element's id. */
  id: string
  tone: Exclude<Tone, 'well'>
  /** What it is about, in a word or two. */
  what: string
  says: string
  /** ms since the epoch; undefined: nobody saw when it began. */
  since: number | undefined
  to: Path
  /** What to do, with commands between backticks. */
  next: string
}

const TONES = { warning: 'warn', unknown: 'unknown', critical: 'bad' } as const
const WORST: readonly Tone[] = ['bad', 'warn', 'unknown', 'well']
/** Where the page shows more of a check. */
const PLACES: Readonly<Record<string, Path>> = {
  batches: path`/batches`,
  'failed jobs': path`/failed`,
  workers: path`/now#hosts`,
  processes: path`/now#hosts`,
  backlog: path`/now#kinds`,
  outbox: path`/now#outbox`,
}
const ELSEWHERE = path`/now`
/** The check of schedules names runs as `2026-11-23 of 091e6bfe-…`. */
const NAMED_SCHEDULE = /\d of ([0-9a-f]{8}-[0-9a-f-]{27})/g
const START = 'start it: `tokenmill scheduler`'

export function needsOf(facts: Facts): Need[] {
  const found = facts.whole ? needsOfWhole(facts, facts.whole) : needsOfBatches(facts)
  return found.sort((a, b) => WORST.indexOf(a.tone) - WORST.indexOf(b.tone))
}

export interface Sentence {
  text: string
  tone: Tone
}

/** The sentence names a moment only if somebody saw when something began. */
export function sentenceOf(needs: readonly Need[]): Sentence {
  const some = needs.filter(({ tone }) => tone !== 'unknown').length
  const unseen = needs.length - some
  const tone = needs[0]?.tone ?? 'well'
  if (some > 0) {
    const needing = some === 1 ? '1 thing needs you' : `${some} things need you`
    return { tone, text: unseen > 0 ? `${needing}, and something can’t be seen` : needing }
  }
  if (unseen === 0) return { tone, text: 'Well' }
  const moments = needs.flatMap(({ since }) => since ?? [])
  return { tone, text: moments.length === 0 ? 'Unknown' : `Unknown since ${timeOf(Math.min(...moments))}` }
}

/** What needs somebody in the whole installation. */
export function needsOfWhole(
  { now, pulse }: Pick<Facts, 'now' | 'pulse'>,
  { kinds, processes, checks }: Pick<Whole, 'kinds' | 'processes' | 'checks'>,
): Need[] {
  const isSeen = isWatched(pulse)
  const told = isSeen ? checks.filter(({ state }) => state !== 'well') : []
  return [
    ...schedulerNeed({ now, pulse }, { processes, isSeen }),
    ...told.map(({ name, state, says, next, since }) => ({
      id: name.replaceAll(' ', '-'),
      tone: TONES[state === 'well' ? 'unknown' : state],
      what: name,
      says,
      since,
      to: placeOf(name, says),
      next: next ?? '`tokenmill status`',
    })),
    ...(told.some(({ name }) => name === 'workers') ? [] : workersNeed(now, { kinds, processes })),
  ]
}

/** Where the page shows more. Of one schedule that needs somebody, its own page. */
function placeOf(check: string, says: string): Path {
  if (check !== 'schedules') return PLACES[check] ?? ELSEWHERE
  const named = [...new Set([...says.matchAll(NAMED_SCHEDULE)].map(([, id = '']) => id))]
  const [only, ...others] = named
  return only === undefined || others.length > 0 ? path`/reports` : path`/reports/schedules/${only}`
}

function schedulerNeed(
  { now, pulse }: Pick<Facts, 'now' | 'pulse'>,
  { processes, isSeen }: Pick<Whole, 'processes'> & { isSeen: boolean },
): Need[] {
  const { watchedMs } = pulse
  const lives = processes.some(({ role, silentMs }) => role === 'scheduler' && silentMs <= DEAD_MS)
  if (isSeen && lives) return []
  const says = lives
    ? 'no scheduler has looked since, so most of this page is not known'
    : 'no scheduler lives: nobody looks whether all is well, and no schedule runs'
  const since = watchedMs === null ? undefined : now - watchedMs
  return [{ id: 'scheduler', tone: lives ? 'unknown' : 'bad', what: 'scheduler', says, since, to: HOSTS, next: START }]
}

const HOSTS = path`/now#hosts`

/** Kinds whose workers fell silent, before `status` takes them for dead. */
function workersNeed(now: number, { kinds: all, processes }: Pick<Whole, 'kinds' | 'processes'>): Need[] {
  const workers = processes.filter(({ kinds }) => kinds.length > 0)
  const alive = workers.filter(({ silentMs }) => silentMs <= DEAD_MS)
  const heard = new Set(alive.filter(({ silentMs }) => silentMs <= HEARD_MS).flatMap(({ kinds }) => kinds))
  const silent = all
    .map(({ kind }) => kind)
    .filter(kind => !heard.has(kind) && alive.some(({ kinds }) => kinds.includes(kind)))
  const about = {
    id: 'workers',
    what: 'workers',
    to: HOSTS,
    next: 'look at their host; `tokenmill workers` starts them',
  }
  const lastMs = Math.min(...workers.map(({ silentMs }) => silentMs))
  const since = workers.length === 0 ? undefined : now - lastMs
  if (alive.length === 0) return [{ ...about, tone: 'bad', says: 'no worker process lives', since }]
  if (silent.length === 0) return []
  const says = `nobody who works ${silent.join(', ')} was heard`
  const ofSilent = alive.filter(({ kinds }) => silent.some(kind => kinds.includes(kind)))
  return [{ ...about, tone: 'unknown', says, since: now - Math.min(...ofSilent.map(({ silentMs }) => silentMs)) }]
}

/** What a person of some entities is told: their batches, and whether it is seen at all that these go on. */
function needsOfBatches({ now, pulse, batches }: Facts): Need[] {
  const stalled = batches.filter(({ state }) => state === 'STALLED').map(stalledNeed)
  if (seesBatches(pulse)) return stalled
  const unseen: Need = {
    id: 'unseen',
    tone: 'unknown',
    what: 'batches',
    to: path`/batches`,
    says: 'whether your batches go on is not known: a part of tokenmill does not answer',
    since: unseenSince(pulse, now),
    next: 'ask those who run tokenmill',
  }
  return [...stalled, unseen]
}

function stalledNeed({ batchNo, batchId, clientId, activeAt }: ShownBatch): Need {
  return {
    id: `batch-${batchNo}`,
    tone: 'warn',
    what: batchId,
    says: 'it has rows left, and no chunk of it was answered for a minute',
    since: activeAt,
    to: path`/batches/${batchNo}`,
    next: `\`tokenmill batch show ${word(batchId)} --client ${word(clientId)}\``,
  }
}
