// What each row of a file would change, in one byte per row, so that memory stays small for a file of any size.
import type { FileRow } from '../rows/outcome/result-row.ts'

/**
 * `unchanged`: the row changes nothing, but another row of the plan is about the same card or owner, and which of them
 * stands depends on both. `rejected`, `failed`: the outcome of the dry run.
 */
export const CHANGES = ['skipped', 'unchanged', 'added', 'changed', 'moved', 'rejected', 'failed'] as const
export type Change = (typeof CHANGES)[number]

const WORD = 0x07
const PLANNED = 0x80
const UNNAMED = 0x40
const ROOM = 65_536

export interface RowChanges {
  /** Adds the next row. */
  add(end: FileRow, isPlanned: boolean): void
  /** How many rows were added. */
  count(): number
  isPlanned(row: number): boolean
  plan(row: number): void
  changeOf(row: number): Change
  /** Whether the row's reference may be repeated. */
  isNamed(row: number): boolean
}

export function openChanges(): RowChanges {
  let room = new Uint8Array(ROOM)
  let rows = 0
  const at = (row: number) => room[row] ?? 0
  return {
    add(end, isPlanned) {
      if (rows === room.length) {
        const wider = new Uint8Array(room.length * 2)
        wider.set(room)
        room = wider
      }
      room[rows] =
        CHANGES.indexOf(changeOf(end)) | (isPlanned ? PLANNED : 0) | (end.reference === undefined ? UNNAMED : 0)
      rows += 1
    },
    count: () => rows,
    isPlanned: row => (at(row) & PLANNED) !== 0,
    plan(row) {
      room[row] = at(row) | PLANNED
    },
    changeOf: row => CHANGES[at(row) & WORD] ?? 'skipped',
    isNamed: row => (at(row) & UNNAMED) === 0,
  }
}

function changeOf(end: FileRow): Change {
  if (end.outcome === 'SKIPPED') return 'skipped'
  if (end.outcome === 'REJECTED') return 'rejected'
  if (end.outcome === 'FAILED' || end.outcome === 'CANCELLED') return 'failed'
  const { outcome, reference_outcome: claimed } = end
  if (claimed === 'MOVED') return 'moved'
  if (outcome === 'CREATED' || claimed === 'ADDED') return 'added'
  return outcome === 'UPDATED' || claimed === 'CHANGED' ? 'changed' : 'unchanged'
}

/** Whether a row, taken alone, changes neither its card's token nor its owner. */
export function changesNothing(end: FileRow): boolean {
  if (end.outcome === 'SKIPPED') return true
  const { outcome, changes, reference_outcome: claimed = 'UNCHANGED' } = end
  // A row that repeats a card of the file, or an owner whom a later line names, may leave what is stored as well.
  const isKept = outcome === 'UNCHANGED' || (outcome === 'DUPLICATE' && !changes)
  return isKept && (claimed === 'UNCHANGED' || claimed === 'OLDER')
}
