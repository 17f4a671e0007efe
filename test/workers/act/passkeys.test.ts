// A person adds a further passkey, and removes one, by a touch of a passkey that the person has. Whoever holds the job, the
// console's key and the console can put no other passkey in its place.
import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { forgetDomain } from '../../../src/acts/former-domain.ts'
import { ensureLocalPerson } from '../../../src/acts/person.ts'
import { isRefusal } from '../../../src/errors.ts'
import type { Act } from '../../../src/job/system/act.ts'
import { challengeOf, creationChallengeOf } from '../../../src/vault/passkey/challenge.ts'
import { openAct } from '../../../workers/act.ts'
import { describeStore } from '../../support/engines.ts'
import type { Installation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import { type Authenticator, type Oddity, openAuthenticator } from '../../vault/passkey/authenticator.ts'
import { type ActBench, type Member, openActBench, openActInstallation, SITE, type Unproved } from './bench.ts'

describeStore('a passkey of one’s own', engine => {
  let installation: Installation
  let bench: ActBench
  beforeAll(async () => {
    installation = await openActInstallation(engine)
    bench = await openActBench(installation)
  })
  afterAll(async () => {
    await bench?.close()
    await installation?.close()
  })

  const rows = async <R = Record<string, unknown>>(text: string, ...values: unknown[]) =>
    (await installation.vault.store.query<R>({ text, values })).rows
  const liveOf = async ({ personId }: Pick<Member, 'personId'>) =>
    (
      await rows<{ id: string }>(
        `select credential_id as id from tokenmill.person_credential
where person_id = $1 and revoked_at is null order by created_at`,
        personId,
      )
    ).map(({ id }) => id)
  const begun = ({ personId }: Pick<Member, 'personId'>, name: Act['act'], parameters: Act['parameters'] = {}) =>
    ({
      act: name,
      subject: personId,
      parameters,
      seen: null,
      reason: null,
      person_id: personId,
      nonce: randomBytes(16).toString('base64url'),
      expires_at: Math.floor(Date.now() / 1000) + 100,
    }) satisfies Unproved
  /** The request with a new passkey, made for exactly this request. */
  const made = (member: Pick<Member, 'personId'>, further: Authenticator, odd: Oddity = {}): Unproved => {
    const request = begun(member, 'passkey.add')
    const { vault } = installation
    return { ...request, parameters: { ...further.create(creationChallengeOf(request, vault.installationId), odd) } }
  }
  const add = async (member: Member, further = openAuthenticator(SITE)) => {
    expect(await bench.send(bench.touch(member, made(member, further)))).toBe('DONE')
    return { ...member, authenticator: further }
  }
  const remove = (member: Member, credentialId: string) =>
    bench.send(bench.touch(member, begun(member, 'passkey.remove', { credential_id: credentialId })))
  const idOf = ({ authenticator }: Member) => authenticator.credentialId

  it('is added by a touch of an existing one, for every role, and acts then', async () => {
    const batch = await bench.batch()
    for (const role of ['VIEWER', 'OPERATOR', 'ADMIN'] as const) {
      const member = await bench.join(`Add ${role}`, [role])
      const further = await add(member)
      expect(await liveOf(member)).toEqual([idOf(member), idOf(further)])
      const pause = bench.touch(further, await bench.about(further, 'batch.pause', batch))
      // The batch is paused by the OPERATOR, so there is nothing to pause for the ADMIN.
      const said = { VIEWER: 'act_forbidden', OPERATOR: 'DONE', ADMIN: 'act_state' }[role]
      expect(await bench.send(pause)).toBe(said)
      const [row] = await rows(
        `select actor, outcome, detail from tokenmill.audit where action = 'passkey.add' and subject = $1`,
        member.personId,
      )
      expect(row).toMatchObject({
        actor: `person:${member.personId}`,
        outcome: 'done',
        detail: { added: idOf(further), credential: idOf(member), proof_sha256: expect.any(String) },
      })
    }
  })

  it('is not added but as the touch of an existing one covers it', async () => {
    const member = await bench.join('Thea', ['ADMIN'])
    const other = await bench.join('Otto', ['ADMIN'])
    const { installationId } = installation.vault
    const thief = openAuthenticator(SITE)
    const honest = bench.touch(member, made(member, openAuthenticator(SITE)))
    const swapped = thief.create(creationChallengeOf(honest, installationId))
    const stale = made(member, openAuthenticator(SITE))
    const touched = (request: Unproved, by = member, odd: Oddity = {}) => bench.touch(by, request, odd)
    const withMade = (odd: Oddity) => touched(made(member, openAuthenticator(SITE), odd))
    const own = made(member, thief)
    const tries: [string, Act, string][] = [
      ['another passkey in the job', { ...honest, parameters: { ...swapped } }, 'passkey_challenge'],
      ['no touch', { ...own, proof: null }, 'passkey_missing'],
      ['a touch of the new one', bench.touch({ ...member, authenticator: thief }, own), 'passkey_unknown'],
      ['a touch of another person', touched(own, other), 'passkey_unknown'],
      ['for another person', touched({ ...made(other, thief), person_id: member.personId }), 'act_forbidden'],
      [
        'made for another request',
        touched({ ...begun(member, 'passkey.add'), parameters: stale.parameters }),
        'passkey_challenge',
      ],
      [
        'made for the challenge of the whole act',
        touched({
          ...stale,
          parameters: { ...openAuthenticator(SITE).create(challengeOf(stale, installationId)) },
        }),
        'passkey_challenge',
      ],
      ['made on another origin', withMade({ origin: 'https://evil.example.com' }), 'passkey_origin'],
      ['made for another domain', withMade({ rpId: 'evil.example.com' }), 'passkey_rp_id'],
      ['made without the user’s verification', withMade({ isVerified: false }), 'passkey_unverified'],
      [
        'under another id',
        touched({ ...own, parameters: { ...own.parameters, credential_id: idOf(other) } }),
        'passkey_form',
      ],
      ['touched without the user’s verification', touched(own, member, { isVerified: false }), 'passkey_unverified'],
      ['one that exists', touched(made(member, other.authenticator)), 'passkey_exists'],
    ]
    for (const [what, request, said] of tries) expect(await bench.send(request), what).toBe(said)
    expect(await liveOf(member)).toEqual([idOf(member)])
    expect(await bench.send(honest)).toBe('passkey_counter')
  })

  it('of the local person is none: there is no passkey to touch', async () => {
    const { ring, installationId, store } = installation.vault
    const personId = await ensureLocalPerson(installation.vault)
    for (const request of [
      made({ personId }, openAuthenticator(SITE)),
      begun({ personId }, 'passkey.remove', { credential_id: 'AAAA' }),
    ]) {
      const work = { request: { ...request, proof: null }, receiptId: randomUUID() } as never
      const [deps, console] = [{ ring, clock: Date.now } as never, { ...SITE, installationId, isEmbedded: true }]
      const decision = await openAct(console).decide(work, request as never, deps)
      if (!('save' in decision)) return expect.fail()
      const said = await store.transaction(decision.save)
      expect(isRefusal(said) && said.reason).toBe('passkey_missing')
    }
    expect(await liveOf({ personId })).toEqual([])
  })

  it('is removed by a touch of another one of the person, so the last one stays', async () => {
    const member = await bench.join('Remy', ['VIEWER'])
    const other = await bench.join('Rosa', ['ADMIN'])
    const further = await add(member)
    expect(await remove(member, idOf(member))).toBe('passkey_same')
    expect(await remove(member, idOf(other))).toBe('passkey_unknown')
    expect(await remove(other, idOf(member))).toBe('passkey_unknown')
    expect(await remove(further, idOf(member))).toBe('DONE')
    expect(await liveOf(member)).toEqual([idOf(further)])
    expect(await remove(member, idOf(further))).toBe('passkey_unknown')
    expect(await remove(further, idOf(member))).toBe('passkey_unknown')
    // A passkey that was removed never comes back.
    expect(await bench.send(bench.touch(further, made(further, member.authenticator)))).toBe('passkey_exists')
    const [row] = await rows(
      `select outcome, detail, (select mac from tokenmill.person_credential where credential_id = $2) as mac
from tokenmill.audit where action = 'passkey.remove' and subject = $1 and outcome = 'done'`,
      member.personId,
      idOf(member),
    )
    expect(row).toMatchObject({ mac: null, detail: { removed: idOf(member), credential: idOf(further) } })
  })

  it('is left over by two removals of each other at once', async () => {
    const member = await bench.join('Twin', ['VIEWER'])
    const further = await add(member)
    const said = await Promise.all([remove(member, idOf(further)), remove(further, idOf(member))])
    expect(said.toSorted()).toEqual(['DONE', 'passkey_unknown'])
    expect(await liveOf(member)).toHaveLength(1)
  })

  it('that is added while an invite replaces the passkeys is replaced, too', async () => {
    const member = await bench.join('Lost', ['VIEWER'])
    const invite = await bench.invite('Lost', ['VIEWER'])
    const renewed = openAuthenticator(SITE)
    const enrol = bench.enrol(invite.secret, renewed, bench.enrolment(invite, member.personId))
    const { store, ring, installationId } = installation.vault
    const request = bench.touch(member, made(member, openAuthenticator(SITE)))
    const [deps, console] = [{ ring, clock: Date.now } as never, { ...SITE, installationId, isEmbedded: false }]
    const work = { request, receiptId: randomUUID() } as never
    const decision = await openAct(console).decide(work, request as never, deps)
    if (!('save' in decision)) return expect.fail()
    // The passkey is added, and the transaction hasn't ended when the invite is used.
    let used: Promise<string> | undefined
    await store.transaction(async db => {
      expect(isRefusal(await decision.save(db))).toBe(false)
      used = bench.send(enrol)
      await until(async () => (await rows(`select from pg_locks where not granted`)).length > 0)
    })
    expect(await used).toBe('DONE')
    expect(await liveOf(member)).toEqual([renewed.credentialId])
  })

  it('that is added while those of its domain are revoked is revoked, too', async () => {
    const member = await bench.join('Moved', ['VIEWER'])
    const { vault } = installation
    const deps = { ring: vault.ring, clock: Date.now } as never
    const console = { ...SITE, installationId: vault.installationId, isEmbedded: false }
    const by = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const
    const begin = async () => {
      const request = bench.touch(member, made(member, openAuthenticator(SITE)))
      const decision = await openAct(console).decide(
        { request, receiptId: randomUUID() } as never,
        request as never,
        deps,
      )
      if (!('save' in decision)) throw new Error('it decides in its transaction')
      return decision
    }
    const [early, late] = [await begin(), await begin()]
    const waits = () => until(async () => (await rows('select from pg_locks where not granted')).length > 0)
    let moved: ReturnType<typeof forgetDomain> | undefined
    await vault.store.transaction(async db => {
      expect(isRefusal(await early.save(db))).toBe(false)
      moved = forgetDomain({ ...vault, rpId: 'new.example.com' }, SITE.rpId, by)
      await waits()
    })
    expect(await moved).toMatchObject({ done: {} })
    expect(await liveOf(member)).toEqual([])
    // Its touch is one of a passkey that is gone by then.
    expect(await vault.store.transaction(db => late.save(db))).toMatchObject({ refused: {} })
  })

  it('leaves rows whose proofs are right', async () => {
    const { wrong, right } = await bench.proofs()
    expect(wrong).toEqual([])
    expect(Object.keys(right)).toEqual(expect.arrayContaining(['passkey.add', 'passkey.remove']))
  })
})
