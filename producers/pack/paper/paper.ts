// The sign-off pack as a PDF that two people can read and sign. Everything in it is in the pack; the digest of the pack is
// on each page and in the document's information.
import { createHash } from 'node:crypto'
import { drawFooters, drawHeading, drawParagraph, openDocument } from '../../../src/report/pdf/document.ts'
import { sheetOf } from '../../../src/report/pdf/page.ts'
import { type Countersignature, countersignatureText } from '../countersignature.ts'
import type { Pack } from '../pack.ts'
import { drawCards, drawOwners } from './counts.ts'
import { drawExceptions } from './decided.ts'
import { digestsText } from './digests.ts'
import { drawDryRuns, drawFiles, drawRuns } from './runs.ts'
import { openSheet, type PaperSheet } from './sheet.ts'
import { drawCountersignature, drawSignatures } from './signatures.ts'
import { drawTotal, openPoints } from './standing.ts'
import { time } from './text.ts'

export interface PaperParts {
  pack: Pack
  /** The digest of the JSON, lower-case hex. */
  sha256: string
  countersignature?: Countersignature | undefined
}

export async function paperOf({ pack, sha256, countersignature }: PaperParts): Promise<Buffer> {
  const sheet = sheetOf({ landscape: false })
  const subtitle = nameOf(pack)
  const subject = digestsText({ json: sha256, countersignature: countersignature && digestOf(countersignature) })
  const doc = openDocument(sheet, { title: `Sign-off pack, ${subtitle}`, subject, at: Date.parse(pack.made_at) })
  doc.addPage()
  const { client_id: client, os_user: user } = pack.made_by
  const facts = [
    ['Made (UTC)', time(pack.made_at)],
    ['Made by', `${client}, ${user}`],
    ['Signed by key', pack.signer.thumbprint],
  ] as const
  const y = drawHeading(doc, { title: 'Sign-off pack', subtitle, facts }, sheet)
  const from = drawParagraph(doc, `SHA-256 of the JSON: ${sha256}`, y, { sheet })
  draw(openSheet(doc, sheet, from + 6), pack, { sha256, countersignature })
  drawFooters(doc, `Pack ${sha256}`, sheet)
  doc.end()
  const pieces: Buffer[] = []
  for await (const piece of doc as AsyncIterable<Buffer>) pieces.push(piece)
  return Buffer.concat(pieces)
}

function digestOf(record: Countersignature): string {
  return createHash('sha256').update(countersignatureText(record)).digest('hex')
}

function nameOf({ migration, batches }: Pack): string {
  if (migration !== undefined) return `Migration ${migration}`
  return batches.length === 1 ? `Batch ${batches[0]?.manifest.batch_id}` : `${batches.length} batches`
}

function draw(page: PaperSheet, pack: Pack, { sha256, countersignature }: Omit<PaperParts, 'pack'>): void {
  const outcomes = Object.entries(pack.counts).map(([label, value]) => ({ label, value }))
  page.counts([{ label: 'ROWS', value: pack.rows }, ...outcomes.filter(({ value }) => value > 0)])
  for (const point of openPoints(pack)) page.say(point)
  drawTotal(page, pack)
  drawFiles(page, pack)
  drawRuns(page, pack)
  drawCards(page, pack)
  drawOwners(page, pack)
  drawDryRuns(page, pack)
  drawExceptions(page, pack)
  if (countersignature) drawCountersignature(page, countersignature)
  drawSignatures(page, { sha256, points: openPoints(pack) })
}
