// How often a file is read before its rows are sent.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { measureExtent } from '../../../producers/migrate/extent.ts'
import { validateFile } from '../../../producers/rows/validate-file.ts'
import { testPan } from '../../support/test-pan.ts'
import { HEADER, profile } from '../rows/profile/profiled.ts'

describe('the extent of a file that is read by a profile', () => {
  let dir: string
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'tokenmill-extent-'))
  })
  afterAll(() => rm(dir, { recursive: true }))

  const card = (n: number, name = 'ANN') => `c-${n},${testPan(n)},5,2030,${name}`
  const none = (n: number) => `c-${n},,,,`
  const onFile = { provider: 'p', customer_id: '{id}', card_id: '{id}', cardholder_name: { from: ['name'] } }
  const by = profile({ no_card: 'skip', on_file: onFile })

  /** The extent in chunks of `size`; the file is gone after its first reading, so a second one fails. */
  async function extentOf(lines: readonly string[], size: number) {
    const path = join(dir, 'cards.csv')
    await writeFile(path, [HEADER, ...lines, ''].join('\n'))
    const options = { recordKind: 'token-create', format: 'csv', profile: by } as const
    const file = await validateFile({ path }, options)
    await rm(path)
    return measureExtent({ path }, options, file, size)
  }

  it('is known when the file was read once, rows without cards left out', async () => {
    const lines = [none(1), card(2), card(3), none(4), card(5)]
    expect(await extentOf(lines, 2)).toMatchObject({ chunks: 2, rows: 3, name: 'cards.csv' })
    expect(await extentOf([none(1)], 2)).toMatchObject({ chunks: 0, rows: 0 })
  })

  it('needs a second reading where skipped rows or long rows may cut a chunk short', async () => {
    await expect(extentOf([card(1), ...Array.from({ length: 98 }, (_, n) => none(n))], 2)).rejects.toThrow('cards.csv')
    await expect(extentOf([card(1), card(2, 'A'.repeat(500))], 1_000)).rejects.toThrow('cards.csv')
  })
})
