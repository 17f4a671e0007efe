// Administrators: who counts as one, how the last one is revoked, and that commands and enrolments don't lock each other out.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { invitePerson, revokePerson } from '../../../src/acts/person.ts'
import * as invites from '../../../src/store/person/invites.ts'
import { describeStore } from '../../support/engines.ts'
import { ENTITY, type Installation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import { openAuthenticator } from '../../vault/passkey/authenticator.ts'
import { type ActBench, openActBench, openActInstallation, SITE } from './bench.ts'

const BY = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const
const HOUR_MS = 3_600_000

describeStore('an administrator', engine => {
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
  const revoke = (personId: string, { rpId = SITE.rpId, isLast = false } = {}) =>
    revokePerson({ ...installation.vault, rpId }, { personId, isLast }, BY)

  it('who could not act here does not count: with a passkey of another domain, or for some entities only', async () => {
    const ada = await bench.join('Ada', ['ADMIN'])
    const only = await bench.join('Only', ['ADMIN'], [ENTITY])
    expect(await revoke(ada.personId)).toEqual({ refused: 'last_admin' })
    const second = await bench.join('Amy', ['ADMIN'])
    // Where the console has another name, neither of the two could act, so none of them is let go unasked.
    expect(await revoke(ada.personId, { rpId: 'moved.example.com' })).toEqual({ refused: 'last_admin' })
    expect(await revoke(ada.personId)).toHaveProperty('done')
    expect(await revoke(second.personId)).toEqual({ refused: 'last_admin' })
    expect(await revoke(only.personId)).toHaveProperty('done')
    const person = { name: 'Next', roles: ['ADMIN' as const], entities: null }
    const lasts = async (rpId: string) => {
      const now = Date.now()
      const ended = await invitePerson({ ...installation.vault, rpId }, person, BY, now)
      return 'done' in ended ? ended.done.expiresAt - now : ended
    }
    expect([await lasts(SITE.rpId), await lasts('moved.example.com')]).toEqual([24 * HOUR_MS, HOUR_MS])
  })

  it('who is the last one is revoked by a command that says so, and its audit row says it', async () => {
    const last = await bench.join('Lena', ['ADMIN'])
    const all = await rows<{ id: string }>(
      `select person_id as id from tokenmill.person where revoked_at is null and not is_local and person_id <> $1`,
      last.personId,
    )
    for (const { id } of all) expect(await revoke(id)).toHaveProperty('done')
    expect(await revoke(last.personId)).toEqual({ refused: 'last_admin' })
    expect(await revoke(last.personId, { isLast: true })).toMatchObject({ done: { passkeys: 1 } })
    expect(await revoke(last.personId)).toEqual({ refused: 'revoked' })
    const told = await rows<{ detail: Record<string, unknown> }>(
      `select detail from tokenmill.audit where action = 'person.revoke' and subject = $1 and outcome = 'done'`,
      last.personId,
    )
    expect(told).toMatchObject([{ detail: { name: 'Lena', last_admin: true } }])
    // Somebody can still be invited.
    expect(await bench.join('Lena', ['ADMIN'])).not.toMatchObject({ personId: last.personId })
  })

  const enrol = (invite: { inviteId: string; secret: string }, personId: string) =>
    bench.send(bench.enrol(invite.secret, openAuthenticator(SITE), bench.enrolment(invite, personId)))
  /** Waits until a session waits for a lock that the session `pid` has, and returns its pid. */
  const blockedBy = async (pid: number) => {
    let blocked: { pid: number } | undefined
    await until(
      async () => {
        const text = 'select pid from pg_stat_activity where $1 = any (pg_blocking_pids(pid))'
        ;[blocked] = await rows<{ pid: number }>(text, pid)
        return blocked !== undefined
      },
      { what: `somebody to wait for a lock of session ${pid}` },
    )
    return (blocked as { pid: number }).pid
  }
  /** Holds the invite until the enrolment waits for it, and the command for the enrolment. */
  const sideBySide = async <T>(inviteId: string, enrolling: () => Promise<string>, command: () => Promise<T>) => {
    let both: Promise<[string, T]> | undefined
    await installation.vault.store.transaction(async db => {
      await invites.lock(db, inviteId)
      const { rows: own } = await db.query<{ pid: number }>({ text: 'select pg_backend_pid() as pid' })
      const first = enrolling()
      const enrolment = await blockedBy(own[0]?.pid as number)
      both = Promise.all([first, command()])
      both.catch(() => {})
      await blockedBy(enrolment)
    })
    return both
  }

  it('may be invited again while the former invite is used', async () => {
    const invite = await bench.invite('Side', ['ADMIN'])
    const personId = randomUUID()
    const again = () => bench.invite('Side', ['ADMIN'])
    const said = await sideBySide(invite.inviteId, () => enrol(invite, personId), again)
    expect(said).toMatchObject(['DONE', { personId }])
  })

  it('may be revoked while an invite for a new passkey is used', async () => {
    const { personId } = await bench.join('Sid', ['ADMIN'])
    const invite = await bench.invite('Sid', ['ADMIN'])
    const revoking = () => revoke(personId, { isLast: true })
    const said = await sideBySide(invite.inviteId, () => enrol(invite, personId), revoking)
    expect(said).toMatchObject(['DONE', { done: { passkeys: 1 } }])
    const left = await rows(
      'select from tokenmill.person_credential where person_id = $1 and revoked_at is null',
      personId,
    )
    expect(left).toEqual([])
  })
})
