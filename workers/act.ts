// `act`: does what a person decided in the console. The console's signature alone does nothing: the person's passkey must have
// signed exactly this act. All is checked in the transaction of the effect, and a refusal has none.
import { isRefusal, type Refusal } from '../src/errors.ts'
import type { Act, ActName } from '../src/job/system/act.ts'
import * as audits from '../src/store/access/audits.ts'
import * as actNonces from '../src/store/person/act-nonces.ts'
import * as persons from '../src/store/person/persons.ts'
import type { Db } from '../src/store/pool.ts'
import { actOnBatch } from './act/batch.ts'
import { enrol } from './act/enrol.ts'
import { actOnFailed } from './act/failed.ts'
import { actOnIdentity } from './act/identities.ts'
import { recordExport } from './act/list-export.ts'
import { addPasskey, removePasskey } from './act/passkeys.ts'
import { actOnPeople, isPeopleAct, lockPeople } from './act/people.ts'
import { type DoAct, prove, timely } from './act/prove.ts'
import { actOnSchedule } from './act/schedule.ts'
import type { ActDeps, ConsoleTrust } from './act/trust.ts'
import type { Handler, JobAnswer, Retells, Work } from './work.ts'

const DO: Record<Exclude<ActName, 'person.enrol' | 'list.exported'>, DoAct> = {
  'batch.pause': actOnBatch,
  'batch.resume': actOnBatch,
  'batch.cancel': actOnBatch,
  'batch.note': actOnBatch,
  'failed.retry': actOnFailed,
  'failed.discard': actOnFailed,
  'schedule.pause': actOnSchedule,
  'schedule.resume': actOnSchedule,
  'schedule.run': actOnSchedule,
  'passkey.add': addPasskey,
  'passkey.remove': removePasskey,
  'identity.connect': actOnIdentity,
  'identity.disconnect': actOnIdentity,
  'person.invite': actOnPeople,
  'person.change': actOnPeople,
  'person.link': actOnPeople,
  'person.revoke': actOnPeople,
  'invite.revoke': actOnPeople,
}

export function openAct(console: ConsoleTrust): Handler<Act> & Retells {
  return {
    decide: async (work, _request, deps) => ({
      async save(db): Promise<JobAnswer> {
        const ended = timely(work.request, deps) ?? (await attempt(db, work, { ...deps, console }))
        if (isRefusal(ended)) return ended
        const { auditId } = ended
        await actNonces.setAudit(db, work.request.nonce, auditId)
        return { code: 200, outcome: 'DONE', tokenId: null, record: { audit_id: auditId } }
      },
    }),

    retell: async ({ receiptId }, { store }) => ({ audit_id: await actNonces.findAudit(store, receiptId) }),
  }
}

async function attempt(db: Db, work: Work<Act>, deps: ActDeps): Promise<{ auditId: number } | Refusal> {
  const { request } = work
  const { act: name } = request
  if (name === 'person.enrol' || name === 'list.exported') {
    const ended = await (name === 'person.enrol' ? enrol : recordExport)(db, work, deps)
    return isRefusal(ended) ? recorded(db, request, ended) : ended
  }
  // Nobody adds a passkey of a former domain while those are revoked; afterwards its touch is one of a revoked passkey.
  if (name === 'passkey.add') await persons.holdOffLockAll(db)
  if (isPeopleAct(name)) await lockPeople(db, request)
  const proved = await prove(db, work, deps)
  return isRefusal(proved) ? recorded(db, request, proved) : DO[name](db, proved, work, deps)
}

/**
 * Records an act that nobody has proved. Whoever sent it chose its words, so the row has none of them but the id of the person
 * that is claimed.
 */
async function recorded(db: Db, { act: name, person_id: claimed }: Act, refusal: Refusal): Promise<Refusal> {
  const detail = { act: name, why: refusal.reason }
  await audits.insert(db, {
    actor: 'client:console',
    action: 'person.prove',
    subject: claimed,
    detail,
    outcome: 'refused',
  })
  return refusal
}
