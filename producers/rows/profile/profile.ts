// Parses a profile and says what is wrong with it. Messages name a member by its path and quote no value: the given
// file may not be a profile at all.
import type { z } from 'zod'
import { readObject } from '../../../src/job/envelope/strict-json.ts'
import { ownerFields } from '../../../src/job/on-file.ts'
import { holdsPossiblePan } from '../../../src/token/possible-pan.ts'
import { FileError } from '../file-error.ts'
import { shown } from '../layout.ts'
import { checkProfile } from './profile-rules.ts'
import { Profile } from './profile-schema.ts'

export { Profile } from './profile-schema.ts'

const NEXT = 'Correct that member; docs/schema/profile.json describes them all.'

/** Parses the text of the file `file`. Throws a FileError that names the wrong member by its path. */
export function parseProfile(file: string, text: string): Profile {
  const value = readObject(Buffer.from(text))
  if (value === undefined) {
    const next = 'Write it as one JSON object that names no member twice; docs/schema/profile.json describes it.'
    throw new FileError('usage', `${file} is no profile: it is not a JSON object.`, next)
  }
  const parsed = Profile.safeParse(value)
  if (!parsed.success) throw new FileError('usage', `${file}: ${wordsOf(parsed.error.issues)}.`, NEXT, parsed.error)
  const fault = checkProfile(parsed.data)
  if (fault !== undefined) throw new FileError('usage', `${file}: ${fault.wrong}.`, fault.next)
  return parsed.data
}

/** The profile for files of one account at its provider. Throws a FileError where the profile names accounts itself. */
export function withAccount(profile: Profile, account: string): Profile {
  const { on_file: onFile } = profile
  const option = '--provider-account'
  if (onFile === undefined)
    throw new FileError(
      'usage',
      `${option} needs a profile with on_file.`,
      'Leave it out, or add on_file to the profile.',
    )
  if (onFile.provider_account !== undefined)
    throw new FileError('usage', `${option} and the profile both say the account.`, 'Leave one of them out.')
  if (!ownerFields.card_id.safeParse(account).success || holdsPossiblePan(account))
    throw new FileError('usage', `${option} takes up to 128 characters, and no card number.`, 'Choose another name.')
  return { ...profile, on_file: { ...onFile, provider_account: { constant: account } } }
}

type Issue = z.core.$ZodIssue

/** Everything that is wrong, by path and without values: the given file may not be a profile at all. */
function wordsOf(issues: readonly Issue[], before: readonly PropertyKey[] = []): string {
  return issues.map(issue => wordOf(issue, [...before, ...issue.path])).join('; ')
}

function wordOf(issue: Issue, path: readonly PropertyKey[]): string {
  if (issue.code === 'invalid_union' && issue.errors.length > 0) {
    // The alternative with the fewest errors.
    const [nearest] = [...issue.errors].sort((a, b) => a.length - b.length)
    return wordsOf(nearest ?? [], path)
  }
  const at = path.length === 0 ? 'the profile' : path.map(String).join('.')
  if (issue.code === 'unrecognized_keys') return `${at} has the unknown member ${issue.keys.map(shown).join(', ')}`
  if (issue.code === 'invalid_value') return `${at} must be one of ${issue.values.map(String).join(', ')}`
  if (issue.code === 'invalid_type') return `${at} must be given, as ${issue.expected}`
  if (issue.code === 'invalid_format') return `${at} does not have the required form`
  return `${at} is wrong (${issue.code})`
}
