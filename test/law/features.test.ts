// The walls between the core and its features.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { COMPOSITIONS, FEATURES, type FeatureName, featureOf } from './features.ts'
import { code, expectNone, product, root, targetsOf } from './tree.ts'

/**
 * How many imports of each feature the core still has. A wall is whole when its feature isn't here. Take away what an
 * import that goes takes away; nothing is added.
 */
const LEFT: Partial<Record<FeatureName, number>> = {
  audit: 7,
  console: 10,
  files: 17,
  keys: 5,
  kms: 3,
  networks: 46,
  operate: 3,
  reports: 4,
  'three-ds': 2,
  traces: 1,
  webhooks: 3,
}

const uncomposed = product.filter(({ path }) => !COMPOSITIONS.includes(path))

it('every path of a feature, and every composition, is there', () => {
  const paths = [...COMPOSITIONS, ...Object.values(FEATURES).flatMap(({ paths }) => [...paths])]
  expect(paths.filter(path => !existsSync(join(root, path)))).toEqual([])
})

describe('the core', () => {
  it('imports no feature but what is left', () => {
    const found = uncomposed
      .filter(({ path }) => featureOf(path) === undefined)
      .flatMap(file => targetsOf(file).flatMap(target => featureOf(target) ?? []))
    const counts = Map.groupBy(found, name => name)
    expect(Object.fromEntries([...counts].map(([name, { length }]) => [name, length]))).toEqual(LEFT)
  })
})

describe('a feature', () => {
  it('imports only features that its row names', () => {
    expectNone(uncomposed, file => {
      const own = featureOf(file.path)
      if (own === undefined) return []
      const may: readonly string[] = FEATURES[own].mayImport
      return targetsOf(file).filter(target => {
        const other = featureOf(target)
        return other !== undefined && other !== own && !may.includes(other)
      })
    })
  })

  it('is named by its row for a reason: each import that a row permits is used', () => {
    const used = new Set(
      uncomposed.flatMap(file => targetsOf(file).map(target => `${featureOf(file.path)} ${featureOf(target)}`)),
    )
    const named = Object.entries(FEATURES).flatMap(([name, { mayImport }]) =>
      mayImport.map(other => `${name} ${other}`),
    )
    expect(named.filter(pair => !used.has(pair))).toEqual([])
  })
})

it('a composition is imported by entries, other compositions and tests alone', () => {
  // The library that an upstream system imports is an entry, too.
  const entries = /^((cli|bin|test|bench)\/|producers\/client\.ts$)/
  expectNone(
    code.filter(({ path }) => !entries.test(path) && !COMPOSITIONS.includes(path)),
    file => targetsOf(file).filter(target => COMPOSITIONS.includes(target)),
  )
})
