// The first reading of the parts of a complete export: whom they name. Rows that are skipped or rejected name their owners, too.
import { ownerKey } from '../../src/token/on-file.ts'
import { FileError } from '../rows/file-error.ts'
import { type RowOptions, readRows } from '../rows/file-rows.ts'
import { type DigestText, openPartitions, type Partitions, type SpillOptions } from '../rows/partitions.ts'
import type { Profile } from '../rows/profile/profile.ts'
import { type SourceOptions, validateSource } from '../rows/source.ts'
import type { ValidatedFile } from '../rows/validate-file.ts'

export interface Account {
  provider: string
  providerAccount: string
}

export interface OwnersOfFiles {
  files: ValidatedFile[]
  /** The digests of all owners whom a part names. */
  named: Partitions
  /** The accounts whose owners the parts name. */
  accounts: Account[]
}

export interface NamingFile {
  source: SourceOptions
  rowOptions: RowOptions & { profile: Profile }
}

/** Throws a FileError if a row doesn't name the owner of its card, because it could be the owner of any stored card. */
export async function readOwners(
  { parts, digestOf }: { parts: readonly NamingFile[]; digestOf: DigestText },
  options: SpillOptions = {},
): Promise<OwnersOfFiles> {
  const named = openPartitions(0, options)
  const accounts = openAccounts()
  const files: ValidatedFile[] = []
  try {
    for (const part of parts) files.push(await readOwnersOf(part, { named, accounts, digestOf }))
    return { files, named, accounts: accounts.all() }
  } catch (error) {
    named.close()
    throw error
  }
}

async function readOwnersOf(
  { source, rowOptions }: NamingFile,
  { named, accounts, digestOf }: { named: Partitions; accounts: Accounts; digestOf: DigestText },
): Promise<ValidatedFile> {
  accounts.expect(rowOptions.profile)
  let unknown = 0
  let firstUnknown = 0
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
  return { ...validated, rows, skipped: 0, recordBytesMax: Number.POSITIVE_INFINITY }
}

function unreadable(path: string, rows: number, line: number): FileError {
  const wrong = `${rows} ${rows === 1 ? 'row' : 'rows'} of ${path} (the first at line ${line}) can't be read, so it isn't known whose cards are gone.`
  return new FileError('input', wrong, 'Correct these rows at their source, or leave --complete out.')
}

type Accounts = ReturnType<typeof openAccounts>

function openAccounts() {
  const seen = new Map<string, Account>()
  const see = ({ provider, providerAccount }: Account) => {
    const key = `${provider}\0${providerAccount}`
    if (!seen.has(key)) seen.set(key, { provider, providerAccount })
  }
  return {
    see,
    /** The account that the profile gives for every row. */
    expect({ on_file: columns }: Profile) {
      const account = columns?.provider_account
      if (columns && !(account && 'from' in account))
        see({ provider: columns.provider, providerAccount: account?.constant ?? '' })
    },
    all: () => [...seen.values()],
  }
}
