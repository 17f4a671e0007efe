// An act of a person on copies in the failed set: whether the person may do it, and whether the copies are still exactly those that
// the person saw. Then it is recorded, and workers do it after the commit (src/acts/failed-acts.ts).
import { performIn } from '../../src/acts/act.ts'
import { recordFailed } from '../../src/acts/failed-acts.ts'
import { isClientGranted } from '../../src/acts/grants.ts'
import { assert } from '../../src/errors.ts'
import { has } from '../../src/job/system/act-row.ts'
import { FAILED_ACTS, FAILED_MOST, FailedParameters, failedSubject, isAble } from '../../src/job/system/failed-act.ts'
import { ownerOf } from '../../src/queue/failed/copy.ts'
import {
  type ClientSeen,
  type CopyClient,
  digestOf,
  remembering,
  type SelectedCopy,
  selectCopies,
  selectedOf,
} from '../../src/queue/failed/selection.ts'
import { failedFind } from '../../src/queue/failed.ts'
import * as clients from '../../src/store/access/clients.ts'
import type { Person } from '../../src/store/person/persons.ts'
import type { Db } from '../../src/store/pool.ts'
import type { DoAct } from './prove.ts'
import type { ActDeps } from './trust.ts'

/** As long as the console before it shows the act: meanwhile the transaction holds its locks and a connection. */
const LOOK_MS = 5_000

export const actOnFailed: DoAct = async (db, { person, request, by, deed, refused }, deps) => {
  const { act, subject, seen, nonce } = request
  assert(has(FAILED_ACTS, act), 'its row says that it is on copies in the failed set')
  const parameters = FailedParameters.parse(request.parameters)
  const { kind } = parameters
  if (!deps.catalogue.find(kind)) return refused('failed_not_found', 'parameters')
  const isMany = 'filter' in parameters || 'ids' in parameters
  if (isMany && subject !== failedSubject(parameters)) return refused('failed_not_found', 'subject')
  const sees = { seen: clientsOf(db, person, deps), now: deps.clock() }
  const found = await findAll(parameters, subject, sees, deps)
  if (!isMany && found?.length === 0) return refused('failed_not_found', 'subject')
  if (!found || digestOf(found) !== seen || (isMany && found.length !== countIn(parameters)))
    return refused('changed_meanwhile', 'seen')
  if (!found.some(copy => isAble(copy, act))) return refused('act_state', 'act')
  const record = () => recordFailed(db, { nonce, action: act, kind, copies: found.toReversed() }, by)
  if (!isMany) return { auditId: (await record()).get(subject) ?? 0 }
  // The whole has a row of its own, before those of its copies.
  const selection =
    'ids' in parameters
      ? { ticked: parameters.ids.length }
      : { filter: parameters.filter, count: parameters.count, up_to: parameters.up_to }
  const whole = await performIn(db, deed, by, async () => ({
    done: undefined,
    detail: { kind, ...selection, ids_sha256: seen },
  }))
  await record()
  return { auditId: whole.auditId }
}

function countIn(parameters: FailedParameters): number {
  return 'ids' in parameters ? parameters.ids.length : 'count' in parameters ? parameters.count : 1
}

async function findAll(
  parameters: FailedParameters,
  subject: string,
  sees: Sees,
  deps: Pick<ActDeps, 'queues'>,
): Promise<SelectedCopy[] | undefined> {
  if ('filter' in parameters) return findMany(parameters, sees, deps)
  if (!('ids' in parameters)) return findOne(parameters.kind, subject, sees, deps)
  const found: SelectedCopy[] = []
  for (const id of parameters.ids) found.push(...(await findOne(parameters.kind, id, sees, deps)))
  return found
}

interface Sees {
  seen: ClientSeen<CopyClient>
  now: number
}

/** Undefined: there are more than the person can have seen. */
function findMany(
  { kind, filter, count, up_to: upTo }: Extract<FailedParameters, { count: number }>,
  sees: Sees,
  { queues }: Pick<ActDeps, 'queues'>,
): Promise<SelectedCopy[] | undefined> {
  const { code, client_id: clientId, since } = filter
  const bounds = { ...sees, most: Math.min(count, FAILED_MOST), lookMs: LOOK_MS }
  return selectCopies(queues, { kind, code, clientId, since, upTo }, bounds)
}

/** Empty: there is none, or it is not the person's to see. */
async function findOne(
  kind: string,
  id: string,
  { seen, now }: Sees,
  { queues }: Pick<ActDeps, 'queues'>,
): Promise<SelectedCopy[]> {
  const copy = await failedFind(queues, kind, id)
  const client = copy && (await seen(ownerOf(copy)))
  return copy && client ? [selectedOf(copy, client, now)] : []
}

/** Whose copies the person meets: for some entities only those of clients that act for no other entity. */
function clientsOf(db: Db, { entities }: Person, { ring, onUngranted }: ActDeps): ClientSeen<CopyClient> {
  const find = async (clientId: string): Promise<CopyClient | undefined> => {
    const client = await clients.find(db, clientId)
    if (!client) return undefined
    const isRevoked = client.revokedAt !== null
    if (entities === null) return { isRevoked }
    // A revoked row has no code.
    if (!isRevoked && !isClientGranted(ring, client)) {
      onUngranted('client', clientId)
      return undefined
    }
    const isTheirs =
      !client.system && client.entities.length > 0 && client.entities.every(one => entities.includes(one))
    return isTheirs ? { isRevoked } : undefined
  }
  return remembering(find, { seesAll: entities === null })
}
