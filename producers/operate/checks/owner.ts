// What an owner of the database could do on this installation, beside what holds on each (docs/security.md): who is the owner,
// and whether a role of tokenmill works as the owner.
import * as logins from '../../../src/store/access/logins.ts'
import type { Db } from '../../../src/store/pool.ts'
import { type Verdict, warning, well } from '../check.ts'

interface OwnerSources {
  store(): Promise<Db>
  embedded: boolean
}

/** The applications of the roles that need no right of the owner (`pg_stat_activity`). */
const ROLES = {
  'tokenmill gateway': 'gateway',
  'tokenmill console': 'console',
  'tokenmill three-ds': 'three-ds',
  'tokenmill scheduler': 'scheduler',
  'tokenmill worker%': 'workers',
} as const

const REMAINS =
  'can read names, e-mail addresses, BIN and last four, have a job done twice by removing its receipt, and put former rows back'
const MORE = 'docs/security.md, “What an owner of the database could do”'

export async function askOwner({ store, embedded }: OwnerSources): Promise<Verdict> {
  if (embedded) return well('the embedded server is this installation’s own: whoever runs it has its keys, too')
  return judgeOwner(await logins.findOwner(await store(), Object.keys(ROLES)))
}

export function judgeOwner({ owner, isSuperuser, alike, working }: logins.Owner): Verdict {
  const as = alike.length > 0 ? ` (so ${alike.length === 1 ? 'is' : 'are'} in effect ${alike.join(', ')})` : ''
  const roles = [...new Set(working.flatMap(application => roleOf(application)))].sort()
  const says = `${owner} owns the tables${as} and ${REMAINS}; ${MORE}`
  if (roles.length > 0)
    return warning(
      `${roles.join(', ')} can do what the owner can: they log in as such a user; ${says}`,
      'give each role a user of its own: `tokenmill schema login gateway|worker|console`',
    )
  if (isSuperuser)
    return warning(
      `the owner is a superuser, who can also read files and run programs of the database’s host; ${says}`,
      'let a user without SUPERUSER own the database, for tokenmill only',
    )
  return well(says)
}

function roleOf(application: string): string[] {
  return Object.entries(ROLES).flatMap(([pattern, role]) =>
    application.startsWith(pattern.replace('%', '')) ? [role] : [],
  )
}
