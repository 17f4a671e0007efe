// Acts of a person on copies in the failed set: one copy, those that are ticked, or all that a filter finds. src/acts/failed-acts.ts
// does them.
import { z } from 'zod'
import { kindName, text } from '../envelope/text.ts'
import type { ActRow } from './act-row.ts'

/** How many copies one act may be about. */
export const FAILED_MOST = 1_000

const moment = () => z.int().min(0).max(253_402_300_799_999)
/** One copy in the failed set: the subject is its id. */
const OneFailed = z.strictObject({ kind: kindName() })
/**
 * All copies of the kind that the filter matches and that failed at `up_to` or before. `count`: how many the person saw.
 * Moments in ms since the epoch.
 */
const ManyFailed = z.strictObject({
  kind: kindName(),
  filter: z.strictObject({
    code: z
      .string()
      .regex(/^[a-z_]{1,40}$/)
      .exactOptional(),
    client_id: text(1, 128).exactOptional(),
    since: moment().exactOptional(),
  }),
  count: z.int().min(1).max(FAILED_MOST),
  up_to: moment(),
})
/** How many copies may be ticked. */
export const TICKED_MOST = 50
/** These copies of the kind, each once. */
const TickedFailed = z.strictObject({
  kind: kindName(),
  ids: z
    .array(z.string().regex(/^f_[\w-]{43}$/))
    .min(1)
    .max(TICKED_MOST)
    .refine(ids => new Set(ids).size === ids.length),
})
export const FailedParameters = z.union([OneFailed, ManyFailed, TickedFailed])
export type FailedParameters = z.infer<typeof FailedParameters>

/** The subject of an act on many copies: the name of their queue. */
export const failedSubject = ({ kind }: { kind: string }) => `failed-${kind}`

interface FailedActRow extends ActRow {
  /** Which copies it can be done to; the others stay. */
  takes: 'all' | 'sendable'
  /** What will happen, as sentences. `what`: how many jobs. */
  effect: (what: string) => string
  /** What became of the copies. */
  past: string
}

const COMMON = {
  on: 'failed',
  noun: 'a failed job',
  reach: 'sight',
  parameters: FailedParameters,
  isSeen: true,
  // Of the copies that were asked for: src/acts/person-proof.ts.
  facts: () => ({}),
} as const satisfies Partial<ActRow>

export const FAILED_ACTS = {
  'failed.retry': {
    ...COMMON,
    verb: 'Retry',
    roles: ['OPERATOR', 'ADMIN'],
    isFinal: false,
    takes: 'sendable',
    effect: what =>
      `${what}: back on the queue, and worked as if sent anew. What was done before is not done twice. The sender gets the answer.`,
    past: 'sent again',
  },
  'failed.discard': {
    ...COMMON,
    verb: 'Discard',
    roles: ['ADMIN'],
    isFinal: true,
    takes: 'all',
    effect: what =>
      `${what}: the copy is deleted, and can not be sent again from here. Nobody can take this back. The sender was answered 500 when it failed, and may send it anew.`,
    past: 'discarded',
  },
} as const satisfies Record<string, FailedActRow>
export type FailedActName = keyof typeof FAILED_ACTS

/** Whether the act can be done to the copy at all. `whyNot`: why the copy can't be sent again. */
export function isAble({ whyNot }: { whyNot: string | undefined }, name: FailedActName): boolean {
  return FAILED_ACTS[name].takes === 'all' || whyNot === undefined
}
