// The walls between the core and its features.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { COMPOSITIONS, FEATURES, featureOf } from './features.ts'
import { code, expectNone, product, root, targetsOf } from './tree.ts'

const uncomposed = product.filter(({ path }) => !COMPOSITIONS.includes(path))

it('every path of a feature, and every composition, is there', () => {
  const paths = [...COMPOSITIONS, ...Object.values(FEATURES).flatMap(({ paths }) => [...paths])]
  expect(paths.filter(path => !existsSync(join(root, path)))).toEqual([])
})

describe('the core', () => {
  it('imports no feature', () => {
    expectNone(
      uncomposed.filter(({ path }) => featureOf(path) === undefined),
      file => targetsOf(file).filter(target => featureOf(target) !== undefined),
    )
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

it('features import one another in no circle, so that each can be left out with those above it', () => {
  const left = new Map<string, readonly string[]>(
    Object.entries(FEATURES).map(([name, { mayImport }]) => [name, mayImport]),
  )
  for (let size = -1; size !== left.size; ) {
    size = left.size
    for (const [name, mayImport] of left) if (!mayImport.some(other => left.has(other))) left.delete(name)
  }
  expect([...left.keys()]).toEqual([])
})

it('a composition is imported by entries, other compositions and tests alone', () => {
  // The library that an upstream system imports is an entry, too.
  const entries = /^((cli|bin|test|bench)\/|producers\/client\.ts$)/
  expectNone(
    code.filter(({ path }) => !entries.test(path) && !COMPOSITIONS.includes(path)),
    file => targetsOf(file).filter(target => COMPOSITIONS.includes(target)),
  )
})
