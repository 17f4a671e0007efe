// Which texts of a row are kept beside its record, for the files that repeat them: the rejected rows, and the file that goes
// back to the provider. Card data and columns that are dropped are never among them.
import { COLUMN_NAMES, COLUMNS } from './columns.ts'
import { KEPT, type KeptField } from './kept.ts'
import { type ColumnOptions, resolve } from './layout.ts'
import { fieldsOf, isCardData } from './profile/profile-rules.ts'
import type { Profile } from './profile/profile-schema.ts'
import { returnFieldsOf } from './profile/return-shape.ts'

/** The columns of the file that a rejected row repeats, by their names in the file: those that are read and hold no card data. */
export function rejectsFieldsOf(options: ColumnOptions & { profile?: Profile | undefined }): KeptField[] {
  const { profile, echo = [] } = options
  const names = new Set([...(profile ? namesOfProfile(profile) : namesOfFile(options)), ...echo])
  return [...names].map(field => ({ field, path: KEPT }))
}

export interface KeptFor {
  /** Rejected rows are written. */
  rejects: boolean
  /** The file that goes back is written. */
  back: boolean
}

/**
 * The fields for the file of rejected rows, then those for the file that goes back to the provider; undefined if the
 * run writes neither file.
 */
export function keptFieldsOf(
  options: ColumnOptions & { profile?: Profile | undefined },
  { rejects, back }: KeptFor,
): KeptField[] | undefined {
  if (!rejects && !back) return undefined
  return [...(rejects ? rejectsFieldsOf(options) : []), ...(back ? returnFieldsOf(options.profile?.return) : [])]
}

function namesOfProfile(profile: Profile): string[] {
  const fields = fieldsOf(profile)
  const card = new Set(fields.flatMap(({ path, field }) => (isCardData(path) ? [field] : [])))
  return fields.flatMap(({ field }) => (card.has(field) ? [] : [field]))
}

/** Names the columns that a file may have and that hold no card data, without the reference, which has a column of its own. */
function namesOfFile(options: ColumnOptions): string[] {
  const { map = {} } = options
  const mapped = new Set(Object.values(map))
  const names = [...Object.keys(map), ...COLUMN_NAMES.filter(name => !mapped.has(name))]
  return names.filter(name => {
    const column = resolve(name, options)
    return column && column !== 'reference' && !COLUMNS[column].card
  })
}
