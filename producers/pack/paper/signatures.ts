// Where both sides sign: the boxes on paper, and the counterparty's OpenPGP signature that was checked.

import { INK, setText } from '../../../src/report/pdf/page.ts'
import type { Countersignature } from '../countersignature.ts'
import type { PaperSheet } from './sheet.ts'
import { time } from './text.ts'

export function drawCountersignature(page: PaperSheet, record: Countersignature): void {
  const { counterparty, signed_at: signedAt, checked_at: checkedAt, checked_by: checkedBy } = record
  page.title('Signature of the counterparty')
  page.say('The counterparty signed the JSON of this pack with OpenPGP; the signature was checked and holds.')
  page.table(
    [
      { label: 'What', width: 16 },
      { label: 'Value', width: 84 },
    ],
    [
      ['Key', counterparty.fingerprint],
      ['Named', namesOf(counterparty.user_ids)],
      ['Signed (UTC)', time(signedAt)],
      ['Checked (UTC)', `${time(checkedAt)}, by ${checkedBy.client_id}, ${checkedBy.os_user}`],
    ],
  )
}

const NAMES_MAX = 3
const NAME_MAX = 128

/** A key may bear any number of names of any length, and a row of a table must fit on a page. */
function namesOf(userIds: readonly string[]): string {
  const shown = userIds.slice(0, NAMES_MAX).map(name => name.replace(/\s+/g, ' ').slice(0, NAME_MAX))
  const more = userIds.length - shown.length
  return `${shown.join(', ')}${more > 0 ? `, ${more} more` : ''}`
}

const LINES = ['Name', 'Function', 'Place, date', 'Signature'] as const
const SIDES = ['For the sender of the cards', 'For the receiver of the cards'] as const
const BOX = 152

/** Each side signs for the pack with this digest, and for how it stands. */
export function drawSignatures(
  page: PaperSheet,
  { sha256, points }: { sha256: string; points: readonly string[] },
): void {
  const said = [`Both sides have read the pack with the SHA-256 ${sha256}.`, ...points]
  const boxes = 20 + said.length * 12
  page.whole(boxes + BOX, (doc, { x, y, width }) => {
    setText(doc, 'Signatures', { x, y, width }, { size: 11, bold: true, color: INK.dark })
    for (const [index, text] of said.entries()) setText(doc, text, { x, y: y + 16 + index * 12, width }, { size: 8.5 })
    const gap = 12
    const wide = (width - gap) / SIDES.length
    for (const [index, side] of SIDES.entries())
      box(doc, { x: x + index * (wide + gap), y: y + boxes, width: wide }, side)
  })
}

function box(doc: PDFKit.PDFDocument, { x, y, width }: { x: number; y: number; width: number }, side: string): void {
  doc
    .rect(x, y, width, BOX - 4)
    .lineWidth(0.8)
    .stroke(INK.dark)
  setText(doc, side, { x: x + 8, y: y + 8, width: width - 16 }, { size: 9, bold: true })
  for (const [index, name] of LINES.entries()) {
    const at = y + 44 + index * 30
    setText(doc, name, { x: x + 8, y: at - 7, width: 60 }, { size: 7.5, color: INK.soft })
    doc
      .moveTo(x + 70, at)
      .lineTo(x + width - 8, at)
      .lineWidth(0.5)
      .stroke(INK.soft)
  }
}
