// Reads the content of a PDF of ours.
import { inflateSync } from 'node:zlib'

/** Its content streams, one after the other. */
export function pdfContent(pdf: Buffer): string {
  const text = pdf.toString('latin1')
  const streams = [...text.matchAll(/FlateDecode[\s\S]*?stream\r?\n/g)].map(({ index, 0: found }) => {
    const start = index + found.length
    return inflateSync(pdf.subarray(start, pdf.indexOf('endstream', start))).toString('latin1')
  })
  return streams.join('\n')
}

/** The strings that it draws, as WinAnsi, one a line. */
export function pdfWords(pdf: Buffer): string {
  const drawn = pdfContent(pdf).matchAll(/\[([^\]]*)\] TJ/g)
  return [...drawn]
    .map(([, parts = '']) =>
      [...parts.matchAll(/<([0-9a-f]*)>/g)].map(([, hex = '']) => Buffer.from(hex, 'hex').toString('latin1')).join(''),
    )
    .join('\n')
}
