// The table of roles by the content of a request: what a kind needs, what its members need, and what a batch needs for
// itself and for each of its records.
import { describe, expect, it } from 'vitest'
import { RECORD_KINDS, ROLES, type Role } from '../../../src/job/catalogue.ts'
import { KINDS, type Kind } from '../../../src/job/composition.ts'
import { lacks, mayNeedMore, rolesOf } from '../../../src/job/envelope/roles.ts'
import type { Sent } from '../../../src/job/kind-entry.ts'

const batchOf = (more: Sent): Sent => ({ record_kind: 'token-update', ...more })

const NEEDS: [Kind, Sent, Role[]][] = [
  ['token-create', {}, ['TOKEN_WRITE']],
  ['token-create', { on_file: {}, reuse_token_type: 'THIRD_PARTY_1' }, ['TOKEN_WRITE']],
  ['token-update', {}, ['TOKEN_WRITE']],
  ['token-update', { card_holder_name: 'A', token_expiry_date: '2031-01-01' }, ['TOKEN_WRITE']],
  ['token-update', { scheme_token_action: 'ACTIVATE' }, ['TOKEN_WRITE', 'SCHEME_TOKEN']],
  ['token-update', { scheme_token_action: 'DELETE', encrypted_card: 'x' }, ['TOKEN_WRITE', 'SCHEME_TOKEN']],
  ['token-update', { scheme_token_action: null }, ['TOKEN_WRITE', 'SCHEME_TOKEN']],
  ['token-lifecycle', { action: 'DELETE' }, ['TOKEN_LIFECYCLE']],
  ['scheme-token', { action: 'SUSPEND' }, ['SCHEME_TOKEN']],
  ['reference', { action: 'RELEASE', on_orphan: 'delete' }, ['TOKEN_LIFECYCLE']],
  ['transaction-batch', {}, ['LEDGER_WRITE']],
  ['report', {}, ['REPORT_REQUEST']],
  ['token-batch', batchOf({}), ['TOKEN_WRITE']],
  ['token-batch', batchOf({ record_kind: 'scheme-token' }), ['SCHEME_TOKEN']],
  ['token-batch', batchOf({ record_kind: 'reference' }), ['TOKEN_LIFECYCLE']],
  ['token-batch', batchOf({ dry_run: true }), ['TOKEN_WRITE', 'TOKEN_READ']],
  ['token-batch', batchOf({ policy: { on_orphan: 'keep', relink: true } }), ['TOKEN_WRITE']],
  ['token-batch', batchOf({ policy: { on_orphan: 'suspend' } }), ['TOKEN_WRITE', 'TOKEN_LIFECYCLE']],
  [
    'token-batch',
    batchOf({ record_kind: 'token-create', policy: { on_orphan: 'delete' }, dry_run: true }),
    ['TOKEN_WRITE', 'TOKEN_READ', 'TOKEN_LIFECYCLE'],
  ],
]

const every = <T>(list: readonly T[]): T[][] =>
  Array.from({ length: 2 ** list.length }, (_, set) => list.filter((_one, index) => set & (1 << index)))

describe('the roles of a request', () => {
  it.each(NEEDS)('%s %j are %j', (kind, request, roles) => {
    expect(rolesOf(KINDS[kind], request)).toEqual(roles)
  })

  it('are lacked by exactly the senders that hold not all of them', () => {
    for (const [kind, request, roles] of NEEDS)
      for (const held of every(ROLES)) {
        const missing = roles.filter(role => !held.includes(role))
        expect(lacks(held, KINDS[kind], request).map(({ role }) => role)).toEqual(missing)
      }
  })

  it('name the member that needs them', () => {
    expect(lacks([], KINDS['token-update'], { scheme_token_action: 'DELETE' })).toEqual([
      { role: 'TOKEN_WRITE', member: undefined },
      { role: 'SCHEME_TOKEN', member: 'scheme_token_action' },
    ])
    const batch = batchOf({ dry_run: true, policy: { on_orphan: 'delete' } })
    expect(lacks([], KINDS['token-batch'], batch).map(({ member }) => member)).toEqual([
      'record_kind',
      'dry_run',
      'policy.on_orphan',
    ])
  })

  it('exceed those of the kind only where a member of the kind has a role of its own', () => {
    const all = RECORD_KINDS.filter(kind =>
      mayNeedMore(KINDS[kind], ['TOKEN_WRITE', 'TOKEN_LIFECYCLE', 'SCHEME_TOKEN']),
    )
    expect(all).toEqual([])
    expect(RECORD_KINDS.filter(kind => mayNeedMore(KINDS[kind], []))).toEqual(['token-update'])
  })

  it('are none for what only system clients send, whose kinds are a table of their own', () => {
    for (const entry of Object.values(KINDS).filter(({ systemOnly }) => systemOnly))
      expect(rolesOf(entry, {})).toEqual([])
  })
})
