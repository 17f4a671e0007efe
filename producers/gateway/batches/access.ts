// The roles that a batch needs: the roles that a worker will require for its records.
import { assert } from '../../../src/errors.ts'
import { CATALOGUE, type RecordKind, type Role } from '../../../src/job/catalogue.ts'
import type { Caller } from '../app.ts'

/** The roles needed to start or to cancel a batch. */
export function rolesOf({ recordKind, dryRun }: { recordKind: RecordKind; dryRun: boolean }): Role[] {
  const { role } = CATALOGUE[recordKind]
  assert(role !== null, 'a kind of record has a role')
  return dryRun ? [role, 'TOKEN_READ'] : [role]
}

export function hasRoles({ roles }: Pick<Caller, 'roles'>, needed: readonly Role[]): boolean {
  return needed.every(role => roles.includes(role))
}
