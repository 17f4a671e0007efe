// Reads the records of JSON by a profile: one object per line, or the records within the elements of an array. Each
// element is parsed alone, and strictly: no name twice within an object.
import { isUtf8 } from 'node:buffer'
import type { Reason } from '../../../../src/errors.ts'
import { readObject } from '../../../../src/job/envelope/strict-json.ts'
import { FileError } from '../../file-error.ts'
import { shown } from '../../layout.ts'
import { readLines, withoutByteOrderMark } from '../../lines.ts'
import { refusePowers } from '../../ndjson.ts'
import type { Json } from '../format.ts'
import { type FieldUse, type RawRecord, unreadable } from '../records.ts'
import { readElements } from './elements.ts'
import type { Element } from './open-element.ts'
import { isObject, type Lineage, type Lookups, lookupsOf, walk } from './path.ts'

export const RECORDS_MAX = 10_000
/** This many records are yielded at a time, however many an element holds. */
const TOGETHER = 500
const LF = 10
const CR = 13

/** Reads a file with one object per line. */
export async function* readObjects(
  bytes: AsyncIterable<Buffer>,
  uses: readonly FieldUse[],
): AsyncGenerator<RawRecord[]> {
  const lookups = lookupsOf(uses)
  let line = 0
  const readLine = (part: Buffer): RawRecord[] => {
    line += 1
    const end = part.length - (part[part.length - 1] === CR ? 1 : 0)
    if (end === 0) return []
    const content = part.subarray(0, end)
    const object = readObject(content)
    if (object === undefined) return [unreadable(line, wrongWith(content))]
    refusePowers(object, () => content.toString('latin1'))
    return [{ ...at(line, undefined, undefined), values: lookups.find([object]) }]
  }
  for await (const { bytes: block, tooLong } of readLines(bytes, () => line)) {
    const records: RawRecord[] = []
    if (tooLong) records.push(unreadable(++line, 'row_too_long'))
    for (let start = 0; start < block.length; ) {
      const next = block.indexOf(LF, start) + 1 || block.length + 1
      records.push(...readLine(block.subarray(start, next - 1)))
      start = next
    }
    yield records
  }
  lookups.end()
}

/** Reads the records within the elements of an array. An element without records is returned with `childless`. */
export async function* readNested(
  bytes: AsyncIterable<Buffer>,
  format: Json,
  uses: readonly FieldUse[],
): AsyncGenerator<RawRecord[]> {
  const lookups = lookupsOf(uses)
  const [outer = '', ...inner] = format.records.split('[]').slice(0, -1)
  const levels = inner.map(path => ({ path: path.slice(1).split('.'), isAsked: false, isMet: false }))
  let number = 0
  for await (const elements of readElements(withoutByteOrderMark(bytes), outer === '' ? [] : outer.split('.'))) {
    let records: RawRecord[] = []
    for (const element of elements) {
      number += 1
      for (const record of recordsOf(element, number, levels, lookups)) {
        records.push(record)
        if (records.length < TOGETHER) continue
        yield records
        records = []
      }
    }
    yield records
  }
  const unmet = levels.find(({ isAsked, isMet }) => isAsked && !isMet)
  if (unmet) throw noRecords(unmet)
  lookups.end()
}

/** The array below another one. It is asked for once an object is there that may hold it, and met once one does. */
interface Level {
  path: readonly string[]
  isAsked: boolean
  isMet: boolean
}
type Levels = readonly Level[]

/** JSON has no header, so a misspelt path shows only at the end. */
function noRecords({ path }: Level): FileError {
  const said = `No element of the file has ${shown(path.join('.'))}, where format.records has the records.`
  return new FileError('usage', said, 'Correct the path of the profile.')
}

function* recordsOf({ line, bytes }: Element, number: number, levels: Levels, lookups: Lookups): Generator<RawRecord> {
  const object = bytes && readObject(bytes)
  if (object) refusePowers(object, () => bytes.toString('latin1'))
  const leaves = object && leavesOf([object], levels)
  if (leaves === undefined) {
    const reason = bytes === undefined || object !== undefined ? 'element_too_large' : wrongWith(bytes)
    return yield rejected(line, number, undefined, reason)
  }
  for (const [index, { lineage, wrong }] of leaves.entries()) {
    // If the elements are the records themselves, a record has no number within an element.
    const item = levels.length === 0 || lineage[0] === undefined ? undefined : index + 1
    if (wrong) yield rejected(line, number, index + 1, 'row_json')
    else {
      const childless = lineage[0] === undefined
      yield { ...at(line, number, item), values: lookups.find(lineage), childless }
    }
  }
}

interface Leaf {
  /** The record and its parents. The record is undefined if the element has none. */
  lineage: Lineage
  /** The value in the record's place isn't an object. */
  wrong: boolean
}

/** The records below an object; undefined if there are too many. */
function leavesOf(lineage: Lineage, levels: Levels): Leaf[] | undefined {
  let leaves: Leaf[] = [{ lineage, wrong: false }]
  for (const level of levels) {
    const next: Leaf[] = []
    for (const leaf of leaves) {
      for (const child of childrenOf(leaf, level)) next.push(child)
      if (next.length > RECORDS_MAX) return undefined
    }
    leaves = next
  }
  return leaves
}

function childrenOf(leaf: Leaf, level: Level): Leaf[] {
  const { path } = level
  const [nearest] = leaf.lineage
  if (leaf.wrong) return [leaf]
  const none = { lineage: [undefined, ...leaf.lineage], wrong: false }
  if (nearest === undefined) return [none]
  const value = Object.hasOwn(nearest, path.join('.')) ? nearest[path.join('.')] : walk(nearest, path)
  level.isAsked = true
  level.isMet ||= value !== undefined
  if (value === undefined || value === null) return [none]
  if (!Array.isArray(value)) return [{ lineage: leaf.lineage, wrong: true }]
  if (value.length === 0) return [none]
  return value.map(child =>
    isObject(child) ? { lineage: [child, ...leaf.lineage], wrong: false } : { lineage: leaf.lineage, wrong: true },
  )
}

function at(line: number, element: number | undefined, item: number | undefined): RawRecord {
  return { line, element, item, values: [], rejected: undefined, childless: false }
}

function rejected(line: number, element: number, item: number | undefined, reason: Reason): RawRecord {
  return { ...at(line, element, item), rejected: reason }
}

function wrongWith(bytes: Buffer): Reason {
  if (bytes.includes(0)) return 'row_nul'
  return isUtf8(bytes) ? 'row_json' : 'row_utf8'
}
