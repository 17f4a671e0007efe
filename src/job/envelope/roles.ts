// Which roles a request needs, by its content and not by the way it comes: workers judge every job and every record of a
// chunk by it, and the gateway asks it before it sends. The kind's entry says it; nobody's roles are known here.
import { type Refusal, refuse } from '../../errors.ts'
import type { Role } from '../choices.ts'
import type { KindEntry, Sent } from '../kind-entry.ts'

/** A role that a request needs, and the path of the member that needs it; undefined: the kind itself. */
export interface Need {
  role: Role
  member: string | undefined
}

/** What the entry of a kind says of roles. */
type Roles = Pick<KindEntry, 'role' | 'memberRoles'>

function needsOf({ role, memberRoles }: Roles, request: Sent): Need[] {
  const own = role === null ? [] : [{ role, member: undefined }]
  const asked = memberRoles.filter(({ asks }) => asks(request))
  return [...own, ...asked.map(({ role: needed, member }) => ({ role: needed, member }))]
}

/** The roles that the request needs. */
export function rolesOf(kind: Roles, request: Sent): Role[] {
  return needsOf(kind, request).map(({ role }) => role)
}

/** What the request needs and a sender with these roles lacks. */
export function lacks(held: readonly Role[], kind: Roles, request: Sent): Need[] {
  return needsOf(kind, request).filter(({ role }) => !held.includes(role))
}

/** Whether a request of this kind could need, beside the kind's own role, one that isn't held. */
export function mayNeedMore({ memberRoles }: Roles, held: readonly Role[]): boolean {
  return memberRoles.some(({ role }) => !held.includes(role))
}

/** How many lines of a batch a refusal names. */
const LINES_TOLD_MAX = 50

/**
 * The refusal of records of which one needs, beside the role of its kind, a role that the sender lacks. It names the
 * first such lines (`body.lines.7.scheme_token_action`). `request`: as it was sent, of any form.
 */
export function recordsRefusal(
  held: readonly Role[],
  kind: Roles,
  records: Iterable<{ line: number; request: unknown }>,
): Refusal | undefined {
  const fields: string[] = []
  for (const { line, request } of records) {
    for (const { member } of lacks(held, kind, (request ?? {}) as Sent))
      if (member !== undefined) fields.push(`body.lines.${line}.${member}`)
    if (fields.length >= LINES_TOLD_MAX) break
  }
  const [first, ...others] = fields
  if (first === undefined) return undefined
  const reason = 'role_missing'
  return { ...refuse(reason, first), also: others.map(field => ({ field, reason })) }
}
