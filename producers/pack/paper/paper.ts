// The sign-off pack as a PDF that two people can read and sign. Everything in it is in the pack; the digest of the pack is
// on each page and in the document's information.
import { createHash } from 'node:crypto'
import { drawFooters, drawHeading, drawParagraph, openDocument } from '../../../src/report/pdf/document.ts'
import { INK, setText, sheetOf } from '../../../src/report/pdf/page.ts'
import type { Manifest } from '../../migrate/manifest.ts'
import { type Countersignature, countersignatureText } from '../countersignature.ts'
import type { Exceptions } from '../exceptions.ts'
import type { Pack, PackedBatch } from '../pack.ts'
import { digestsText } from './digests.ts'
import { grouped, openSheet, type PaperSheet } from './sheet.ts'

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

/** What a person should know before signing. */
function openPoints(pack: Pack): string[] {
  return [decisionPoint(pack), totalPoint(pack), dryRunPoint(pack)]
}

function decisionPoint({ exceptions: { rows, decided, open } }: Pack): string {
  if (rows === 0) return 'Exceptions: none.'
  if (open === 0) return `Exceptions: ${grouped(rows)}, and each has a decision.`
  return `Exceptions: ${grouped(rows)}; ${grouped(decided)} have a decision, ${grouped(open)} are open.`
}

function totalPoint({ total }: Pack): string {
  if (!total) return 'Total of both sides: none; this pack was made without it.'
  if (!total.comparison) return 'Total of both sides: the vault’s is below; the counterparty’s was not given.'
  return `Total of both sides: ${total.comparison.equal ? 'equal' : 'DIFFERENT'}.`
}

function dryRunPoint({ batches }: Pack): string {
  const compared = batches.flatMap(({ dry_run: dryRun }) => dryRun ?? [])
  const differing = compared.reduce((sum, { differences }) => sum + differences.length, 0)
  if (compared.length === 0) return 'Dry run: none was found.'
  const some = compared.length < batches.length ? ` (${compared.length} of ${batches.length} batches had one)` : ''
  return `Dry run: ${differing === 0 ? 'every count as predicted' : `counts that differ: ${grouped(differing)}`}${some}.`
}

function drawTotal(page: PaperSheet, { total }: Pack): void {
  page.title('Total of both sides')
  if (!total) {
    page.say('This pack was made without a total (--no-total).')
    return
  }
  const { vault, theirs, comparison } = total
  const columns = [
    { label: 'Side', width: 17 },
    { label: 'Rows', width: 12, number: true },
    { label: 'SHA-256', width: 50, size: 7 },
  ]
  const brands = (of: Record<string, { rows: number; sha256: string }> | undefined, side: string) =>
    Object.entries(of ?? {}).map(([brand, sum]) => [`${side}, ${brand}`, sum.rows, sum.sha256] as const)
  page.table(columns, [
    ['Vault', vault.rows, vault.sha256],
    ...(theirs ? [['Counterparty', theirs.rows, theirs.sha256] as const] : []),
    ...brands(vault.by_brand, 'Vault'),
    ...brands(theirs?.by_brand, 'Counterparty'),
  ])
  page.say(`Computed ${time(vault.computed_at)} UTC over migration ${vault.migration}.`)
  if (vault.exceptions.rows > 0)
    page.say(`Rows that both sides leave out, which are exceptions: ${grouped(vault.exceptions.rows)}.`)
  if (comparison && !comparison.equal) page.say(differenceOf(comparison), true)
}

function differenceOf({ brands_differ: differ, brands_of_one_side: alone }: Comparison): string {
  const parts = [
    differ.length > 0 ? `These brands differ: ${differ.join(', ')}.` : 'No brand that both sides sum differs.',
    alone.length > 0 ? `Only one side has a sum of: ${alone.join(', ')}.` : '',
  ]
  return `The totals are not equal. ${parts.join(' ')}`.trim()
}

type Comparison = NonNullable<NonNullable<Pack['total']>['comparison']>

function drawFiles(page: PaperSheet, { batches, exceptions, total }: Pack): void {
  page.title('Files')
  const columns = [
    { label: 'What', width: 10 },
    { label: 'Name', width: 26 },
    { label: 'Bytes', width: 13, number: true },
    { label: 'SHA-256', width: 46, size: 6.5 },
  ]
  const rowsOf = ({ file, manifest, dry_run: dryRun }: PackedBatch) => [
    { what: 'manifest', file },
    { what: 'input', file: manifest.input },
    { what: 'results', file: manifest.results },
    { what: 'rejects', file: manifest.rejects },
    { what: 'return', file: manifest.return },
    { what: 'dry run', file: dryRun?.manifest },
  ]
  const all = [
    ...batches.flatMap(rowsOf),
    { what: 'decisions', file: exceptions.decisions },
    { what: 'total', file: total?.theirs?.file },
  ]
  page.table(
    columns,
    all.flatMap(({ what, file }) => (file ? [[what, file.name, file.bytes, file.sha256]] : [])),
  )
}

function drawRuns(page: PaperSheet, { batches }: Pack): void {
  for (const batch of batches) {
    const { manifest } = batch
    page.title(batches.length === 1 ? 'How it was run' : `How ${manifest.batch_id} was run`)
    page.table(
      [
        { label: 'Batch', width: 16 },
        { label: manifest.batch_id, width: 84 },
      ],
      [
        ['Rows', grouped(manifest.rows)],
        ['Began, ended (UTC)', `${time(manifest.started_at)}, ${time(manifest.ended_at)}`],
        ['Command', commandOf(manifest)],
        ['Operator', operatorOf(manifest)],
        ['Profile', profileOf(manifest)],
        ['OpenPGP keys', pgpKeysOf(manifest)],
        ['Signing key', signerOf(batch)],
      ],
    )
  }
}

function drawDryRuns(page: PaperSheet, { batches }: Pack): void {
  page.title('Dry run and real run')
  const columns = [
    { label: 'Count', width: 50 },
    { label: 'Dry run', width: 15, number: true },
    { label: 'Real run', width: 15, number: true },
  ]
  for (const { manifest, dry_run: dryRun } of batches) {
    const name = batches.length === 1 ? '' : `${manifest.batch_id}: `
    if (!dryRun) {
      page.say(`${name}No dry run was found.`)
      continue
    }
    const options = dryRun.same_options ? '' : ' It was run with other options.'
    const { differences } = dryRun
    const said = differences.length === 0 ? 'Every count is as the dry run predicted.' : 'These counts differ:'
    page.say(`${name}Dry run of ${time(dryRun.ended_at)} UTC.${options} ${said}`)
    if (differences.length > 0)
      page.table(
        columns,
        differences.map(({ of, name: count, dry_run: before, run }) => [
          of === 'rows' ? of : `${of}: ${count}`,
          before,
          run,
        ]),
      )
  }
}

function drawCards(page: PaperSheet, { cells }: Pack): void {
  page.title('Cards by brand, expiry year, outcome and reason')
  page.table(
    [
      { label: 'Brand', width: 20 },
      { label: 'Expiry year', width: 12 },
      { label: 'Outcome', width: 14 },
      { label: 'Reason', width: 26 },
      { label: 'Rows', width: 16, number: true },
    ],
    cells.map(({ brand, expiry_year: year, outcome, reason, rows }) => [
      brand ?? 'not known',
      year ?? 'not known',
      outcome,
      reason ?? '',
      rows,
    ]),
  )
}

const TRAITS: Record<string, string> = {
  nti: 'with a network transaction id',
  tlid: 'with a transaction link id',
  tlid_unusual: 'with a transaction link id of unusual form',
}

function drawOwners(page: PaperSheet, { references, on_file: onFile, repairs }: Pack): void {
  page.title('Owners, network ids and repairs')
  const columns = [
    { label: 'What', width: 70 },
    { label: 'Rows', width: 16, number: true },
  ]
  const owners = Object.entries(references ?? {}).map(([name, n]) => [`owner ${name}`, n] as const)
  const traits = Object.entries(onFile ?? {}).map(([name, n]) => [TRAITS[name] ?? name, n] as const)
  const repaired = Object.entries(repairs).map(([name, n]) => [`repaired: ${name}`, n] as const)
  const all = [...owners, ...traits, ...repaired]
  if (all.length > 0) page.table(columns, all)
  if (owners.length === 0) page.say('Owners: none, or the profile names none.')
  if (repaired.length === 0) page.say('Repairs: none.')
}

/** The most rows of each table: people don't read more, and the JSON and the results have them. */
const SHOWN_MAX = 200

const ROW = [
  { label: 'Batch', width: 18, size: 6.5 },
  { label: 'Line, item', width: 11, size: 7 },
  { label: 'Reference', width: 15, size: 7 },
  { label: 'Ended', width: 12, size: 7 },
  { label: 'Reason', width: 17, size: 7 },
]

function drawExceptions(page: PaperSheet, { exceptions, batches }: Pack): void {
  const shownOf = <Cell>(cells: readonly Cell[]) => (batches.length === 1 ? cells.slice(1) : cells)
  page.title('Exceptions and decisions')
  const {
    rows,
    open,
    decided,
    by_decision: byDecision,
    listed_open: openRows,
    listed_decided: decidedRows,
  } = exceptions
  if (rows === 0) {
    page.say('There is no exception.')
    unusedOf(page, exceptions)
    return
  }
  if (byDecision.length > 0)
    page.table(
      [
        { label: 'Decision', width: 70 },
        { label: 'Rows', width: 16, number: true },
      ],
      byDecision.map(one => [one.decision, one.rows]),
    )
  if (open > 0) {
    page.say(`Open: ${grouped(open)} without a decision.`, true)
    page.table(
      shownOf(ROW),
      openRows.slice(0, SHOWN_MAX).map(row => shownOf(cellsOf(row))),
    )
    more(page, open - Math.min(openRows.length, SHOWN_MAX))
  }
  if (decided > 0) {
    page.say(`Decided: ${grouped(decided)}.`, true)
    page.table(
      shownOf([...ROW, { label: 'Decision', width: 30, size: 7 }]),
      decidedRows.slice(0, SHOWN_MAX).map(row => shownOf([...cellsOf(row), decisionOf(row)])),
    )
    more(page, decided - Math.min(decidedRows.length, SHOWN_MAX))
  }
  unusedOf(page, exceptions)
}

type Row = Exceptions['listed_open'][number]

/** The first cell is the batch; a line isn't an amount, so it is a text. */
function cellsOf({ batch_id: batch, line, item, reference, kind, reason }: Row): string[] {
  return [
    batch,
    item === null ? String(line) : `${line}, ${item}`,
    reference ?? '',
    kind === 'total' ? 'left out of the total' : kind,
    reason ?? '',
  ]
}

function decisionOf({ decision, by, on, note }: Exceptions['listed_decided'][number]): string {
  return `${decision}; ${by}, ${on}${note === undefined ? '' : `. ${note}`}`
}

function more(page: PaperSheet, n: number): void {
  if (n > 0) page.say(`${grouped(n)} more.`)
}

function unusedOf(page: PaperSheet, { unused_decisions: { count, lines } }: Exceptions): void {
  if (count === 0) return
  const named = lines.slice(0, 20).join(', ')
  page.say(`Decisions about no exception: ${grouped(count)}, in line ${named}${count > 20 ? ', …' : ''} of the file.`)
}

function drawCountersignature(page: PaperSheet, record: Countersignature): void {
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
function drawSignatures(page: PaperSheet, { sha256, points }: { sha256: string; points: readonly string[] }): void {
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

/** `2030-01-31 12:00:00` */
const time = (iso: string): string => iso.slice(0, 19).replace('T', ' ')

const LONG = 1_500

function commandOf({ command }: Manifest): string {
  if (!command) return 'none: a program began the run'
  const text = ['tokenmill', ...command.map(quoted)].join(' ')
  return text.length > LONG ? `${text.slice(0, LONG)}…` : text
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

function operatorOf({ operator }: Manifest): string {
  const { client_id: client, os_user: user } = operator
  return user === undefined ? `client ${client}` : `client ${client}, user ${user}`
}

function profileOf({ options }: Manifest): string {
  const { profile, profile_sha256: digest } = options
  if (typeof profile !== 'string') return 'none'
  return typeof digest === 'string' ? `${profile}, SHA-256 ${digest}` : profile
}

function pgpKeysOf({ pgp_keys: keys }: Manifest): string {
  if (keys === null) return 'none: the input was not encrypted'
  const { decryption, verification } = keys
  const signed = verification === undefined ? 'no signature was asked for' : `signed by ${verification}`
  return `opened by ${decryption}; ${signed}`
}

function signerOf({ signer: { kid, thumbprint } }: PackedBatch): string {
  return kid === thumbprint ? thumbprint : `${thumbprint} (kid ${kid})`
}
