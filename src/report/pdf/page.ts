// The page of a report: A4, the standard fonts of every PDF reader, one dark colour and two greys. It sets a line of
// text in a box: the size shrinks to 80 %, then the text is cut with "…". A number shrinks until it fits and is never
// cut. Other files decide what goes where.
import type { Definition } from '../definition.ts'

export const INK = {
  text: '#1b2530',
  soft: '#5b6b7a',
  dark: '#1d3b53',
  rule: '#c9d2da',
  zebra: '#f4f6f8',
  sum: '#e6ecf1',
}
export const FONT = { plain: 'Helvetica', bold: 'Helvetica-Bold' } as const

export interface Sheet {
  width: number
  height: number
  left: number
  right: number
  top: number
  /** The lower edge of the table; the footer is below it. */
  bottom: number
}

const A4 = { short: 595.28, long: 841.89 } as const
const MARGIN = 36
const FOOTER = 26

export function sheetOf({ landscape }: Pick<Definition, 'landscape'>): Sheet {
  const width = landscape ? A4.long : A4.short
  const height = landscape ? A4.short : A4.long
  return { width, height, left: MARGIN, right: width - MARGIN, top: MARGIN, bottom: height - MARGIN - FOOTER }
}

export interface Box {
  x: number
  y: number
  width: number
}

interface Setting {
  size: number
  bold?: boolean
  color?: string
  align?: 'left' | 'right'
  /** The text is never cut: its size shrinks until it fits. Set for numbers. */
  whole?: boolean
}

const SHRINK_MIN = 0.8

/** Sets one line of text within its box. */
export function setText(doc: PDFKit.PDFDocument, text: string, { x, y, width }: Box, setting: Setting): void {
  const { bold = false, color = INK.text, align = 'left', whole = false } = setting
  doc.font(bold ? FONT.bold : FONT.plain).fillColor(color)
  let shown = printable(text)
  const natural = doc.fontSize(setting.size).widthOfString(shown)
  const least = whole ? 0 : SHRINK_MIN
  const size = setting.size * Math.min(1, Math.max(least, width / natural))
  doc.fontSize(size)
  if (!whole && doc.widthOfString(shown) > width) {
    while (shown.length > 1 && doc.widthOfString(`${shown}…`) > width) shown = shown.slice(0, -1)
    shown += '…'
  }
  const at = align === 'right' ? x + width - doc.widthOfString(shown) : x
  doc.text(shown, at, y + (setting.size - size) * 0.7, { lineBreak: false })
}

const STRANGE = /[^ -~\u00a0-\u00ff€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]/gu

/** The text with `?` for each character that the standard fonts lack; they hold Latin letters only. */
export function printable(text: string): string {
  return text.normalize('NFC').replace(STRANGE, '?')
}
