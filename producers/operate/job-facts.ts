// The form in which a job is explained: who asked for what, what was decided and published, where the job is now, and what
// can be done. It holds no card data. find-facts.ts finds the facts; commands and pages show them.
import type { Counts } from '../../src/job/outcome.ts'
import type { JobState } from '../../src/queue/engine.ts'
import type { ReadCall, ReadOperation } from './job-reader.ts'

export interface ReasonFacts {
  field: string
  reason: string
  text: string
}

export interface Announced {
  revision: number
  /** When it was decided, RFC 3339. */
  at: string
  queue: string
  /** The name of the reply queue, if the sender chose one. */
  reply_to?: string
  /**
   * `waiting`: not published yet. `unread`: it is in the results queue. `read`: it left that queue. `published`: the queue
   * was not searched to its end.
   */
  state: 'waiting' | 'unproved' | 'unread' | 'read' | 'published'
  /** What the text says, if there is no receipt. */
  says?: { code: number; reasons: ReasonFacts[] }
}

export interface CallFacts {
  action: ReadCall['action']
  state: ReadCall['state']
  /** Why the provider refused it. */
  refusal?: string
  /** Whether its effect must be undone, or was. */
  reversal?: 'REQUIRED' | 'COMPLETED'
  recorded_at: string
  /** The last change of `state` or `reversal`. */
  changed_at: string
}

/** One thing that happened to a job, or that is so now. */
export interface Step {
  /** RFC 3339; undefined: now, or nobody wrote down when. */
  at?: string
  what: 'sent' | 'accepted' | 'called' | 'decided' | 'reversed' | 'answered' | 'failed' | 'queued'
  title: string
  /** What it means, in whole sentences. */
  text: string
  /** `warn` and `bad` need somebody. */
  tone: 'plain' | 'warn' | 'bad'
}

export interface JobFacts {
  receipt_id: string
  client: { id: string; name: string }
  /** Undefined if it isn't stored. */
  jti?: string
  kind?: string
  reference?: string
  /** Who signed the job, if it wasn't the client. */
  signed_by?: string
  /** When the sender accepted the work, RFC 3339. */
  accepted_at?: string
  /** How many attempts it took to decide. */
  attempts?: number
  decided?: {
    at: string
    status: 'SUCCEEDED' | 'FAILED' | 'CANCELLED'
    code: number
    outcome?: string
    reasons: ReasonFacts[]
    token?: string
    chunk?: number
    counts?: Counts
    /** Whether failed calls to providers must be compensated, or were. */
    reversal?: 'REQUIRED' | 'COMPLETED'
  }
  /** What was accepted over HTTP to be answered later. `until`: the latest time at which a worker starts it. */
  operation?: { state: ReadOperation['state']; accepted_at: string; until: string }
  /** Calls to card networks and third parties. */
  calls: CallFacts[]
  told: Announced[]
  /** Where the job is now; undefined if it is in no queue. */
  queued?: { queue: string; state: JobState; workers?: number }
  failed?: { id: string; kind: string; code: string; attempts: number; at: string; can_be_retried: boolean }
  /** The failed set was not searched to its end. */
  failed_set_is_cut?: true
  /** What happened, in order. */
  timeline: Step[]
  /** What the person on call can do; one sentence each. */
  next: string[]
}

/** What timeline and next steps are made of. */
export type PlainFacts = Omit<JobFacts, 'timeline' | 'next'>
