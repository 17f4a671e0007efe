// Jobs without a receipt, found in the queues by an id of ours: the job's own id, or that of its copy in the failed set. The
// envelope is not verified here. But a job's id is the hash of client and jti, so a job that claims another client or jti than
// its own isn't found; and it is shown only to a person who sees the client as a whole.
import type { Catalogue } from '../../../src/job/catalogue.ts'
import { peek } from '../../../src/job/envelope/envelope.ts'
import { jobId, receiptId } from '../../../src/job/envelope/ids.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import { failedCopies, failedFind } from '../../../src/queue/failed.ts'
import type { JobName } from '../../operate/find-facts.ts'
import type { KnownClient } from '../../operate/job-reader.ts'

interface Sources {
  queues: Queues
  catalogue: Catalogue
  clients: readonly KnownClient[]
}

interface FoundCopy {
  id: string
  code: string
  jti: string
  client: { id: string; name: string }
}

const COPY = /^f_[A-Za-z0-9_-]{43}$/

/** The copy in the failed set with this id of its own. */
export async function findCopy(id: string, { queues, catalogue, clients }: Sources): Promise<FoundCopy | undefined> {
  if (!COPY.test(id)) return undefined
  const copies = await Promise.all(catalogue.kinds.map(kind => failedFind(queues, kind, id)))
  const copy = copies.find(found => found !== undefined)
  const sender = copy && senderOf(copy, copy.jobId, clients)
  return sender && copy && { id, code: copy.code, jti: sender.jti, client: sender.named }
}

/**
 * The job with this id in a queue, or in the failed set as far as it can be searched until the time `until` (by
 * `performance.now()`).
 */
export async function findUndecided(id: string, sources: Sources & { until: number }): Promise<JobName | undefined> {
  const { catalogue, clients } = sources
  const queued = await envelopeIn(sources, id)
  const sender =
    queued !== undefined ? senderOf(claimed(queued, catalogue), id, clients) : await senderOfCopy(id, sources)
  return sender && { receiptId: receiptId(sender.client.clientId, sender.jti), jobId: id, ...sender }
}

async function envelopeIn({ queues, catalogue }: Sources, id: string): Promise<string | undefined> {
  const found = await Promise.all(catalogue.kinds.map(kind => queues.get(kind, id)))
  const data = found.find(job => job !== undefined)?.data
  const jws = (data as { jws?: unknown } | null | undefined)?.jws
  return typeof jws === 'string' ? jws : undefined
}

async function senderOfCopy(
  id: string,
  { queues, catalogue, clients, until }: Sources & { until: number },
): Promise<Sender | undefined> {
  for (const kind of catalogue.kinds)
    for await (const copy of failedCopies(queues, kind)) {
      const sender = copy.jobId === id ? senderOf(copy, id, clients) : undefined
      if (sender || performance.now() > until) return sender
    }
  return undefined
}

interface Sender {
  client: KnownClient
  jti: string
  named: { id: string; name: string }
}

/** Who sent the job with this id, if the id is made of what it says, and the person sees the whole client. */
function senderOf(
  said: { clientId: string; jti?: string } | undefined,
  id: string,
  clients: readonly KnownClient[],
): Sender | undefined {
  const client = clients.find(one => one.isWhole && one.clientId === said?.clientId)
  if (said?.jti === undefined || !client || jobId(said.clientId, said.jti) !== id) return undefined
  return { client, jti: said.jti, named: { id: client.clientId, name: client.name } }
}

function claimed(jws: string, { claims: schema }: Catalogue): { clientId: string; jti: string } | undefined {
  const peeked = peek(jws)
  const claims = typeof peeked === 'string' ? undefined : schema.safeParse(peeked.payload).data
  return claims && { clientId: claims.client_id ?? claims.iss, jti: claims.jti }
}
