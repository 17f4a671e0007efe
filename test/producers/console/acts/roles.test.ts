// Every act by every role: asked of the console directly, without its pages, and sent to a worker with the touch of that person, as
// a console that skips its own check would send it. An act that is new needs a row.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeCookie } from '../../../../producers/console/server/cookie.ts'
import { ACTS, type ActName } from '../../../../src/job/system/act.ts'
import * as sessions from '../../../../src/store/console/sessions.ts'
import type { PersonRole } from '../../../../src/store/person/persons.ts'
import { openAuthenticator } from '../../../vault/passkey/authenticator.ts'
import { type ActBench, type Member, openActBench, type Unproved } from '../../../workers/act/bench.ts'
import { failCopy, KIND } from '../../../workers/act/failed-copies.ts'
import { type ConsoleBundle, OURS, openConsoleBundle } from '../bundle.ts'

const ROLES = ['VIEWER', 'OPERATOR', 'ADMIN'] as const satisfies readonly PersonRole[]
const NO_ID = '00000000-0000-4000-8000-0000000000ff'
const SEEN = 'A'.repeat(43)
const KEY = { lookup_hash: SEEN, public_key: SEEN }
const RIGHTS = { role_VIEWER: 'on', sees: 'all', entities: '' }

interface Subjects {
  batch: number
  copy: string
  schedule: string
  person: string
  invite: string
}

interface Row {
  may: readonly PersonRole[]
  /** The path at which the act is begun, and what is sent there; undefined: it is everybody's, on what is their own. */
  http?: (subjects: Subjects) => [path: string, json: Record<string, string>]
  /** What a worker is asked; it is done to what isn't there, so whoever may is told that. */
  asked: (member: Member) => Pick<Unproved, 'subject' | 'parameters' | 'seen'>
  said: string
}

const EVERY = ROLES
const SOME = ['OPERATOR', 'ADMIN'] as const
const ADMINS = ['ADMIN'] as const
const given = { seen: SEEN, reason: 'why' }
const onBatch = (act: string, may: Row['may']): Row => ({
  may,
  said: 'batch_not_found',
  http: ({ batch }) => [`/batches/${batch}/${act}/begin`, given],
  asked: () => ({ subject: 'no-batch', parameters: { client_id: `c${'0'.repeat(25)}` }, seen: 'RUNNING' }),
})
const onFailed = (act: string, may: Row['may']): Row => ({
  may,
  said: 'failed_not_found',
  http: ({ copy }) => [`/failed/${KIND}/${copy}/${act}/begin`, given],
  asked: () => ({ subject: `f_${SEEN}`, parameters: { kind: KIND }, seen: SEEN }),
})
const onSchedule = (act: string, more = {}): Row => ({
  may: SOME,
  said: 'schedule_not_found',
  http: ({ schedule }) => [`/reports/schedules/${schedule}/${act}/begin`, { ...given, ...more }],
  asked: () => ({ subject: NO_ID, parameters: more, seen: SEEN }),
})
const onPerson = (act: string, form: Record<string, string>, parameters: object): Row => ({
  may: ADMINS,
  said: 'person_unknown',
  http: ({ person }) => [`/people/${person}/${act}/begin`, { ...given, ...form }],
  asked: () => ({ subject: NO_ID, parameters: { ...parameters }, seen: SEEN }),
})
const onOwn = (parameters: object, said: string): Row => ({
  may: EVERY,
  said,
  asked: ({ personId }) => ({ subject: personId, parameters: { ...parameters }, seen: null }),
})
/** Made for no request of anybody. */
const NEW = openAuthenticator({ origin: 'http://localhost', rpId: 'localhost' }).create(Buffer.alloc(32))
const ACCOUNT = { issuer: 'https://login.example.com', subject: 'nobody' }

const ROWS: Record<ActName, Row> = {
  'batch.pause': onBatch('pause', SOME),
  'batch.resume': onBatch('resume', SOME),
  'batch.cancel': onBatch('cancel', ADMINS),
  'batch.note': onBatch('note', SOME),
  'failed.retry': onFailed('retry', SOME),
  'failed.discard': onFailed('discard', ADMINS),
  'schedule.pause': onSchedule('pause'),
  'schedule.resume': onSchedule('resume'),
  'schedule.run': onSchedule('run', { date: '2026-01-01' }),
  // Nobody is anybody yet.
  'person.enrol': { ...onOwn({}, 'invite_unknown'), asked: () => ({ subject: NO_ID, parameters: {}, seen: null }) },
  'list.exported': {
    may: EVERY,
    said: 'DONE',
    http: () => ['/batches/csv', {}],
    asked: () => ({ subject: 'batches', parameters: { list: 'batches' }, seen: null }),
  },
  'passkey.add': { ...onOwn({ ...NEW }, 'passkey_challenge'), http: () => ['/passkeys/add/begin', {}] },
  'passkey.remove': onOwn({ credential_id: 'none' }, 'passkey_unknown'),
  'identity.connect': onOwn(ACCOUNT, 'DONE'),
  'identity.disconnect': onOwn({ ...ACCOUNT, subject: 'never' }, 'identity_unknown'),
  'person.invite': {
    may: ADMINS,
    said: 'DONE',
    http: () => ['/people/invite/begin', { ...given, ...RIGHTS, ...KEY, name: 'nora', seen: '' }],
    asked: () => ({ subject: 'nora', parameters: { roles: ['VIEWER'], entities: null, ...KEY }, seen: null }),
  },
  'person.change': onPerson('change', RIGHTS, { roles: ['VIEWER'], entities: null }),
  'person.link': onPerson('link', KEY, KEY),
  'person.revoke': onPerson('revoke', {}, {}),
  'invite.revoke': {
    may: ADMINS,
    said: 'invite_unknown',
    http: ({ invite }) => [`/people/invites/${invite}/revoke/begin`, given],
    asked: () => ({ subject: NO_ID, parameters: {}, seen: SEEN }),
  },
}

describe('an act by a role', () => {
  let bundle: ConsoleBundle
  let bench: ActBench
  let subjects: Subjects
  const members = new Map<PersonRole, Member & { cookie: string }>()
  beforeAll(async () => {
    bundle = await openConsoleBundle()
    const { installation, origin } = bundle
    await installation.openWorkers({ roles: ['interactive'] })
    bench = await openActBench(installation, { origin, rpId: 'localhost' })
    for (const role of ROLES) {
      const member = await bench.join(role, [role])
      const { value, hash } = makeCookie()
      const { personId } = member
      const session = { sessionHash: hash, personId, credentialId: member.authenticator.credentialId, isLocal: false }
      await sessions.insert(installation.vault.store, { ...session, address: '127.0.0.1' })
      members.set(role, { ...member, cookie: `tokenmill-console=${value}` })
    }
    const { credentials, queues } = installation
    const schedule = randomUUID()
    await bundle.rows(
      `insert into tokenmill.schedule (schedule_id, kind, client_id, report_type, entity_id, mime_type, time, zone)
values ($1, 'report', $2, 'INVOICE', $3, 'text/csv', '02:00', 'UTC')`,
      [schedule, credentials.signingKey.clientId, OURS],
    )
    const { inviteId } = await bench.invite('ines', ['VIEWER'])
    const person = (await bundle.addPerson('somebody')).personId
    subjects = {
      batch: await bundle.addBatch(),
      schedule,
      person,
      invite: inviteId,
      copy: (await failCopy(queues, { credentials })).id,
    }
  })
  afterAll(async () => {
    await bench?.close()
    await bundle?.close()
  })

  const of = (role: PersonRole) => members.get(role) ?? expect.fail()
  const send = (member: Member, act: ActName) => {
    const request = bench.on(member, { act, ...ROWS[act].asked(member) })
    if (act === 'list.exported') return bench.send({ ...request, reason: null, proof: null })
    if (act !== 'person.enrol') return bench.send(bench.touch(member, request))
    return bench.send(
      bench.enrol('A'.repeat(43), openAuthenticator({ origin: bundle.origin, rpId: 'localhost' }), request),
    )
  }

  it('has a row here, whatever act it is', () => {
    expect(Object.keys(ROWS).sort()).toEqual([...ACTS].sort())
  })

  describe.each(ACTS)('%s', act => {
    const { may, http, said } = ROWS[act]
    it.each(ROLES)(`by %s is begun by the console and done by a worker if, and only if, the role may`, async role => {
      const member = of(role)
      const isAllowed = may.includes(role)
      if (http) {
        const [path, json] = http(subjects)
        const begun = await bundle.call('POST', path, { cookie: member.cookie, json })
        expect({ path, status: begun.status, text: begun.text }).toMatchObject({ status: isAllowed ? 200 : 403 })
        if (path.endsWith('/begin') && path !== '/passkeys/add/begin') {
          const form = { ...json, nonce: 'none', proof: '' }
          const sent = await bundle.call('POST', path.replace(/\/begin$/, ''), { cookie: member.cookie, form })
          expect(sent.status).toBe(403)
        }
      }
      const answer = await send(member, act)
      // Whoever is invited, or has connected, comes only once.
      const again = said === 'DONE' ? ['DONE', 'person_exists', 'identity_taken', 'act_repeated'] : [said]
      expect(isAllowed ? again : ['act_forbidden']).toContain(answer)
    })
  })
})
