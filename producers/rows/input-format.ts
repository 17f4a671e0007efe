// Tells from the name of a file the format of its rows and the wrappers around them, outermost first
// (`cards.csv.gz.pgp` is OpenPGP around gzip around CSV). It never reads the file.
import { basename } from 'node:path'
import { FileError } from './file-error.ts'

export type Format = 'csv' | 'ndjson'
export type Wrapper = 'gzip' | 'openpgp'

const WRAPPERS: ReadonlyMap<string, Wrapper> = new Map([
  ['gz', 'gzip'],
  ['pgp', 'openpgp'],
  ['gpg', 'openpgp'],
  ['asc', 'openpgp'],
])
const FORMATS: ReadonlyMap<string, Format> = new Map([
  ['csv', 'csv'],
  ['ndjson', 'ndjson'],
  ['jsonl', 'ndjson'],
])

/** The format and wrappers of a file by its name. `-` is standard input, which has no wrappers and no known format. */
export function inputFormatOf(path: string): { wrappers: readonly Wrapper[]; format: Format | undefined } {
  const endings = path === '-' ? [] : basename(path).toLowerCase().split('.').slice(1)
  const wrappers: Wrapper[] = []
  for (let ending = endings.pop(); ending !== undefined; ending = endings.pop()) {
    const wrapper = WRAPPERS.get(ending)
    if (wrapper === undefined) return { wrappers, format: FORMATS.get(ending) }
    wrappers.push(wrapper)
  }
  return { wrappers, format: undefined }
}

/** The given format, else the format that the name shows. Throws a FileError if there is neither. */
export function formatOf(path: string, given: Format | undefined): Format {
  const format = given ?? inputFormatOf(path).format
  if (format !== undefined) return format
  throw new FileError('usage', `The name ${path} does not tell its format.`, 'Give --format csv or --format ndjson.')
}
