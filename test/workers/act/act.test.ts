// An act of a person is done for a live person who signed exactly this act, and whose roles and entities permit it. The first
// part is a theft: with the console's key, the queues and its rights in the database nothing is done.
import { hash, randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { GRANT_LISTS } from '../../../cli/open/grant-lists.ts'
import { readSystemKey } from '../../../cli/open/system-clients.ts'
import { listUngranted } from '../../../src/acts/grants.ts'
import { ensureLocalPerson, revokePerson } from '../../../src/acts/person.ts'
import { checkPersonProof } from '../../../src/acts/person-proof.ts'
import { checkProof } from '../../../src/audit/proof.ts'
import { isRefusal } from '../../../src/errors.ts'
import { canonical } from '../../../src/job/envelope/digest.ts'
import { Claims, sign } from '../../../src/job/envelope/envelope.ts'
import { jobId } from '../../../src/job/envelope/ids.ts'
import type { Act } from '../../../src/job/system/act.ts'
import { AUDIT_COLUMNS, type AuditRow } from '../../../src/store/access/audits.ts'
import type { Batch } from '../../../src/store/batch/batch-row.ts'
import { stateOf } from '../../../src/store/batch/batch-state.ts'
import { challengeOf } from '../../../src/vault/passkey/challenge.ts'
import { lookupOf } from '../../../src/vault/passkey/invite-key.ts'
import { openAct } from '../../../workers/act.ts'
import { describeStore } from '../../support/engines.ts'
import { ENTITY, type Installation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import { type Oddity, openAuthenticator } from '../../vault/passkey/authenticator.ts'
import { type ActBench, type Member, openActBench, openActInstallation, SITE } from './bench.ts'

const OTHER = '7b2a6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
const NOBODY = '00000000-0000-4000-8000-000000000000'
const CARD = '4111111111111111'

describeStore('an act of a person', engine => {
  let installation: Installation
  let bench: ActBench
  let admin: Member
  let operator: Member
  beforeAll(async () => {
    installation = await openActInstallation(engine)
    bench = await openActBench(installation)
    admin = await bench.join('Ada', ['ADMIN'])
    operator = await bench.join('Olaf', ['OPERATOR'])
  })
  afterAll(async () => {
    await bench?.close()
    await installation?.close()
  })

  const rows = async <R = Record<string, unknown>>(text: string, ...values: unknown[]) =>
    (await installation.vault.store.query<R>({ text, values })).rows
  const stateNow = async (batch: Batch) => stateOf(await bench.find(batch), Date.now())
  /** The tables with a row in which the text stands, as it is or as bytes. */
  const holding = async (text: string) => {
    const tables = await rows<{ name: string }>(
      `select table_name as name from information_schema.tables where table_schema = 'tokenmill' and table_type = 'BASE TABLE'`,
    )
    const found: string[] = []
    for (const { name } of tables) {
      const texts = [text, Buffer.from(text).toString('hex'), Buffer.from(text, 'base64url').toString('hex')]
      const held = `select from tokenmill.${name} as t where t::text like any ($1) limit 1`
      if ((await rows(held, `{${texts.map(one => `"%${one}%"`)}}`)).length > 0) found.push(name)
    }
    return found
  }
  const lastAudit = async () =>
    (
      await rows<{
        auditId: number
        actor: string
        action: string
        subject: string
        outcome: string
        detail: Record<string, unknown>
      }>(
        `select audit_id as "auditId", actor, action, subject, outcome, detail from tokenmill.audit
where action like 'batch.%' or action like 'person.%' order by audit_id desc limit 1`,
      )
    )[0]

  it('is done with one touch, and its row holds person, passkey and proof', async () => {
    const batch = await bench.batch()
    const request = bench.touch(operator, await bench.about(operator, 'batch.pause', batch))
    const answer = await bench.ask(request)
    expect(answer).toMatchObject({ status: 'SUCCEEDED', record: { audit_id: expect.any(Number) } })
    expect(await stateNow(batch)).toBe('PAUSED')
    const row = await lastAudit()
    expect(row).toMatchObject({
      actor: `person:${operator.personId}`,
      action: 'batch.pause',
      subject: batch.batchId,
      outcome: 'done',
      detail: { reason: 'a test', credential: operator.authenticator.credentialId, proof_sha256: expect.any(String) },
    })
    // What is kept suffices to verify the proof again.
    const { proof, ...signed } = JSON.parse(String(row?.detail['proof'])) as Act
    expect(proof).toEqual(request.proof)
    expect(challengeOf(signed, installation.vault.installationId)).toEqual(
      challengeOf(request, installation.vault.installationId),
    )
    // As `audit show` does.
    const check = (changed: object) =>
      checkProof(installation.vault.store, { ...row, ...changed } as never, checkPersonProof)
    expect(await check({})).toMatchObject({ proof: 'right', by: expect.stringContaining('passkey ') })
    const resigned = (odd: object, told = {}) => {
      const text = canonical({ ...signed, proof, ...odd })
      return { detail: { ...row?.detail, proof: text, proof_sha256: hash('sha256', text), ...told } }
    }
    const told = (odd: object) => ({ detail: { ...row?.detail, ...odd } })
    const wrong: [object, string][] = [
      // With the proof as it was made.
      [{ subject: 'another-batch' }, 'another subject'],
      [told({ reason: 'never said' }), 'another reason'],
      [told({ reason: undefined }), 'another reason'],
      [told({ client_id: 'cother' }), 'another client_id'],
      [told({ client_id: undefined }), 'another client_id'],
      [told({ credential: 'another' }), 'another passkey'],
      [{ detail: { ...row?.detail, proof: `${row?.detail['proof']} ` } }, 'SHA-256'],
      [{ action: 'batch.cancel' }, 'another act'],
      [{ actor: `person:${admin.personId}` }, 'person'],
      [resigned({ reason: 'another reason' }, { reason: 'another reason' }), 'did not sign it (challenge)'],
      [resigned({ person_id: admin.personId }), 'another act or person'],
      [resigned({ proof: null }), 'not the signed request'],
      [{ actor: 'client:c' }, 'another client signed it'],
    ]
    for (const [changed, why] of wrong)
      expect(await check(changed)).toEqual({ proof: 'wrong', why: expect.stringContaining(why) })
    expect(await check({ detail: {} })).toEqual({ proof: 'none' })
    // A second row with the same words and the same proof, even if its text differs.
    const [again] = await rows<{ id: number }>(
      `insert into tokenmill.audit (actor, action, subject, detail) values ($1, 'batch.pause', $2, $3) returning audit_id as id`,
      ...[row?.actor, row?.subject, row?.detail],
    )
    expect(await check({})).toMatchObject({ proof: 'right', others: [again?.id] })
    await rows('delete from tokenmill.audit where audit_id = $1', again?.id)
  })

  it('that is sent again under its jti is answered again, and done once', async () => {
    const batch = await bench.batch()
    const request = bench.touch(operator, await bench.about(operator, 'batch.pause', batch))
    const jti = randomUUID()
    const first = await bench.ask(request, jti)
    const second = await bench.ask(request, jti)
    expect(second.record).toEqual(first.record)
    const done = await rows('select from tokenmill.audit where subject = $1', batch.batchId)
    expect(done).toHaveLength(1)
  })

  it('permits each role its own acts', async () => {
    const viewer = await bench.join('Vera', ['VIEWER'])
    const tries: [Member, Act['act'], string][] = [
      [viewer, 'batch.pause', 'act_forbidden'],
      [viewer, 'batch.resume', 'act_forbidden'],
      [viewer, 'batch.cancel', 'act_forbidden'],
      [operator, 'batch.pause', 'DONE'],
      [operator, 'batch.cancel', 'act_forbidden'],
      [operator, 'batch.resume', 'DONE'],
      [admin, 'batch.pause', 'DONE'],
      [admin, 'batch.resume', 'DONE'],
      [admin, 'batch.cancel', 'DONE'],
      [viewer, 'batch.note', 'act_forbidden'],
      // Of a batch that has ended, too.
      [operator, 'batch.note', 'DONE'],
      [admin, 'batch.note', 'DONE'],
    ]
    const batch = await bench.batch()
    for (const [member, act, said] of tries)
      expect(await bench.send(bench.touch(member, await bench.about(member, act, batch))), act).toBe(said)
    expect(await stateNow(batch)).toBe('CANCELLED')
  })

  it('leaves a row of the batch’s entity, which only a changed detail can move', async () => {
    const batch = await bench.batch(ENTITY)
    await bench.ask(bench.touch(operator, await bench.about(operator, 'batch.pause', batch)))
    const [row] = await rows(
      `select audit_id as "auditId", entity_id as entity, detail->>'entity_id' as told from tokenmill.audit
where action = 'batch.pause' and subject = $1 order by audit_id desc limit 1`,
      batch.batchId,
    )
    expect(row).toMatchObject({ entity: batch.entityId, told: batch.entityId })
    expect(batch.entityId).toBe(ENTITY)
    const moved = rows(`update tokenmill.audit set entity_id = $2 where audit_id = $1`, row?.['auditId'], OTHER)
    await expect(moved).rejects.toThrow()
  })

  it('on a batch of another entity is answered as one on a batch that is not there', async () => {
    const member = await bench.join('Enno', ['OPERATOR', 'ADMIN'], [ENTITY])
    const pause = async (batch: Batch, odd = {}) =>
      bench.ask(bench.touch(member, await bench.about(member, 'batch.pause', batch, odd)))
    const error = async (answer: Promise<{ error?: unknown }>) => JSON.stringify((await answer).error)
    const others = await bench.batch(OTHER)
    const missing = await error(pause(others, { subject: 'no-such-batch' }))
    expect(missing).toContain('batch_not_found')
    const noTime = (text: string) => text.replace(/"timestamp":\d+/, '')
    expect(noTime(await error(pause(others)))).toBe(noTime(missing))
    // A batch of nobody is shown only to people for all entities.
    const nobodys = await bench.batch(null)
    expect(noTime(await error(pause(nobodys)))).toBe(noTime(missing))
    expect((await pause(await bench.batch(ENTITY))).status).toBe('SUCCEEDED')
    expect([await stateNow(others), await stateNow(nobodys)]).toEqual(['RUNNING', 'RUNNING'])
  })

  it('on a batch that changed meanwhile is refused', async () => {
    const batch = await bench.batch()
    const late = bench.touch(admin, await bench.about(admin, 'batch.cancel', batch))
    expect(await bench.send(bench.touch(operator, await bench.about(operator, 'batch.pause', batch)))).toBe('DONE')
    expect(await bench.send(late)).toBe('changed_meanwhile')
    // Another pause is another state, although both are PAUSED.
    const resume = bench.touch(operator, await bench.about(operator, 'batch.resume', batch))
    for (const act of ['batch.resume', 'batch.pause'] as const)
      expect(await bench.send(bench.touch(admin, await bench.about(admin, act, batch)))).toBe('DONE')
    expect(await bench.send(resume)).toBe('changed_meanwhile')
    expect(await bench.send(bench.touch(admin, await bench.about(admin, 'batch.pause', batch)))).toBe('act_state')
    expect(await stateNow(batch)).toBe('PAUSED')
  })

  it('is for the states of its row only, whatever page was signed', async () => {
    const batch = await bench.batch()
    await rows(
      'update tokenmill.batch set limit_chunks = 1, chunks_done = 1, extent_chunks = 5 where batch_no = $1',
      batch.batchNo,
    )
    const why = async (act: Act['act']) => {
      const said = await bench.send(bench.touch(admin, await bench.about(admin, act, batch)))
      return [said, (await lastAudit())?.detail['why']]
    }
    // Its sender stopped it, so the page offers neither.
    for (const act of ['batch.pause', 'batch.resume'] as const)
      expect(await why(act)).toEqual(['act_state', 'at_limit'])
    expect(await why('batch.cancel')).toEqual(['DONE', undefined])
    for (const act of ['batch.pause', 'batch.resume', 'batch.cancel'] as const)
      expect(await why(act)).toEqual(['act_state', 'cancelled'])
  })

  it('that only says that a list is taken needs no passkey, has no effect, and is of a live person who may see it', async () => {
    const member = await bench.join('Lena', ['VIEWER'], [ENTITY])
    const [ours, others] = [await bench.batch(ENTITY), await bench.batch(OTHER)]
    const about = async (batch: Batch, odd = {}) => ({
      ...(await bench.about(member, 'list.exported', batch, { seen: null, reason: null, ...odd })),
      parameters: { list: 'refused', client_id: batch.clientId },
      proof: null,
    })
    const refused = await about(ours)
    expect(await bench.send(refused)).toBe('DONE')
    const [row] = await rows('select actor, subject, detail from tokenmill.audit order by audit_id desc limit 1')
    expect(row).toEqual({
      actor: `person:${member.personId}`,
      subject: ours.batchId,
      detail: { list: 'refused', client_id: ours.clientId, entity_id: ENTITY, unproved: true },
    })
    expect(await bench.send({ ...(await about(ours)), subject: 'batches', parameters: { list: 'batches' } })).toBe(
      'DONE',
    )
    for (const list of ['audit', 'failed'])
      expect(await bench.send({ ...(await about(ours)), subject: list, parameters: { list } })).toBe('DONE')
    const count = async () => (await rows(`select from tokenmill.audit where action = 'list.exported'`)).length
    const refusals = () =>
      rows(
        `select actor, subject, detail->>'why' as why from tokenmill.audit
where action = 'person.prove' and outcome = 'refused' and detail->>'act' = 'list.exported' order by audit_id`,
      )
    const before = await count()
    const touched = bench.touch(member, { ...(await about(ours)) })
    const tries: [Act, string][] = [
      [refused, 'act_repeated'],
      [await about(others), 'batch_not_found'],
      [await about(ours, { person_id: NOBODY }), 'person_unknown'],
      [{ ...(await about(ours)), parameters: { list: 'batches' } }, 'field_value'],
      [{ ...(await about(ours)), subject: 'audit', parameters: { list: 'failed' } }, 'field_value'],
      [{ ...(await about(ours)), subject: 'audit', parameters: { list: 'audit', subject: 'a batch' } }, 'field_value'],
      [await about(ours, { expires_at: Math.floor(Date.now() / 1000) + 3_600 }), 'act_expired'],
      [{ ...(await about(ours)), parameters: { list: 'cards' } }, 'field_value'],
      [{ ...(await about(ours)), proof: touched.proof }, 'field_value'],
      [
        { ...(await about(ours)), act: 'batch.pause', seen: 'RUNNING', parameters: { client_id: ours.clientId } },
        'passkey_missing',
      ],
      [
        {
          ...(await about(ours)),
          act: 'batch.note',
          seen: 'RUNNING',
          reason: 'x',
          parameters: { client_id: ours.clientId },
        },
        'passkey_missing',
      ],
    ]
    for (const [request, said] of tries) expect([request, await bench.send(request)]).toEqual([request, said])
    expect(await count()).toBe(before)
    expect(await stateNow(ours)).toBe('RUNNING')
    // Nobody has proved them, so the rows hold nothing else of what the console sent.
    const [repeated, hidden, unknown, odd] = ['act_repeated', 'batch_not_found', 'person_unknown', 'field_value']
    const told = { actor: 'client:console', subject: member.personId }
    expect(await refusals()).toEqual([
      ...[repeated, hidden].map(why => ({ ...told, why })),
      { ...told, subject: NOBODY, why: unknown },
      ...[odd, odd].map(why => ({ ...told, why })),
    ])
  })

  it('by which a list is taken is refused while the place of the audit is away', async () => {
    const member = await bench.join('Lara', ['VIEWER'])
    const { store, ring, installationId } = installation.vault
    const [deps, console] = [{ ring, clock: Date.now } as never, { ...SITE, installationId, isEmbedded: false }]
    const taken = async (minutes: number) => {
      const request = {
        ...bench.on(member, { act: 'list.exported', subject: 'batches', parameters: { list: 'batches' }, seen: null }),
        reason: null,
        proof: null,
      }
      const decision = await openAct(console).decide(
        { request, receiptId: randomUUID() } as never,
        request as never,
        deps,
      )
      if (!('save' in decision)) throw new Error('it decides in its transaction')
      // A worker of this test clears the mark, because no place is set here.
      return store.transaction(async db => {
        const away = (since: string) => db.query({ text: `update tokenmill.audit_chain set away_since = ${since}` })
        await away(`now() - interval '${minutes} minutes'`)
        const ended = await decision.save(db)
        await away('null')
        return ended
      })
    }
    expect(await taken(14)).toMatchObject({ outcome: 'DONE' })
    expect(await taken(16)).toMatchObject({ refused: true, reason: 'audit_away' })
    const [row] = await rows('select action, outcome, detail from tokenmill.audit order by audit_id desc limit 1')
    expect(row).toMatchObject({ action: 'person.prove', outcome: 'refused', detail: { why: 'audit_away' } })
  })

  it('whose reason could hold a card number is refused, and the number is nowhere', async () => {
    const batch = await bench.batch()
    const odd = { reason: `customer ${CARD} called` }
    expect(await bench.send(bench.touch(admin, await bench.about(admin, 'batch.pause', batch, odd)))).toBe('reason_pan')
    const kept = await rows(`select from tokenmill.audit where detail::text like '%' || $1 || '%'`, CARD)
    expect(kept).toEqual([])
    expect(await stateNow(batch)).toBe('RUNNING')
  })

  it('is refused without its person’s passkey for exactly this act, and has no effect', async () => {
    const batch = await bench.batch()
    const other = await bench.batch()
    const about = (odd = {}) => bench.about(admin, 'batch.cancel', batch, odd)
    const touched = async (odd: Oddity, changed = {}) => ({ ...bench.touch(admin, await about(), odd), ...changed })
    const stranger = { ...admin, authenticator: openAuthenticator(SITE) }
    const local = await ensureLocalPerson(installation.vault)
    const now = Math.floor(Date.now() / 1000)
    const tries: [string, Act, string][] = [
      ['no proof', { ...(await about()), proof: null }, 'passkey_missing'],
      [
        'the local person of an embedded engine',
        { ...(await about({ person_id: local })), proof: null },
        'passkey_missing',
      ],
      ['an unknown passkey', bench.touch(stranger, await about()), 'passkey_unknown'],
      ['a passkey of another person', bench.touch(operator, await about()), 'passkey_unknown'],
      ['an unknown person', bench.touch(admin, await about({ person_id: randomUUID() })), 'person_unknown'],
      ['another act', await touched({}, { act: 'batch.pause' }), 'passkey_challenge'],
      ['another subject', await touched({}, { subject: other.batchId }), 'passkey_challenge'],
      ['another reason', await touched({}, { reason: 'said by nobody' }), 'passkey_challenge'],
      ['another nonce', await touched({}, { nonce: 'AAAAAAAAAAAAAAAAAAAAAA' }), 'passkey_challenge'],
      ['another time', await touched({}, { expires_at: now + 60 }), 'passkey_challenge'],
      ['expired', bench.touch(admin, await about({ expires_at: now - 1 })), 'act_expired'],
      ['valid too long', bench.touch(admin, await about({ expires_at: now + 3_600 })), 'act_expired'],
      ['another origin', await touched({ origin: 'https://evil.example.com' }), 'passkey_origin'],
      ['in a frame', await touched({ crossOrigin: true }), 'passkey_origin'],
      ['another domain', await touched({ rpId: 'evil.example.com' }), 'passkey_rp_id'],
      ['not verified', await touched({ isVerified: false }), 'passkey_unverified'],
      ['the answer to an enrolment', await touched({ type: 'webauthn.create' }), 'passkey_form'],
      ['a counter that went back', await touched({ signCount: 0 }), 'passkey_counter'],
    ]
    for (const [what, request, said] of tries) expect(await bench.send(request), what).toBe(said)
    expect(await lastAudit()).toMatchObject({
      actor: 'client:console',
      action: 'person.prove',
      subject: admin.personId,
      outcome: 'refused',
      detail: { act: 'batch.cancel', why: 'passkey_counter' },
    })
    expect([await stateNow(batch), await stateNow(other)]).toEqual(['RUNNING', 'RUNNING'])
  })

  it('is never one of a client, whose jobs the console’s key could otherwise spend', async () => {
    const batch = await bench.batch()
    const { credentials, queues, dataDir } = installation
    const { clientId } = credentials.signingKey
    const iat = Math.floor(Date.now() / 1000)
    const jti = `${batch.batchId}-0`
    const claims = Claims.parse({
      iss: 'console',
      aud: credentials.audience,
      sub: randomUUID(),
      entity_id: ENTITY,
      roles: [],
      client_id: clientId,
      iat,
      exp: iat + 120,
      jti,
      kind: 'act',
      request: bench.touch(admin, await bench.about(admin, 'batch.cancel', batch)),
    })
    const data = { jws: sign(claims, await readSystemKey(dataDir, 'console')) }
    await queues.add('act', { id: jobId('console', jti), data })
    await until(async () => Object.values(await queues.depth('act')).every(jobs => jobs === 0))
    expect(await rows('select 1 from tokenmill.receipt where jti = $1', jti)).toEqual([])
    expect(await stateNow(batch)).not.toBe('CANCELLED')
  })

  it('of the local person needs no passkey where this worker opened an embedded store, and nowhere else', async () => {
    const { vault } = installation
    const local = await ensureLocalPerson(vault)
    expect(await ensureLocalPerson(vault)).toBe(local)
    const batch = await bench.batch()
    const without = async (personId: string, isEmbedded: boolean) => {
      const request = { ...(await bench.about({ personId }, 'batch.pause', batch)), proof: null }
      const work = { request, receiptId: randomUUID() } as never
      const { ring, installationId, store } = vault
      const [deps, console] = [{ ring, clock: Date.now } as never, { ...SITE, installationId, isEmbedded }]
      const decision = await openAct(console).decide(work, request, deps)
      if (!('save' in decision)) return expect.fail()
      const said = await store.transaction(decision.save)
      return isRefusal(said) ? said.reason : 'DONE'
    }
    expect(await without(local, false)).toBe('passkey_missing')
    expect(await without(admin.personId, true)).toBe('passkey_missing')
    expect(await without(local, true)).toBe('DONE')
    expect(await lastAudit()).toMatchObject({ actor: `person:${local}`, detail: { unproved: true } })
    expect(await stateNow(batch)).toBe('PAUSED')
  })

  it('is done once, however often its proof is sent, and of two at once one is done', async () => {
    const batch = await bench.batch()
    const request = bench.touch(admin, await bench.about(admin, 'batch.pause', batch))
    const said = await Promise.all([bench.send(request), bench.send(request), bench.send(request)])
    // The counter tells of the repetition before the nonce does.
    expect(said.toSorted()).toEqual(['DONE', 'passkey_counter', 'passkey_counter'])
    expect(await rows('select from tokenmill.audit where subject = $1', batch.batchId)).toHaveLength(1)
    expect(await rows('select from tokenmill.act_nonce where nonce = $1', request.nonce)).toHaveLength(1)
  })

  it('of a passkey that does not count is done once, too', async () => {
    const invite = await bench.invite('Sync', ['OPERATOR'])
    const member = { personId: randomUUID(), authenticator: openAuthenticator(SITE, 'EdDSA', { counts: false }) }
    const enrol = bench.enrol(invite.secret, member.authenticator, bench.enrolment(invite, member.personId))
    expect(await bench.send(enrol)).toBe('DONE')
    const batch = await bench.batch()
    const request = bench.touch(member, await bench.about(member, 'batch.pause', batch))
    expect([await bench.send(request), await bench.send(request)]).toEqual(['DONE', 'act_repeated'])
  })

  it('of a person or a passkey that tokenmill did not write is refused, whoever owns the database', async () => {
    const batch = await bench.batch()
    const forged = { personId: randomUUID(), authenticator: openAuthenticator(SITE) }
    const { credentialId, publicJwk } = forged.authenticator
    const cancel = async (member: Member) =>
      bench.send(bench.touch(member, await bench.about(member, 'batch.cancel', batch)))
    await rows(
      `insert into tokenmill.person (person_id, name, roles, mac, mac_version)
select $1, 'Mallory', '{ADMIN}', mac, mac_version from tokenmill.person where person_id = $2`,
      forged.personId,
      admin.personId,
    )
    const own = `insert into tokenmill.person_credential (credential_id, person_id, public_jwk, alg, rp_id, sign_count, mac, mac_version)
select $1, $2, $3::jsonb, 'ES256', rp_id, 0, mac, mac_version from tokenmill.person_credential where person_id = $4`
    await rows(own, credentialId, forged.personId, JSON.stringify(publicJwk), admin.personId)
    expect(await cancel(forged)).toBe('person_unknown')
    await rows(
      'update tokenmill.person_credential set person_id = $2 where credential_id = $1',
      credentialId,
      admin.personId,
    )
    expect(await cancel({ ...forged, personId: admin.personId })).toBe('passkey_unknown')
    await rows(`update tokenmill.person set roles = '{ADMIN}' where person_id = $1`, operator.personId)
    expect(await cancel(operator)).toBe('person_unknown')
    const { ring, store } = installation.vault
    expect(await listUngranted(store, ring, GRANT_LISTS)).toEqual([
      `person ${operator.personId}`,
      `person ${forged.personId}`,
      `passkey ${credentialId}`,
    ])
    await rows(`update tokenmill.person set roles = '{OPERATOR}' where person_id = $1`, operator.personId)
    await rows('delete from tokenmill.person_credential where credential_id = $1', credentialId)
    await rows('delete from tokenmill.person where person_id = $1', forged.personId)
    expect(await stateNow(batch)).toBe('RUNNING')
  })

  it('can not be prepared by a database role of a process that meets the outside', async () => {
    const roles = (
      await rows<{ name: string }>(
        `select rolname as name from pg_roles where rolname in ('tokenmill_reader', 'tokenmill_gateway', 'tokenmill_console')`,
      )
    ).map(({ name }) => name)
    expect(roles.toSorted()).toEqual(['tokenmill_console', 'tokenmill_gateway', 'tokenmill_reader'])
    const writes = ['person', 'person_credential', 'invite', 'act_nonce', 'failed_act', 'display'].flatMap(table => [
      `insert into tokenmill.${table} default values`,
      `delete from tokenmill.${table}`,
    ])
    const changes = [
      `update tokenmill.person set roles = '{ADMIN}'`,
      'update tokenmill.person_credential set sign_count = 0',
      'update tokenmill.invite set used_at = null',
      'update tokenmill.batch set paused_at = now()',
      'update tokenmill.schedule set paused_at = null',
      `update tokenmill.schedule_run set state = 'DUE'`,
      'update tokenmill.failed_act set outcome = null',
      'update tokenmill.display set revoked_at = null',
    ]
    for (const role of roles) {
      const login = new pg.Client({ connectionString: engine.databaseUrl, options: `-c role=${role}` })
      await login.connect()
      try {
        for (const text of [...writes, ...changes])
          await expect(login.query(text), `${role}: ${text}`).rejects.toMatchObject({ code: '42501' })
      } finally {
        await login.end()
      }
    }
  })

  it('of a revoked person is refused', async () => {
    const member = await bench.join('Rita', ['OPERATOR'])
    const batch = await bench.batch()
    const request = bench.touch(member, await bench.about(member, 'batch.pause', batch))
    const by = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const
    expect(
      await revokePerson({ ...installation.vault, rpId: SITE.rpId }, { ...member, isLast: false }, by),
    ).toMatchObject({ done: { passkeys: 1 } })
    expect(await bench.send(request)).toBe('person_unknown')
    // Whoever owns the database can't bring the person back: the row has no code any more.
    await rows('update tokenmill.person set revoked_at = null where person_id = $1', member.personId)
    expect(await bench.send(bench.touch(member, await bench.about(member, 'batch.pause', batch)))).toBe(
      'person_unknown',
    )
    await rows('update tokenmill.person set revoked_at = now() where person_id = $1', member.personId)
    expect(await stateNow(batch)).toBe('RUNNING')
  })

  it('of enrolment is done once, with the key of a live invite only', async () => {
    const invite = await bench.invite('Nora', ['VIEWER'], [ENTITY])
    const personId = randomUUID()
    const authenticator = openAuthenticator(SITE, 'RS256')
    const enrol = (secret: string, { odd = {}, changed = {}, to = invite as { inviteId: string } } = {}) =>
      ({ ...bench.enrol(secret, authenticator, bench.enrolment(to, personId), odd), ...changed }) as Act
    const { secret } = invite
    const tries: [Act, string][] = [
      [enrol('AAAA'), 'invite_unknown'],
      [enrol(secret, { to: { inviteId: randomUUID() } }), 'invite_unknown'],
      [enrol(secret, { odd: { origin: 'https://evil.example.com' } }), 'passkey_origin'],
      [enrol(secret, { odd: { isVerified: false } }), 'passkey_unverified'],
      [enrol(secret, { changed: { person_id: randomUUID() } }), 'invite_unknown'],
      [enrol(secret), 'DONE'],
      [enrol(secret), 'invite_unknown'],
    ]
    for (const [request, said] of tries) expect(await bench.send(request), said).toBe(said)
    const row = await lastAudit()
    expect(row).toMatchObject({ action: 'person.prove', outcome: 'refused' })
    const [person] = await rows('select name, roles, entities from tokenmill.person where person_id = $1', personId)
    expect(person).toEqual({ name: 'Nora', roles: ['VIEWER'], entities: [ENTITY] })
  })

  it('of enrolment can not be turned into another passkey by whoever holds its job and the console', async () => {
    const { inviteId, secret } = await bench.invite('Greta', ['ADMIN'])
    const personId = randomUUID()
    const { installationId } = installation.vault
    const honest = bench.enrol(secret, openAuthenticator(SITE), bench.enrolment({ inviteId }, personId))
    const jti = randomUUID()
    // The job as it waits in the queue. The thief has it, the console's key, and what the console may read.
    const job = bench.jobOf(honest, jti)
    const said = Buffer.from(job.jws.split('.')[1] ?? '', 'base64url').toString()
    expect(said).toContain(inviteId)
    expect(said).not.toContain(secret)
    const { proof } = honest
    const thief = openAuthenticator(SITE)
    const own = bench.enrolment({ inviteId }, personId)
    const made = thief.create(challengeOf(own, installationId))
    const sameChallenge = thief.create(challengeOf(honest, installationId))
    const [seen] = await rows<{ hash: string }>(
      `select encode(lookup_hash, 'hex') as hash from tokenmill.invite where invite_id = $1`,
      inviteId,
    )
    const { signature } = proof
    const tries: Record<string, Act> = {
      'another passkey in the job': { ...honest, proof: { ...sameChallenge, signature } },
      'another passkey and the authenticator’s own words': {
        ...honest,
        proof: { ...proof, ...sameChallenge, client_data_json: proof.client_data_json },
      },
      'an act of its own': { ...own, proof: { ...made, signature } },
      'the passkey of the job for another person': { ...honest, person_id: randomUUID() },
      'a signature by a key of what the console finds the invite with': bench.enrol(lookupOf(secret), thief, own),
      'a signature by a key of what the store keeps of it': bench.enrol(seen?.hash ?? '', thief, own),
      'a signature by a key of the signature': bench.enrol(signature, thief, own),
      'no signature': { ...own, proof: { ...made, signature: 'A' } },
      'a signature of nothing': { ...own, proof: { ...made, signature: 'A'.repeat(86) } },
    }
    for (const [what, request] of Object.entries(tries)) expect(await bench.send(request), what).toBe('invite_unknown')
    expect(await bench.send(honest, jti)).toBe('DONE')
    const [kept] = await rows<{ id: string }>(
      'select credential_id as id from tokenmill.person_credential where person_id = $1',
      personId,
    )
    expect(kept?.id).toBe(proof.credential_id)
    expect(await holding(secret)).toEqual([])
    expect(await holding(lookupOf(secret))).toEqual([])
    // The search finds what is there.
    expect(await holding(proof.credential_id)).toContain('person_credential')
  })

  it('of enrolment by an invite that was changed or has expired is refused', async () => {
    const use = async (change: string) => {
      const invite = await bench.invite('Ivo', ['VIEWER'])
      await rows(`update tokenmill.invite set ${change} where invite_id = $1`, invite.inviteId)
      return bench.send(bench.enrol(invite.secret, openAuthenticator(SITE), bench.enrolment(invite, randomUUID())))
    }
    expect(await use(`roles = '{ADMIN}'`)).toBe('invite_unknown')
    expect(await use(`entities = array['${OTHER}'::uuid]`)).toBe('invite_unknown')
    expect(await use(`public_key = sha256('a key of somebody else')`)).toBe('invite_unknown')
    expect(await use(`expires_at = now() + interval '1 year'`)).toBe('invite_unknown')
    expect(await use(`expires_at = now() - interval '1 second'`)).toBe('invite_unknown')
    expect(await rows(`select from tokenmill.person where name = 'Ivo'`)).toEqual([])
  })

  it('of enrolment for a known person replaces the former passkeys', async () => {
    const former = await bench.join('Tom', ['OPERATOR'])
    const renewed = await bench.join('Tom', ['OPERATOR'])
    expect(renewed.personId).toBe(former.personId)
    const batch = await bench.batch()
    const pause = async (member: Member) =>
      bench.send(bench.touch(member, await bench.about(member, 'batch.pause', batch)))
    expect([await pause(former), await pause(renewed)]).toEqual(['passkey_unknown', 'DONE'])
  })

  it('leaves rows whose proofs are right', async () => {
    const { wrong, right } = await bench.proofs()
    expect(wrong).toEqual([])
    expect(Object.keys(right)).toEqual(
      expect.arrayContaining(['batch.pause', 'batch.resume', 'batch.cancel', 'batch.note', 'person.enrol']),
    )
    const [enrolled] = await rows<AuditRow>(
      `select ${AUDIT_COLUMNS} from tokenmill.audit where action = 'person.enrol' and outcome = 'done' limit 1`,
    )
    if (!enrolled) return expect.fail()
    const check = (odd: object) =>
      checkProof(installation.vault.store, { ...enrolled, detail: { ...enrolled.detail, ...odd } }, checkPersonProof)
    expect(await check({})).toMatchObject({ proof: 'right', by: expect.stringContaining('invite') })
    expect(await check({ roles: ['VIEWER'] })).toMatchObject({ proof: 'wrong', why: expect.stringContaining('roles') })
    expect(await check({ invite_id: OTHER })).toMatchObject({ proof: 'wrong' })
  })
})
