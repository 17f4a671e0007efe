// A PDF document in tokenmill's style: opens it, and draws its heading, its paragraphs and the footer of each page. The
// same content gives the same bytes.
import PDFDocument from 'pdfkit'
import { FONT, INK, printable, type Sheet, setText } from './page.ts'

export interface DocumentOptions {
  title: string
  subject?: string
  /** The document's date, ms since the epoch. */
  at: number
}

export function openDocument(sheet: Sheet, { title, subject, at }: DocumentOptions): PDFKit.PDFDocument {
  return new PDFDocument({
    size: [sheet.width, sheet.height],
    // Text is placed at coordinates; with a margin the library would break pages by itself.
    margin: 0,
    autoFirstPage: false,
    bufferPages: true,
    compress: true,
    lang: 'en',
    info: {
      Title: printable(title),
      ...(subject !== undefined && { Subject: printable(subject) }),
      Author: 'tokenmill',
      Creator: 'tokenmill',
      Producer: 'tokenmill',
      CreationDate: new Date(at),
    },
  })
}

interface Heading {
  title: string
  subtitle: string
  /** Names and values at the right. */
  facts: readonly (readonly [name: string, value: string])[]
}

/** Draws the top of the first page. Returns the y coordinate below it. */
export function drawHeading(doc: PDFKit.PDFDocument, { title, subtitle, facts }: Heading, sheet: Sheet): number {
  const { left, right, top } = sheet
  const half = (right - left) / 2
  setText(doc, title, { x: left, y: top, width: half }, { size: 18, bold: true, color: INK.dark })
  setText(doc, subtitle, { x: left, y: top + 24, width: half }, { size: 11, color: INK.soft })
  for (const [index, [name, value]] of facts.entries()) {
    const y = top + 3 + index * 13
    setText(doc, name, { x: right - 250, y, width: 70 }, { size: 8, color: INK.soft })
    setText(doc, value, { x: right - 178, y, width: 178 }, { size: 8, align: 'right' })
  }
  doc
    .moveTo(left, top + 46)
    .lineTo(right, top + 46)
    .lineWidth(1.2)
    .stroke(INK.dark)
  return top + 54
}

/** Draws a text over several lines. Returns the y coordinate below it. */
export function drawParagraph(
  doc: PDFKit.PDFDocument,
  text: string,
  y: number,
  { sheet: { left, right }, color = INK.soft, bold = false }: { sheet: Sheet; color?: string; bold?: boolean },
): number {
  doc
    .font(bold ? FONT.bold : FONT.plain)
    .fontSize(8.5)
    .fillColor(color)
  doc.text(printable(text), left, y, { width: right - left })
  return doc.y + 1
}

/** Draws `text` and `Page n of m` at the foot of every page. */
export function drawFooters(doc: PDFKit.PDFDocument, text: string, { left, right, bottom }: Sheet): void {
  const { start, count } = doc.bufferedPageRange()
  for (let page = start; page < start + count; page += 1) {
    doc.switchToPage(page)
    doc
      .moveTo(left, bottom + 8)
      .lineTo(right, bottom + 8)
      .lineWidth(0.5)
      .stroke(INK.rule)
    const y = bottom + 13
    setText(doc, text, { x: left, y, width: right - left - 110 }, { size: 7, color: INK.soft })
    const number = `Page ${page + 1} of ${count}`
    setText(doc, number, { x: right - 100, y, width: 100 }, { size: 7, color: INK.soft, align: 'right' })
  }
}
