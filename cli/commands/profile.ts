// `tokenmill profile list|show|check`: shows how providers write their files, and how a profile reads a file.
import { readFile } from 'node:fs/promises'
import { FileError } from '../../producers/rows/file-error.ts'
import { type Preview, sentenceOf } from '../../producers/rows/outcome/preview.ts'
import { BUILT_IN } from '../../producers/rows/profile/built-in.ts'
import { type Profile, parseProfile } from '../../producers/rows/profile/profile.ts'
import { validateSource } from '../../producers/rows/source.ts'
import { checkRows } from '../../producers/rows/spreadsheet/check-rows.ts'
import { type FileCount, sentencesOf } from '../../producers/rows/spreadsheet/column-count.ts'
import { editedText } from '../../src/edited-text.ts'
import type { JsonOption } from '../command.ts'
import { decryption } from '../open/encrypted-file.ts'
import { print, type Terminal, table } from '../terminal.ts'

interface CheckOptions extends JsonOption {
  decryptKey?: string
  verifyKey?: string
}

/** A built-in profile by its name, or the profile in a file. */
export async function profileOf(from: string): Promise<Profile> {
  const known = Object.hasOwn(BUILT_IN, from) ? BUILT_IN[from as keyof typeof BUILT_IN] : undefined
  if (known) return known
  const bytes = await readFile(from).catch(() => {
    const names = Object.keys(BUILT_IN).join(', ')
    throw new FileError('usage', `There is no profile ${from}, and no such file.`, `Give a file, or one of: ${names}.`)
  })
  const text = editedText(bytes, (wrong, next) => new FileError('usage', `${from} ${wrong}.`, next))
  return parseProfile(from, text)
}

export async function list(terminal: Terminal, options: JsonOption): Promise<void> {
  const rows = Object.values(BUILT_IN).map(profile => ({
    name: profile.name,
    title: profile.title,
    return: profile.return !== undefined,
  }))
  const text = table(
    ['name', '--return', 'what it reads'],
    rows.map(row => [row.name, row.return ? 'yes' : 'no', row.title]),
  )
  print(terminal, options, rows, text)
}

export async function show(terminal: Terminal, name: string): Promise<void> {
  print(terminal, { json: true }, await profileOf(name), '')
}

export async function check(
  terminal: Terminal,
  name: string,
  file: string | undefined,
  options: CheckOptions,
): Promise<void> {
  const profile = await profileOf(name)
  const { rows, count } = file === undefined ? NOTHING_READ : await readAll(terminal, profile, file, options)
  const about = [`${profile.name}: ${profile.title}`, ...rows.map(sentenceOf)]
  const lines = [...about, ...(count ? sentencesOf(count) : [])]
  print(terminal, options, { name: profile.name, title: profile.title, rows, count }, lines)
}

interface Checked {
  rows: readonly Preview[]
  count: FileCount | undefined
}
const NOTHING_READ: Checked = { rows: [], count: undefined }

/** Reads the whole file, because what is wrong with a column shows only there. */
function readAll(terminal: Terminal, profile: Profile, file: string, options: CheckOptions): Promise<Checked> {
  const source = { path: file, ...decryption(terminal, options) }
  return validateSource(source, bytes => checkRows(bytes, profile)).then(({ checked }) => checked)
}
