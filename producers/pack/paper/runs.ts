// The files of a pack's batches, how each batch was run, and how it compares with its dry run.
import type { Pack, PackedBatch } from '../pack.ts'
import { grouped, type PaperSheet } from './sheet.ts'
import { commandOf, operatorOf, pgpKeysOf, profileOf, signerOf, time } from './text.ts'

export function drawFiles(page: PaperSheet, { batches, exceptions, total }: Pack): void {
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

export function drawRuns(page: PaperSheet, { batches }: Pack): void {
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

export function drawDryRuns(page: PaperSheet, { batches }: Pack): void {
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
