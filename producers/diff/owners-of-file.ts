// The first reading of a file that is complete: whom it names. Rows that are skipped or rejected name their owners, too.
import { ownerKey } from '../../src/token/on-file.ts'
import { FileError } from '../rows/file-error.ts'
import type { Profile } from '../rows/profile/profile.ts'
import { type RowOptions, readRows } from '../rows/rows.ts'
import { type SourceOptions, validateSource } from '../rows/source.ts'
import { type DigestText, openPartitions, type Partitions, type SpillOptions } from '../rows/spill/partitions.ts'
import type { ValidatedFile } from '../rows/validate-file.ts'

export interface Account {
  provider: string
  providerAccount: string
}

export interface OwnersOfFile {
  file: ValidatedFile
  /** The digests of all owners whom the file names. */
  named: Partitions
  /** The accounts whose owners the file names. */
  accounts: Account[]
}

export interface NamingFile {
  source: SourceOptions
  rowOptions: RowOptions & { profile: Profile }
  digestOf: DigestText
}

/** Throws a FileError if a row doesn't name the owner of its card, because it could be the owner of any stored card. */
export async function readOwners(
  { source, rowOptions, digestOf }: NamingFile,
  options: SpillOptions = {},
): Promise<OwnersOfFile> {
  const named = openPartitions(0, options)
  const accounts = openAccounts(rowOptions.profile)
  let unknown = 0
  let firstUnknown = 0
  try {
    const { checked: rows, ...validated } = await validateSource(source, async bytes => {
      let rows = 0
      for await (const part of readRows(bytes, { ...rowOptions, owners: true })) {
        for (const { owner, line, fileLine = line } of part) {
          rows += 1
          if (owner === undefined || owner === 'unknown') {
            unknown += 1
            firstUnknown ||= fileLine
          } else if (owner !== 'none') {
            accounts.see(owner)
            named.add(digestOf(ownerKey({ ...owner, tokenScope: '' })))
          }
        }
      }
      return rows
    })
    if (unknown > 0) throw unreadable(source.path, unknown, firstUnknown)
    const file = { ...validated, rows, skipped: 0, recordBytesMax: Number.POSITIVE_INFINITY }
    return { file, named, accounts: accounts.all() }
  } catch (error) {
    named.close()
    throw error
  }
}

function unreadable(path: string, rows: number, line: number): FileError {
  const wrong = `${rows} ${rows === 1 ? 'row' : 'rows'} of ${path} (the first at line ${line}) can't be read, so it isn't known whose cards are gone.`
  return new FileError('input', wrong, 'Correct these rows at their source, or leave --complete out.')
}

function openAccounts({ on_file: columns }: Profile) {
  const seen = new Map<string, Account>()
  const see = ({ provider, providerAccount }: Account) => {
    const key = `${provider}\0${providerAccount}`
    if (!seen.has(key)) seen.set(key, { provider, providerAccount })
  }
  const account = columns?.provider_account
  if (columns && !(account && 'from' in account))
    see({ provider: columns.provider, providerAccount: account?.constant ?? '' })
  return { see, all: () => [...seen.values()] }
}
