// Runs one operator's act (pause, cancel, retry, discard, …) in one transaction: the act's function locks what it
// changes, decides, and the act's audit row is written with the change. Commands and pages put the result into words.
import * as audits from '../store/access/audits.ts'
import type { Db, Store } from '../store/pool.ts'

/** Who acts. `machine`: an account of the host's operating system, which nobody proved; its `id` names the account. */
export interface Actor {
  kind: 'person' | 'client' | 'machine'
  id: string
  /** What the actor signed: a JWS that names the act. */
  proof?: string
}

export interface By {
  actor: Actor
  reason: string | undefined
}

/** What an act does, and to what. Example: action `batch.cancel`, subject = the batch's id. */
export interface Deed {
  action: string
  subject: string
}

/** The result of an act: what was done, or the word for the rule that refused it. Each act has its own words. */
export type ActResult<Done, Word extends string> = { done: Done } | { refused: Word }

/** What an act decided. `detail` goes into its audit row, beside actor and reason. */
export type Decided<Done, Word extends string> = { done: Done; detail: Record<string, unknown> } | { refused: Word }

/** Runs `decide` in a transaction and writes the audit row. A refused act writes no audit row. */
export function perform<Done, Word extends string>(
  store: Store,
  { action, subject }: Deed,
  { actor, reason }: By,
  decide: (db: Db) => Promise<Decided<Done, Word>>,
): Promise<ActResult<Done, Word>> {
  return store.transaction(async db => {
    const decided = await decide(db)
    if ('refused' in decided) return decided
    const { done, detail } = decided
    await audits.insert(db, {
      actor: `${actor.kind}:${actor.id}`,
      action,
      subject,
      detail: { ...detail, ...(reason && { reason }), ...(actor.proof && { proof: actor.proof }) },
    })
    return { done }
  })
}
