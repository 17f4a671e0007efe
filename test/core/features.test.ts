// Each feature can be left out: with its files and those of the features that import it gone, and with them the lines of
// the compositions that name them, the product compiles.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FEATURES, type FeatureName } from '../law/features.ts'
import { compile, withThoseAbove, writeWithout } from './product.ts'

const folders: string[] = []
function openFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'product-'))
  folders.push(folder)
  return folder
}
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

describe('the product', () => {
  let whole: string
  beforeAll(async () => {
    whole = openFolder()
    writeWithout([], whole)
    expect(await compile(whole)).toEqual([])
  })

  it.each(Object.keys(FEATURES) as FeatureName[])('compiles without %s, and without what imports it', async name => {
    const folder = openFolder()
    writeWithout(withThoseAbove(name), folder, whole)
    expect(await compile(folder)).toEqual([])
  })

  it('compiles as its core alone', async () => {
    const folder = openFolder()
    writeWithout(Object.keys(FEATURES) as FeatureName[], folder, whole)
    expect(await compile(folder)).toEqual([])
  })
})
