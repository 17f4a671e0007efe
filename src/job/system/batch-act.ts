// Acts of a person on a batch. src/acts/batch.ts does them, for commands too.
import { z } from 'zod'
import type { ActRow } from './act-row.ts'

/** A batch's id is unique for each client only. */
export const BatchParameters = z.strictObject({ client_id: z.string().regex(/^c[a-z0-9]{25}$/) })

/** PAUSED: by a person. AT_LIMIT: by its sender's limit, so it goes on when the sender does. */
type State = 'RUNNING' | 'OPEN' | 'STALLED' | 'ABANDONED' | 'PAUSED' | 'AT_LIMIT' | 'FINISHED' | 'CANCELLED'

interface BatchActRow extends ActRow {
  /** `any`: it changes nothing, so it is right whatever the batch did since the person saw it. */
  states: readonly State[] | 'any'
  /** What will happen, as sentences. `left`: the rows that are not done. */
  effect: (left: string) => string
  /** On the list of what people did to a batch. */
  past: string
}

const GOING = ['RUNNING', 'OPEN', 'STALLED', 'ABANDONED'] as const
const COMMON = {
  on: 'batch',
  noun: 'a batch',
  reach: 'sight',
  parameters: BatchParameters,
  isSeen: true,
  facts: ({ parameters }) => ({ client_id: parameters['client_id'] }),
} as const satisfies Partial<ActRow>

export const BATCH_ACTS = {
  'batch.pause': {
    ...COMMON,
    verb: 'Pause',
    roles: ['OPERATOR', 'ADMIN'],
    isFinal: false,
    states: GOING,
    effect: left => `Workers stop at this batch: ${left} wait until somebody resumes it. Rows that are done stay done.`,
    past: 'paused it',
  },
  'batch.resume': {
    ...COMMON,
    verb: 'Resume',
    roles: ['OPERATOR', 'ADMIN'],
    isFinal: false,
    states: ['PAUSED'],
    effect: left => `Workers go on with this batch: ${left} are worked from now on.`,
    past: 'resumed it',
  },
  'batch.cancel': {
    ...COMMON,
    verb: 'Cancel',
    roles: ['ADMIN'],
    isFinal: true,
    states: [...GOING, 'PAUSED', 'AT_LIMIT'],
    effect: left => `${left} will never be worked. Rows that are done stay done. Nobody can take this back.`,
    past: 'cancelled it',
  },
  'batch.note': {
    ...COMMON,
    verb: 'Write',
    noun: 'a note on a batch',
    roles: ['OPERATOR', 'ADMIN'],
    isFinal: false,
    states: 'any',
    asks: 'The note. Everybody who sees this batch reads it, and it is written into the audit.',
    effect: () =>
      'Everybody who sees the batch reads the note on its page. It changes nothing else, and nobody can remove it.',
    past: 'noted',
  },
} as const satisfies Record<string, BatchActRow>
export type BatchActName = keyof typeof BATCH_ACTS
export const batchActOf = (name: BatchActName): BatchActRow => BATCH_ACTS[name]

const WHY = { PAUSED: 'paused', AT_LIMIT: 'at_limit', FINISHED: 'finished', CANCELLED: 'cancelled' } as const

/** Why the act isn't for a batch in this state; undefined: it is. */
export function batchRefusal(
  name: BatchActName,
  { state, pausedAt }: { state: Exclude<State, 'AT_LIMIT'>; pausedAt: number | null },
): (typeof WHY)[keyof typeof WHY] | 'not_paused' | undefined {
  const { states } = batchActOf(name)
  const now = state === 'PAUSED' && pausedAt === null ? 'AT_LIMIT' : state
  if (states === 'any' || states.includes(now)) return undefined
  return now in WHY ? WHY[now as keyof typeof WHY] : 'not_paused'
}
