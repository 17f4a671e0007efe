import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Checkpoint } from '../../../producers/migrate/checkpoint.ts'
import { digestOf, openOutputFile } from '../../../producers/migrate/output-file.ts'
import type { OutputForm } from '../../../producers/migrate/output-files.ts'
import { startingPoint } from '../../../producers/migrate/starting-point.ts'
import { noFileCounts } from '../../../producers/rows/file-outcome.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tokenmill-start-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const form = (name: OutputForm['name'], shapeSha256?: string): OutputForm => ({
  name,
  header: `${name}\n`,
  shapeSha256,
  textOf: () => '',
})
const SHAPE = digestOf('a shape').sha256
const paths = () => ({
  results: join(folder, 'r.csv'),
  rejects: join(folder, 'rejects.csv'),
  return: join(folder, 'out', 'back.csv'),
  manifest: join(folder, 'm.json'),
})
const BEGAN = '2026-01-01T00:00:00.000Z'
const DAY_MS = 86_400_000
const at = (days = 6) => ({ paths: paths(), now: Date.parse(BEGAN) + days * DAY_MS })
const checkpoint = (more: Partial<Checkpoint> = {}): Checkpoint => ({
  v: 1,
  reasons: {},
  repairs: {},
  batch_id: 'b-1',
  options: {},
  next_chunk: 3,
  results: digestOf('results\n1\n'),
  counts: { ...noFileCounts(), CREATED: 3 },
  started_at: BEGAN,
  ...more,
})
const ofRejects = (text: string) => ({ name: 'rejects.csv', ...digestOf(text) })

it('a run goes on at the marks of the checkpoint, whichever of its files it no longer writes', async () => {
  const before = checkpoint({ rejects: ofRejects('rejects\n2\n') })
  const both = await startingPoint(before, [form('results'), form('rejects')], at())
  expect(both).toMatchObject({ before, beganAgainFor: [] })
  expect(both.files.map(({ at }) => at.bytes)).toEqual([10, 10])
  expect(await startingPoint(before, [form('results')], at())).toMatchObject({ before, beganAgainFor: [] })
})

it('begins all of its files again for one that the checkpoint does not name, or names otherwise', async () => {
  const before = checkpoint({ rejects: ofRejects('rejects\n2\n') })
  const forms = [form('results'), form('rejects'), form('return', SHAPE)]
  const start = await startingPoint(before, forms, at())
  expect(start).toMatchObject({ before: undefined, beganAgainFor: ['--return'] })
  expect(start.files.map(({ at }) => at)).toEqual([digestOf('results\n'), digestOf('rejects\n'), digestOf('')])
  const other = checkpoint({ rejects: { name: 'other.csv', ...digestOf('rejects\n') } })
  expect(await startingPoint(other, forms.slice(0, 2), at())).toMatchObject({ beganAgainFor: ['--rejects'] })
  // A run that had done nothing loses nothing.
  const begun = checkpoint({ next_chunk: 0 })
  expect(await startingPoint(begun, forms.slice(0, 2), at())).toMatchObject({ before: begun, beganAgainFor: [] })
})

it('cuts no results of a batch that is too old to make them again', async () => {
  const forms = [form('results'), form('rejects')]
  const start = startingPoint(checkpoint(), forms, at(8))
  await expect(start).rejects.toThrow(/--rejects is new .* begun on 2026-01-01, .* Leave --rejects out, or .* --again/)
  // Without the new file, and where nothing was done, nothing would be lost.
  await startingPoint(checkpoint(), forms.slice(0, 1), at(8))
  await startingPoint(checkpoint({ next_chunk: 0 }), forms, at(8))
})

it('refuses a file that exists, and a shape that was changed since its file was begun', async () => {
  await writeFile(paths().rejects, 'mine')
  const start = startingPoint(checkpoint(), [form('results'), form('rejects')], at())
  await expect(start).rejects.toThrow(/exists and does not belong to this batch\. Give another name with --rejects/)
  const named = { name: join('out', 'back.csv'), shape_sha256: SHAPE, ...digestOf('return\n') }
  const before = checkpoint({ return: named })
  expect(await startingPoint(before, [form('return', SHAPE)], at())).toMatchObject({ before })
  await expect(startingPoint(before, [form('return', digestOf('x').sha256)], at())).rejects.toThrow(
    /The member return of the profile was changed since/,
  )
})

it('goes on where a run ended between the checkpoint that names a file and the file', async () => {
  const claimed = checkpoint({ next_chunk: 0, results: digestOf(''), rejects: ofRejects('') })
  for (const left of [undefined, '', 'reje', 'rejects\n']) {
    if (left !== undefined) await writeFile(paths().rejects, left)
    const { files } = await startingPoint(claimed, [form('rejects')], at())
    const [file] = files
    const output = await openOutputFile(paths().rejects, file?.form.header ?? '', file?.at ?? digestOf('-'))
    await output.close()
    expect(await readFile(paths().rejects, 'utf8')).toBe('rejects\n')
  }
  await appendFile(paths().rejects, 'somebody else’s')
  await expect(openOutputFile(paths().rejects, 'rejects\n', digestOf(''))).rejects.toThrow(/cannot be written/)
})
