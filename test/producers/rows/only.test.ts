// `--only`: which rows of a file are wanted.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { keepOnly, readOnly } from '../../../producers/rows/only.ts'
import { rejectRow, skipRow } from '../../../producers/rows/record.ts'

let dir: string
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tokenmill-only-'))
})
afterAll(() => rm(dir, { recursive: true, force: true }))

async function listOf(text: string) {
  const file = join(dir, 'only.txt')
  await writeFile(file, text)
  return readOnly(file)
}

it('reads one reference a line, whatever ends the lines, with or without a header', async () => {
  const plain = await listOf('a\nb\n')
  expect([...plain.references]).toEqual(['a', 'b'])
  for (const text of ['reference\r\nb\r\na\r\n', '\uFEFFreference\na\n\nb', 'b\na\na\n'])
    expect((await listOf(text)).sha256).toBe(plain.sha256)
  expect((await listOf('a\nc\n')).sha256).not.toBe(plain.sha256)
})

it('refuses a list that names nothing, and one that is not there', async () => {
  await expect(listOf('reference\n\n')).rejects.toThrow(/names no reference/)
  await expect(readOnly(join(dir, 'none'))).rejects.toThrow(/cannot be read \(ENOENT\)/)
})

it('skips what is not listed, and keeps what cannot be read', async () => {
  const list = await listOf('wanted\n')
  const wanted = rejectRow(1, 'expiry_format', 'wanted')
  const unread = rejectRow(2, 'row_fields')
  expect(keepOnly(wanted, list)).toBe(wanted)
  expect(keepOnly(unread, list)).toBe(unread)
  expect(keepOnly(rejectRow(3, 'expiry_format', 'other'), list)).toMatchObject({ skipped: 'not_listed', json: '' })
  expect(keepOnly(skipRow(4, 'no_card'), list)).toMatchObject({ skipped: 'no_card' })
})
