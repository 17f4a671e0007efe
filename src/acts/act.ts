// What an operator does to the installation's work (pause, cancel, retry, discard, …): a function of who does it and why,
// which decides under the lock of what it acts on and records itself in the same transaction. It knows no terminal and no
// page: whoever shows the verdict words it.
import * as audits from '../store/access/audits.ts'
import type { Db, Store } from '../store/pool.ts'

/** `machine`: whoever has an account there, which nobody proved. */
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

/** What is done to what: `batch.cancel`, a batch's id. */
export interface Deed {
  action: string
  subject: string
}

/** No is a value: `refused` is a word of the act's own. */
export type ActResult<Done, Word extends string> = { done: Done } | { refused: Word }

/** What an act decided, and what its audit row tells beside who and why. */
export type Decided<Done, Word extends string> = { done: Done; detail: Record<string, unknown> } | { refused: Word }

/** Runs an act. What is refused leaves no trace. */
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
