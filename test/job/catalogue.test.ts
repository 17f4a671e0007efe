// The catalogue of kinds, as entries of processes compose it and the core asks it: it may have more kinds or fewer.
import { describe, expect, expectTypeOf, it } from 'vitest'
import { catalogueOf } from '../../src/job/catalogue.ts'
import { CATALOGUE, KINDS } from '../../src/job/composition.ts'
import { CORE_KINDS } from '../../src/job/core-kinds.ts'
import { kindName } from '../../src/job/envelope/text.ts'
import { type KindEntry, kind, requestSchema } from '../../src/job/kind-entry.ts'
import { parse } from '../../src/job/refusal.ts'
import { Report } from '../../src/job/report.ts'
import { TokenExpiry, TokenLifecycle } from '../../src/job/token-lifecycle.ts'
import type { HandlersOf } from '../../workers/line/handlers.ts'
import type { Handler, Retells } from '../../workers/work.ts'

const CORE = catalogueOf(CORE_KINDS)
const ENTITY = '8aca4f36-774f-42a6-8c50-7cb9c9667948'
const CLAIMS = {
  iss: `c${'a'.repeat(25)}`,
  aud: 'tokenmill',
  sub: ENTITY,
  entity_id: ENTITY,
  roles: [],
  iat: 1_900_000_000,
  jti: 'job-1',
  request: {},
}

const fieldsOf = (given: object, { claims } = CATALOGUE) => {
  const read = parse(claims, { ...CLAIMS, ...given }, 'body')
  return 'refused' in read ? [read, ...(read.also ?? [])].map(({ field, reason }) => `${field} ${reason}`) : []
}

describe('a catalogue', () => {
  it('finds its kinds by their names, and nothing by another word', () => {
    for (const [name, entry] of Object.entries(KINDS)) expect(CATALOGUE.find(name)).toBe(entry)
    for (const word of ['report', 'act', 'constructor', '__proto__', '', ' reversal', 7, null, undefined, ['reversal']])
      expect(CORE.find(word)).toBeUndefined()
    expect(() => CORE.entry('report')).toThrow()
  })

  it('has claims of its kinds alone: any other kind is refused as a wrong value of `kind`', () => {
    for (const name of CATALOGUE.kinds) expect(fieldsOf({ kind: name })).toEqual([])
    for (const name of ['report', 'webhook', 'nobody-knows', 'constructor', '', 'REVERSAL', 7, null, {}])
      expect(fieldsOf({ kind: name }, CORE)).toEqual(['body.kind field_value'])
    expect(fieldsOf({ kind: undefined })).toEqual(['body.kind field_required'])
  })

  it('names a wrong kind beside the other wrong claims, in the order of the claims', () => {
    const wrong = { kind: 'nobody-knows', sequence: -1, sub: 'x' }
    expect(fieldsOf(wrong)).toEqual(['body.sub field_format', 'body.kind field_value', 'body.sequence field_range'])
  })

  it('has names that every reader of an envelope or a result takes for a kind', () => {
    for (const name of CATALOGUE.kinds) expect(kindName().safeParse(name).success, name).toBe(true)
  })
})

describe('the entry of a kind', () => {
  const entry = kind({ request: Report, description: 'x', role: null, retell: { from: 'handler' }, bulk: true })

  it('has what is usual where it says nothing', () => {
    expect(entry).toMatchObject({ bulk: true, systemOnly: false, hasBlock: false, recordsIn: null, memberRoles: [] })
    expect(entry.asksProvider({})).toBe(false)
  })

  it('does not compile with a member that entries don’t have, or without one that has no usual value', () => {
    type Taken<Entry extends Parameters<typeof kind>[0]> = Parameters<typeof kind<Entry>>[0]
    type Stated = Pick<KindEntry, 'request' | 'description' | 'role' | 'retell'>
    expectTypeOf<Stated & { systemOnly: true }>().toExtend<Taken<Stated & { systemOnly: true }>>()
    expectTypeOf<Stated & { systemonly: true }>().not.toExtend<Taken<Stated & { systemonly: true }>>()
    expectTypeOf<Omit<Stated, 'retell'>>().not.toExtend<Parameters<typeof kind>[0]>()
  })

  it('does not compile in a composition without a handler for it, or with one that can’t tell its stored answer', () => {
    type Entry = typeof entry
    type Silent = Handler<unknown, unknown, unknown>
    expectTypeOf<{ one: null }>().not.toExtend<HandlersOf<{ one: Entry; two: Entry }>>()
    expectTypeOf<{ one: Silent }>().not.toExtend<HandlersOf<{ one: Entry }>>()
    expectTypeOf<{ one: Silent & Retells; two: null }>().toExtend<HandlersOf<{ one: Entry; two: Entry }>>()
  })

  it('has the schema that a system client’s request must have, and no other sender’s', () => {
    const { 'token-lifecycle': lifecycle } = CORE_KINDS
    expect(requestSchema(lifecycle, 'scheduler')).toBe(TokenExpiry)
    for (const iss of ['gateway', 'worker', CLAIMS.iss, 'constructor'])
      expect(requestSchema(lifecycle, iss)).toBe(TokenLifecycle)
  })
})
