// The ids for calls of every route: of what the world of the looks holds, and of nothing.
import { KIND } from '../../../workers/act/failed-copies.ts'
import type { ConsoleBundle, Person } from '../bundle.ts'
import type { World } from '../looks/world.ts'
import type { Names } from './calls.ts'

const NO_ID = '00000000-0000-4000-8000-0000000000ff'
/** What doesn't exist. */
export const MISSING: Names = {
  batch: '999999999',
  batchId: 'nothing',
  reference: 'nothing at all',
  kind: KIND,
  copy: `f_${'A'.repeat(43)}`,
  job: NO_ID,
  token: NO_ID,
  schedule: NO_ID,
  date: '2026-01-01',
  entity: NO_ID,
  audit: '999999999',
  person: NO_ID,
  invite: NO_ID,
  client: `c${'0'.repeat(24)}9`,
  identity: NO_ID,
  act: 'A'.repeat(22),
  added: 'A'.repeat(22),
  enrolled: 'A'.repeat(22),
  passkey: '0'.repeat(16),
  session: '0'.repeat(64),
  flow: 'A'.repeat(43),
}

/** `person`: whose pages the world holds. */
export async function namesOf(
  { rows }: Pick<ConsoleBundle, 'rows'>,
  world: World,
  { sessionHash }: Pick<Person, 'sessionHash'>,
): Promise<Names> {
  const part = (path: string, at: number) => path.split('/')[at] ?? ''
  const [flow] = await rows<{ hash: Buffer }>('select state_hash as hash from tokenmill.openid_flow limit 1')
  return {
    batch: String(world.running),
    batchId: '2026-11-20-autumn',
    reference: 'customer 17',
    kind: KIND,
    copy: part(world.copy, 3),
    job: part(world.job, 3),
    token: part(world.token, 3),
    schedule: part(world.failedRun, 3),
    date: part(world.failedRun, 4),
    entity: part(world.failedRun, 5),
    audit: part(world.auditRow, 2),
    person: world.person,
    invite: world.invite,
    // Whose batches the person of one entity doesn't see.
    client: `c${'0'.repeat(24)}1`,
    identity: world.identity,
    act: world.nonces[1] ?? '',
    added: world.added[1] ?? '',
    // Whoever has the number of an enrolment is the one who enrols, and signed in nowhere.
    enrolled: MISSING.enrolled,
    passkey: part(world.removal, 2),
    session: sessionHash.toString('hex'),
    flow: flow?.hash.toString('base64url') ?? '',
  }
}
