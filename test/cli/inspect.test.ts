// What `tokenmill inspect` prints about a file with hostile names.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { cli } from './command-bench.ts'

it('writes no control character of a column’s name', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tokenmill-inspect-test-'))
  try {
    const path = join(folder, 'cards.csv')
    const header = 'card_id,number,card\u001b[2J expiry,\u009b2J note,\u202egnp'
    await writeFile(path, `${header}\nc1,4111111111111111,12/30,a,b\n`)
    const { stdout, stderr } = await cli(['inspect', path], { env: {} })
    expect(stdout).toContain('"card\\u001b[2J expiry"')
    expect(stdout).toContain('"\\u009b2J note"')
    expect(stdout + stderr).not.toMatch(/[^\P{Cc}\n]|\u202e/u)
  } finally {
    await rm(folder, { recursive: true })
  }
})
