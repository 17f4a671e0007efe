// What a manifest says of how its run was started: by whom, by which command, and by which OpenPGP keys the input was
// opened.
import { z } from 'zod'
import { maskDigits } from '../../src/job/envelope/names.ts'
import { holdsPossiblePan } from '../../src/token/possible-pan.ts'
import type { PgpKeys } from '../rows/openpgp/decrypt.ts'

/** The fingerprint of a primary key, upper-case hex: 40 digits, or 64 for a key of version 6. */
const Fingerprint = z.string().regex(/^([0-9A-F]{40}|[0-9A-F]{64})$/)

/** Members of a manifest. */
export const provenance = {
  /** The words behind `tokenmill`, as they were given; of a continued run, those of the last command. Absent if no command began it. */
  command: z.array(z.string()).optional(),
  operator: z.strictObject({ client_id: z.string(), os_user: z.string().optional() }),
  /** Null: the input wasn't encrypted. */
  pgp_keys: z.strictObject({ decryption: Fingerprint, verification: Fingerprint.optional() }).nullable(),
}

export interface StartedBy {
  command?: readonly string[] | undefined
  /** The account of the operating system. */
  osUser?: string | undefined
}

/** The members for this run. Words that could be a card number, each or together, lose their digits. */
export function provenanceOf({ command, osUser }: StartedBy, clientId: string, pgpKeys: PgpKeys | undefined) {
  return {
    ...(command && { command: masked(command) }),
    operator: { client_id: clientId, os_user: osUser },
    pgp_keys: pgpKeys ?? null,
  }
}

/** A card number without quotes is as many words as it has groups of digits: up to five. */
const GROUPS_MAX = 5

function masked(command: readonly string[]): string[] {
  const words = [...command]
  // Tries the fewest words first, so that a number beside a card number isn't masked with it.
  for (let groups = 1; groups <= GROUPS_MAX; groups += 1)
    for (let start = 0; start + groups <= words.length; start += 1) {
      const together = words.slice(start, start + groups)
      if (holdsPossiblePan(together.join(' ')) || holdsPossiblePan(together.join('')))
        words.splice(start, groups, ...together.map(maskDigits))
    }
  return words
}
