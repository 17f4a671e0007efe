import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkFree, digestOf, openOutputFile } from '../../../producers/migrate/output-file.ts'
import { FileError } from '../../../producers/rows/file-error.ts'

const HEADER = 'line,reference\n'
const NONE = digestOf('')

let folder: string
let path: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tokenmill-output-'))
  path = join(folder, 'r.csv')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** A file with these texts behind its header, and its digest. */
async function written(...texts: string[]) {
  const file = await openOutputFile(path, HEADER, NONE)
  for (const text of texts) await file.append(text)
  const mark = await file.sync()
  await file.close()
  return mark
}

describe('an output file', () => {
  it('begins with its header, holds what was appended, and tells its digest', async () => {
    const mark = await written('2,a\n', '3,b\n')
    const text = await readFile(path, 'utf8')
    expect(text).toBe(`${HEADER}2,a\n3,b\n`)
    expect(mark).toEqual(digestOf(text))
  })

  it('is never written over another file', async () => {
    await writeFile(path, 'somebody else’s')
    await expect(checkFree(path, '--rejects')).rejects.toThrow(FileError)
    await expect(checkFree(path, '--rejects')).rejects.toThrow(
      /exists and does not belong to this batch\. Give another name with --rejects FILE/,
    )
    await expect(openOutputFile(path, HEADER, NONE)).rejects.toThrow(FileError)
    expect(await readFile(path, 'utf8')).toBe('somebody else’s')
    await checkFree(join(folder, 'free.csv'), '--rejects')
  })

  it.each(['', 'line,refer', HEADER])('is begun anew where a run ended within its header: %j', async left => {
    await writeFile(path, left)
    await written('3,b\n')
    expect(await readFile(path, 'utf8')).toBe(`${HEADER}3,b\n`)
  })

  it('is cut back to its mark when a run is taken up again, and ends as if it had never stopped', async () => {
    const mark = await written('2,a\n')
    await appendFile(path, '3,b\n4,c\n5,half a li')
    const again = await openOutputFile(path, HEADER, mark)
    await again.append('3,b\n')
    expect(await again.sync()).toEqual(digestOf(`${HEADER}2,a\n3,b\n`))
    await again.close()
    expect(await readFile(path, 'utf8')).toBe(`${HEADER}2,a\n3,b\n`)
  })

  it('is not continued where it was changed, is shorter than its mark, or is gone', async () => {
    const mark = await written('2,a\n')
    const text = await readFile(path, 'utf8')
    for (const changed of [text.replace('a', 'b'), text.slice(0, -1)]) {
      await writeFile(path, changed)
      await expect(openOutputFile(path, HEADER, mark)).rejects.toThrow(/was changed since the run/)
      expect(await readFile(path, 'utf8')).toBe(changed)
    }
    await rm(path)
    await expect(openOutputFile(path, HEADER, mark)).rejects.toThrow(/cannot be opened/)
  })
})
