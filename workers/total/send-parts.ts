// Sends the jobs of totals: the store knows which parts are due, and a part whose job was lost is sent again under the
// same jti. Processes of bulk kinds do it, with the key of the system client `worker`; several at once do no harm.
import { type Claims, type SigningKey, sign } from '../../src/job/envelope/envelope.ts'
import { jobId } from '../../src/job/envelope/ids.ts'
import type { QueuedJob } from '../../src/queue/engine.ts'
import { every } from '../../src/recurring.ts'
import * as clients from '../../src/store/access/clients.ts'
import type { DuePart } from '../../src/store/total/total-parts.ts'
import * as parts from '../../src/store/total/total-parts.ts'
import * as totals from '../../src/store/total/totals.ts'
import type { Deps } from '../deps.ts'

type SendDeps = Pick<Deps, 'store' | 'queues' | 'clock' | 'log' | 'settings'>

const LOOK_MS = 1_000
/** After this time a job that hasn't ended is sent again; while it waits in the queue, that does nothing. */
const LEASE_MS = 60_000
/**
 * Parts of a total are sent only for this long after a command last said that it waits; a command says so every few
 * seconds.
 */
const WANTED_MS = 600_000
const UNWANTED_MS = 3_600_000
const PAGE = 100

/** Starts to look for parts; returns a function that stops it. */
export function sendParts(deps: SendDeps, signingKey: SigningKey): () => Promise<void> {
  const { store, queues } = deps
  let userId: string | undefined
  let sweepAt = 0
  async function look(): Promise<void> {
    if (deps.clock() >= sweepAt) {
      sweepAt = deps.clock() + LEASE_MS
      await totals.removeUnwanted(store, deps.clock() - UNWANTED_MS)
    }
    userId ??= (await clients.find(store, signingKey.clientId))?.userId
    const sub = userId
    // Without the client no job can be sent, so no part is claimed.
    if (sub === undefined) return
    const due = await parts.claim(store, { leaseMs: LEASE_MS, wantedMs: WANTED_MS, limit: PAGE })
    if (due.length === 0) return
    await queues.addBulk(
      'manifest-total',
      due.map(part => jobOf(part, sub, signingKey, deps)),
    )
  }
  return every(LOOK_MS, look, { log: deps.log, firstMs: 0 })
}

function jobOf(
  { totalId, part, entityId }: DuePart,
  sub: string,
  signingKey: SigningKey,
  { clock, settings }: SendDeps,
): QueuedJob {
  const jti = `total-${totalId}-${part}`
  const claims: Claims = {
    iss: signingKey.clientId,
    aud: settings.audience,
    sub,
    entity_id: entityId,
    roles: [],
    iat: Math.floor(clock() / 1000),
    jti,
    kind: 'manifest-total',
    request: { total_id: totalId, part },
  }
  return { id: jobId(signingKey.clientId, jti), data: { jws: sign(claims, signingKey) } }
}
