// Reads made files by profiles, and shows of each row what matters: the card that workers would get, or why there is none.
import { readFileSync } from 'node:fs'
import type { KeptField } from '../../../../producers/rows/kept.ts'
import { BUILT_IN } from '../../../../producers/rows/profile/built-in.ts'
import { type Profile, parseProfile } from '../../../../producers/rows/profile/profile.ts'
import { type ProfiledRow, profiledLayout, readProfiled } from '../../../../producers/rows/profile/read.ts'
import { buildRow } from '../../../../producers/rows/record.ts'
import { OnFileRecord } from '../../../../src/job/on-file.ts'
import { collect, inPieces } from '../bytes.ts'

export const PAN = '4111111111111111'

/** A profile of delimited text with the columns id, number, month, year and name, and what a test adds. */
export const profile = (changes: Record<string, unknown> = {}, columns: Record<string, unknown> = {}): Profile =>
  parseProfile(
    'test.json',
    JSON.stringify({
      profile: 1,
      name: 'test',
      title: 'A test',
      format: { type: 'delimited' },
      ...changes,
      columns: {
        reference: '{id}',
        card_number: { from: 'number' },
        expiry: { month: 'month', year: 'year' },
        cardholder_name: { from: ['name'] },
        ...columns,
      },
    }),
  )

export const HEADER = 'id,number,month,year,name'

export function profileNamed(name: string): Profile {
  if (Object.hasOwn(BUILT_IN, name)) return BUILT_IN[name as keyof typeof BUILT_IN]
  const path = new URL(`../../../../docs/profiles/${name}.json`, import.meta.url)
  return parseProfile(`${name}.json`, readFileSync(path, 'utf8'))
}

export interface Reading {
  echo?: readonly string[]
  sizes?: readonly number[]
  keep?: readonly KeptField[]
}

export function readRaw(
  by: Profile,
  bytes: Buffer | string,
  { echo = [], sizes, keep }: Reading = {},
): Promise<ProfiledRow[]> {
  return collect(readProfiled(inPieces(bytes, sizes), by, { recordKind: 'token-create', echo, keep }))
}

/** `4111111111111111 5/2030 ADA`, `skipped no_card`, `rejected expiry_format`; with line, place, reference and repairs. */
export async function read(by: Profile, bytes: Buffer | string, reading: Reading = {}): Promise<string[]> {
  const layout = profiledLayout(by, { recordKind: 'token-create', ...reading })
  const rows = await readRaw(by, bytes, reading)
  return rows.map(row => {
    const place = [row.line, row.element, row.item].filter(part => part !== undefined).join('.')
    const repairs = row.repairs.length === 0 ? '' : ` [${row.repairs.join(' ')}]`
    const why = row.skipped ? `skipped ${row.skipped}` : row.rejected && `rejected ${row.rejected}`
    if (why) return `${place} ${row.reference ?? '?'}: ${why}${repairs}`
    const built = buildRow(row.line, row.cells, layout)
    const record = JSON.parse(built.json)
    const { cardNumber, expiryMonth = '', expiryYear = '', cardholderName } = record.request?.card ?? {}
    const card = `${cardNumber} ${expiryMonth}/${expiryYear}${cardholderName === undefined ? '' : ` ${cardholderName}`}`
    const echoed = built.echo === undefined ? '' : ` <${built.echo.join('|')}>`
    const outcome = built.rejected === undefined ? card : `rejected ${built.rejected}`
    return `${place} ${built.reference ?? '?'}: ${outcome}${repairs}${echoed}`
  })
}

/** What each row that is sent says of its owner; undefined for a row that says nothing. */
export async function readOwners(by: Profile, bytes: Buffer | string): Promise<(OnFileRecord | undefined)[]> {
  const layout = profiledLayout(by, { recordKind: 'token-create' })
  const rows = await readRaw(by, bytes)
  return rows.flatMap(({ line, cells, rejected, skipped, onFile }) => {
    if (rejected !== undefined || skipped !== undefined) return []
    const { request } = JSON.parse(buildRow(line, cells, layout, onFile?.json).json)
    return [OnFileRecord.optional().parse(request.on_file)]
  })
}

export const failure = (by: Profile, bytes: Buffer | string, reading: Reading = {}): Promise<string> =>
  readRaw(by, bytes, reading).then(
    () => 'no error',
    error => String((error as Error).message),
  )
