// Which roles a batch asks for: those of its records, as a worker will.
import { assert } from '../../../src/errors.ts'
import { CATALOGUE, type RecordKind, type Role } from '../../../src/job/catalogue.ts'
import type { Caller } from '../app.ts'

/** To start it, or to call it off. */
export function rolesOf({ recordKind, dryRun }: { recordKind: RecordKind; dryRun: boolean }): Role[] {
  const { role } = CATALOGUE[recordKind]
  assert(role !== null, 'a kind of record has a role')
  return dryRun ? [role, 'TOKEN_READ'] : [role]
}

export function hasRoles({ roles }: Pick<Caller, 'roles'>, needed: readonly Role[]): boolean {
  return needed.every(role => roles.includes(role))
}
