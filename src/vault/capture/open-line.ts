// Opens the keys of a line once each, and keeps them while the process runs and the line has them. A row that tokenmill
// didn't write is left out. Rows are read from the store elsewhere.
import { Fault, isRefusal, type Refusal } from '../../errors.ts'
import type { PrivateHalves } from '../private-half.ts'
import { type CaptureKeyRow, captureKeyText, isGranted, type MacOfRow } from '../ring/grants.ts'
import type { KeyRing } from '../ring/key-ring.ts'
import { type CaptureKey, type CaptureKeyRecord, openCaptureKey } from './capture-key.ts'
import type { Line, LineKey } from './line.ts'

type LineRow = Omit<CaptureKeyRecord, 'wrappedPrivate'> &
  Pick<CaptureKeyRow, 'number' | 'entityId' | 'state' | 'retiredAt'> &
  MacOfRow & {
    keyId: string
    /** Null once it is destroyed. */
    wrappedPrivate: Buffer | null
  }

interface LineOpener {
  halves: PrivateHalves
  ring: Pick<KeyRing, 'grantMacBy'>
  /** Called with each row without a right code. */
  onUngranted?: (key: { alias: string; number: number }) => void
}

export interface OpenedLine {
  entityId: string
  line: Line
  /** Why a private half of the line couldn't be opened; undefined if each was. */
  lacking: Fault | undefined
}

export type OpenLine = (alias: string, rows: readonly LineRow[]) => Promise<OpenedLine | undefined>

/**
 * Decrypts by a line. If none of its keys decrypts, it calls `again` to read the line, and tries the keys that are new: a key
 * may be in use before this process knows it. Throws `Fault('key_unavailable')` if a private half couldn't be opened: the
 * message may be for that one.
 */
export async function openByLine<T>(
  known: OpenedLine,
  again: () => Promise<OpenedLine | undefined>,
  open: (line: Line) => Promise<T | Refusal>,
): Promise<T | Refusal> {
  const opened = await open(known.line)
  if (!isUndecryptable(opened)) return opened
  const reread = await again()
  const isSame = reread?.entityId === known.entityId
  const added = isSame ? reread.line.filter(({ keyId }) => known.line.every(key => key.keyId !== keyId)) : []
  const anew = added.length > 0 ? await open(added) : opened
  const lacking = isSame ? reread.lacking : known.lacking
  if (lacking && isUndecryptable(anew)) throw lacking
  return anew
}

/** Whether no key of the line decrypted the message. */
export const isUndecryptable = (opened: unknown) =>
  isRefusal(opened) && (opened.reason === 'card_undecryptable' || opened.reason === 'block_undecryptable')

/** The result opens the line of an alias from its rows, newest first; undefined if none of them can decrypt. */
export function lineOpener({ halves, ring, onUngranted }: LineOpener): OpenLine {
  // Keys are told apart by number and public half, which the code of a row covers; it doesn't cover the row's id. In a restored
  // backup a number may be another key.
  const opened = new Map<string, ReadonlyMap<string, CaptureKey>>()

  return async (alias, rows) => {
    const before = opened.get(alias)
    const now = new Map<string, CaptureKey>()
    const line: LineKey[] = []
    let lacking: Fault | undefined
    let entityId: string | undefined
    for (const { wrappedPrivate, ...row } of rows) {
      if (wrappedPrivate === null) continue
      if (!isGranted(ring, captureKeyText(row), row)) {
        onUngranted?.(row)
        continue
      }
      const name = `${row.number} ${row.publicKey}`
      const key = before?.get(name) ?? (await openCaptureKey({ ...row, wrappedPrivate }, halves).catch(unavailable))
      if (key instanceof Fault) {
        lacking = key
        continue
      }
      now.set(name, key)
      line.push({ keyId: row.keyId, key })
      entityId ??= row.entityId
    }
    if (entityId === undefined && lacking) throw lacking
    if (entityId === undefined) {
      opened.delete(alias)
      return undefined
    }
    opened.set(alias, now)
    return { entityId, line, lacking }
  }
}

/** The fault, if only this key can't be opened; any other error is thrown. */
function unavailable(error: unknown): Fault {
  if (error instanceof Fault && error.code === 'key_unavailable') return error
  throw error
}
