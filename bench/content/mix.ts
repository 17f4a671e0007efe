// What a mix of content is made of.
import type { Profile } from '../../producers/rows/profile/profile-schema.ts'

/** A file, a line after the other. */
export interface ContentFile {
  extension: 'csv' | 'ndjson' | 'json' | 'txt'
  /** The line before the rows. */
  header?: string
  lineAt(index: number): string
  /** The line behind the rows. */
  footer?: string
  /** It is written as gzip. */
  isPacked?: true
}

export interface Mix {
  about: string
  file: ContentFile
  profile?: Profile
  /** Options of `migrate`. */
  args?: readonly string[]
  /** Migrated before, unmeasured: a file with every nth row of the mix, counted from the first. */
  before?: { file: ContentFile; every: number }
  /** The measured file is made from the reuse tokens of the file before. */
  update?: { header: string; lineAt(index: number, token: string): string }
  /** `--content all` leaves it out. `parts`: another mix has it among others. `formats`: the cards of the base in another file. */
  group?: Group
}

type Group = 'parts' | 'formats'
