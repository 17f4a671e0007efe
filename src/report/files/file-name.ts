// The names of a report's file. A name holds only letters, digits, dots, hyphens and underscores, whatever a parameter
// holds.
import type { MimeType, ReportType } from '../../job/report.ts'
import type { Plan } from '../definition.ts'

export const EXTENSIONS = {
  'application/pdf': 'pdf',
  'text/csv': 'csv',
  'text/plain': 'txt',
} as const satisfies Record<MimeType, string>

/** `<TYPE>_<period>_<uid>.<extension>`. */
export function fileName(type: ReportType, plan: Plan, mimeType: MimeType, reportUid: string): string {
  const { period, word } = plan
  const middle = period ? (period.from === period.to ? period.from : `${period.from}-${period.to}`) : (word ?? 'now')
  return `${type}_${plain(middle)}_${reportUid}.${EXTENSIONS[mimeType]}`
}

/**
 * The key under which the file is stored. It contains the digest, so two attempts with different bytes never write to
 * the same key.
 */
export function storageKey(name: string, sha256: string): string {
  const dot = name.lastIndexOf('.')
  return `${name.slice(0, dot)}.${sha256.slice(0, 12)}${name.slice(dot)}`
}

const KEY = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,250}$/

/** Whether the key is a plain name, without slashes and `..`. No other key reaches a file system. */
export function isKey(key: string): boolean {
  return KEY.test(key) && !key.includes('..')
}

const UUID = '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'
const OURS = new RegExp(`^([A-Z_]+_[A-Za-z0-9-]{0,64}_${UUID}\\.[0-9a-f]{12}\\.(pdf|csv|txt)|part_${UUID})$`)

/** Whether this product wrote the file, completely or in part; false for a foreign file in the same place. */
export function isOurs(key: string): boolean {
  return OURS.test(key)
}

function plain(word: string): string {
  return word.replace(/[^A-Za-z0-9-]/g, '-').slice(0, 64)
}
