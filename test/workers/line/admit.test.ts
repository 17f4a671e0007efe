// Admission: time, sequence, roles and entity of the envelope, compared with the client's rights. Each refusal names
// its reason and the claim; the order of the checks is part of the contract.
import { describe, expect, it } from 'vitest'
import { ROLES, type Role } from '../../../src/job/catalogue.ts'
import { CATALOGUE, type Kind } from '../../../src/job/composition.ts'
import { type Claims, ENVELOPE } from '../../../src/job/envelope/envelope.ts'
import type { Client } from '../../../src/store/access/clients.ts'
import { admit, limitedTo } from '../../../workers/line/admit.ts'

const NOW = Date.UTC(2030, 0, 31, 12)
const SECOND = NOW / 1_000
const ENTITY = '8aca4f36-774f-42a6-8c50-7cb9c9667948'
const OTHER_ENTITY = '0b1e7c52-91d4-4d4f-9a53-5f3a1d3c7e20'
const CLIENT_ID = `c${'a'.repeat(25)}`

const client: Client = {
  clientId: CLIENT_ID,
  name: 'shop',
  userId: 'user',
  entities: [ENTITY],
  roles: [...ROLES],
  alg: 'ES256',
  system: false,
  names: 'numeric',
  createdAt: 0,
  revokedAt: null,
  mac: null,
  macVersion: null,
}

function claims(over: Partial<Claims> = {}): Claims {
  return {
    iss: CLIENT_ID,
    aud: 'tokenmill',
    sub: ENTITY,
    entity_id: ENTITY,
    roles: [...ROLES],
    iat: SECOND,
    jti: 'job-1',
    kind: 'token-create',
    request: {},
    ...over,
  }
}

function judge(over: Partial<Claims>, { who = client, holdsCard = false, now = NOW } = {}): string | undefined {
  const asked = claims(over)
  const refusal = admit({ claims: asked, entry: CATALOGUE.entry(asked.kind), client: who }, holdsCard, now)
  return refusal && `${refusal.reason} ${refusal.field}`
}

const without = (role: Role): Role[] => ROLES.filter(each => each !== role)

describe('an envelope’s time', () => {
  it('may be ahead of the clock by what clocks differ, and not by a second more', () => {
    const ahead = ENVELOPE.aheadMsMax / 1_000
    expect(judge({ iat: SECOND + ahead })).toBeUndefined()
    expect(judge({ iat: SECOND + ahead + 1 })).toBe('envelope_future body.iat')
  })

  it('ends at exp, which is the first moment that is too late', () => {
    const exp = SECOND + 60
    expect(judge({ exp }, { now: exp * 1_000 - 1 })).toBeUndefined()
    expect(judge({ exp }, { now: exp * 1_000 })).toBe('envelope_expired body.exp')
  })

  it('is refused where it ends before it begins, or lasts longer than may be', () => {
    const longest = ENVELOPE.lifetimeMsMax / 1_000
    expect(judge({ exp: SECOND })).toBe('envelope_lifetime body.exp')
    expect(judge({ exp: SECOND + longest })).toBeUndefined()
    expect(judge({ exp: SECOND + longest + 1 })).toBe('envelope_lifetime body.exp')
  })

  it('is shorter where the job holds a card, also where no exp is given', () => {
    const longest = ENVELOPE.cardLifetimeMsMax / 1_000
    expect(judge({ exp: SECOND + longest }, { holdsCard: true })).toBeUndefined()
    expect(judge({ exp: SECOND + longest + 1 }, { holdsCard: true })).toBe('envelope_lifetime body.exp')
    const late = NOW + ENVELOPE.cardLifetimeMsDefault
    expect(judge({}, { holdsCard: true, now: late })).toBe('envelope_expired body.exp')
    expect(judge({}, { now: late })).toBeUndefined()
  })
})

describe('a sequence', () => {
  it('is taken by the kinds that change a token, and by no other', () => {
    const taking = CATALOGUE.kinds.filter(kind => judge({ kind, sequence: 1 }) !== 'sequence_not_allowed body.sequence')
    expect(taking).toEqual(['token-update', 'token-lifecycle', 'scheme-token'])
  })
})

describe('a client', () => {
  it('needs the kind’s role, in the envelope and by its registration', () => {
    for (const kind of CATALOGUE.kinds) {
      const { role } = CATALOGUE.entry(kind)
      if (role === null) continue
      expect(judge({ kind })).toBeUndefined()
      expect(judge({ kind, roles: without(role) })).toBe('role_missing body.roles')
      expect(judge({ kind }, { who: { ...client, roles: without(role) } })).toBe('role_missing body.roles')
    }
  })

  it('needs for a batch the role of its records, and for a dry run that of reading as well', () => {
    const of = (record_kind: Kind, dry_run = false) => ({
      kind: 'token-batch' as const,
      request: { record_kind, dry_run },
    })
    expect(judge({ ...of('token-lifecycle'), roles: ['TOKEN_LIFECYCLE'] })).toBeUndefined()
    expect(judge({ ...of('token-create'), roles: ['TOKEN_LIFECYCLE'] })).toBe('role_missing body.roles')
    expect(judge({ ...of('token-update', true), roles: ['TOKEN_WRITE'] })).toBe('role_missing body.roles')
    expect(judge({ ...of('token-update', true), roles: ['TOKEN_WRITE', 'TOKEN_READ'] })).toBeUndefined()
  })

  it('needs the role of lifecycles for a batch that suspends or deletes tokens without owners', () => {
    const of = (on_orphan: string, roles: Role[]) => ({
      kind: 'token-batch' as const,
      roles,
      request: { record_kind: 'token-create', policy: { on_orphan } },
    })
    expect(judge(of('keep', ['TOKEN_WRITE']))).toBeUndefined()
    for (const ending of ['suspend', 'delete']) {
      expect(judge(of(ending, ['TOKEN_WRITE']))).toBe('role_missing body.roles')
      expect(judge(of(ending, ['TOKEN_WRITE', 'TOKEN_LIFECYCLE']))).toBeUndefined()
    }
  })

  it('needs the role of scheme tokens for an update that asks something of one', () => {
    const request = { scheme_token_action: 'SUSPEND' }
    expect(judge({ kind: 'token-update', roles: ['TOKEN_WRITE'] })).toBeUndefined()
    expect(judge({ kind: 'token-update', request, roles: ['TOKEN_WRITE'] })).toBe('role_missing body.roles')
    expect(judge({ kind: 'token-update', request, roles: ['TOKEN_WRITE', 'SCHEME_TOKEN'] })).toBeUndefined()
  })

  it('acts for its own entities only', () => {
    expect(judge({ entity_id: OTHER_ENTITY })).toBe('entity_forbidden body.entity_id')
  })

  it('limited to one of its entities acts for that one alone, and for none if it isn’t its own', () => {
    const both = { ...client, entities: [ENTITY, OTHER_ENTITY] }
    const under = (only: string | undefined, entity_id: string, who = both) =>
      judge({ entity_id }, { who: limitedTo(only, who) })
    expect([under(undefined, ENTITY), under(undefined, OTHER_ENTITY)]).toEqual([undefined, undefined])
    expect(under(OTHER_ENTITY, OTHER_ENTITY)).toBeUndefined()
    expect(under(OTHER_ENTITY, ENTITY)).toBe('entity_forbidden body.entity_id')
    expect(under(OTHER_ENTITY, OTHER_ENTITY, client)).toBe('entity_forbidden body.entity_id')
    expect(limitedTo(OTHER_ENTITY, both)).toEqual({ ...client, entities: [OTHER_ENTITY] })
  })

  it('may not send what only system clients may', () => {
    expect(judge({ kind: 'reversal' })).toBe('role_missing body.kind')
  })
})

describe('a system client', () => {
  it('sends its own kinds and no other', () => {
    const allowed = (iss: string) => CATALOGUE.kinds.filter(kind => judge({ iss, kind, roles: [] }) === undefined)
    expect(allowed('worker')).toEqual(['reversal', 'manifest-total'])
    expect(allowed('console')).toEqual(['act'])
    expect(allowed('scheduler')).toEqual(['token-lifecycle', 'report', 'webhook'])
    expect(allowed('gateway')).toEqual(
      CATALOGUE.kinds.filter(
        kind => !['transaction-batch', 'reference', 'webhook', 'manifest-total', 'act'].includes(kind),
      ),
    )
  })

  it('on a client’s behalf may no more than that client', () => {
    const behalf = { iss: 'gateway', client_id: CLIENT_ID }
    expect(judge(behalf)).toBeUndefined()
    expect(judge({ ...behalf, entity_id: OTHER_ENTITY })).toBe('entity_forbidden body.entity_id')
    expect(judge(behalf, { who: { ...client, roles: [] } })).toBe('role_missing body.roles')
  })
})

describe('of several faults', () => {
  it('time is told before the sequence, the sequence before the kind, the entity before the roles', () => {
    const late = { exp: SECOND - 1, iat: SECOND - 60 }
    expect(judge({ ...late, kind: 'reversal', sequence: 1 })).toBe('envelope_expired body.exp')
    expect(judge({ kind: 'reversal', sequence: 1 })).toBe('sequence_not_allowed body.sequence')
    expect(judge({ kind: 'reversal', entity_id: OTHER_ENTITY })).toBe('role_missing body.kind')
    expect(judge({ entity_id: OTHER_ENTITY, roles: [] })).toBe('entity_forbidden body.entity_id')
  })
})
