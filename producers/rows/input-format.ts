// What the name of a file tells: the format of its rows and the layers around them, outermost first
// (`cards.csv.gz.pgp` is OpenPGP around gzip around CSV). It never looks into the file.
import { basename } from 'node:path'
import { FileError } from './file-error.ts'

export type Format = 'csv' | 'ndjson'
export type Layer = 'gzip' | 'openpgp'

const LAYERS: ReadonlyMap<string, Layer> = new Map([
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

/** `-` is standard input: no layers, and no format unless it is given. */
export function layersOf(path: string): { layers: readonly Layer[]; format: Format | undefined } {
  const endings = path === '-' ? [] : basename(path).toLowerCase().split('.').slice(1)
  const layers: Layer[] = []
  for (let ending = endings.pop(); ending !== undefined; ending = endings.pop()) {
    const layer = LAYERS.get(ending)
    if (layer === undefined) return { layers, format: FORMATS.get(ending) }
    layers.push(layer)
  }
  return { layers, format: undefined }
}

/** The format asked for, else the one that the name tells. */
export function formatOf(path: string, given: Format | undefined): Format {
  const format = given ?? layersOf(path).format
  if (format !== undefined) return format
  throw new FileError('usage', `The name ${path} does not tell its format.`, 'Give --format csv or --format ndjson.')
}
