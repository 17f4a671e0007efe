// `act`: does what a person decided in the console. The console's signature alone does nothing: the person's passkey must have
// signed exactly this act. All is checked in the transaction of the effect, by the act's row as this file imports it, and a refusal has
// no effect.
import { recordRefusal } from '../src/acts/act.ts'
import { isRefusal, type Refusal, refuse } from '../src/errors.ts'
import { type Act, rowOf } from '../src/job/system/act.ts'
import type { ActOn, ActRow } from '../src/job/system/act-row.ts'
import * as audits from '../src/store/access/audits.ts'
import * as actNonces from '../src/store/person/act-nonces.ts'
import * as persons from '../src/store/person/persons.ts'
import type { Db } from '../src/store/pool.ts'
import { actOnBatch } from './act/batch.ts'
import { enrol } from './act/enrol.ts'
import { actOnFailed } from './act/failed.ts'
import { actOnIdentity } from './act/identities.ts'
import { recordExport } from './act/list-export.ts'
import { actOnPasskey } from './act/passkeys.ts'
import { actOnPeople, lockPeople } from './act/people.ts'
import { type DoAct, type Doing, type Proved, prove, timely } from './act/prove.ts'
import { actOnSchedule } from './act/schedule.ts'
import type { ActDeps, ConsoleTrust } from './act/trust.ts'
import type { Handler, JobAnswer, Retells, Work } from './work.ts'

const DO: Record<Exclude<ActOn, 'invited' | 'list'>, DoAct> = {
  batch: actOnBatch,
  failed: actOnFailed,
  schedule: actOnSchedule,
  people: actOnPeople,
  passkey: actOnPasskey,
  identity: actOnIdentity,
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
  const { act: name, subject } = request
  const row = rowOf(name)
  const { on } = row
  if (on === 'invited' || on === 'list') {
    const ended = await (on === 'invited' ? enrol : recordExport)(db, work, deps)
    return isRefusal(ended) ? recorded(db, request, ended) : ended
  }
  // Nobody adds a passkey of a former domain while those are revoked; afterwards its touch is one of a revoked passkey.
  if (name === 'passkey.add') await persons.holdOffLockAll(db)
  if (on === 'people') await lockPeople(db, request)
  const proved = await prove(db, work, deps)
  if (isRefusal(proved)) return recorded(db, request, proved)
  const by = { actor: proved.actor, reason: row.reach === 'own' ? undefined : (request.reason ?? undefined) }
  const deed = { action: name, subject }
  const refused: Doing['refused'] = async (word, field, entityId) => {
    await recordRefusal(db, deed, by, { why: word, entityId })
    return refuse(word, `body.${field}`)
  }
  const forbidden = forbiddenBy(row, proved, request)
  return forbidden ? refused(...forbidden) : DO[on](db, { ...proved, request, by, deed, refused }, deps)
}

/** What of the row keeps this person from the act. */
function forbiddenBy(
  { roles, reach }: ActRow,
  { person, actor }: Proved,
  { subject }: Act,
): Parameters<Doing['refused']> | undefined {
  // The person of the embedded engine has no passkey to touch.
  if (reach === 'own' && actor.credential === undefined) return ['passkey_missing', 'proof']
  if (reach === 'own' && subject !== person.personId) return ['act_forbidden', 'subject']
  const mayDo = roles.some(role => person.roles.includes(role)) && (reach !== 'all' || person.entities === null)
  return mayDo ? undefined : ['act_forbidden', 'act']
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
