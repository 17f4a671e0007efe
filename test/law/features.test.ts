// The walls between the core and its features.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { TABLES } from '../../src/store/composition.ts'
import { COMPOSITIONS, FEATURES, featureOf } from './features.ts'
import { code, expectNone, product, root, targetsOf, tree } from './tree.ts'

const uncomposed = product.filter(({ path }) => !COMPOSITIONS.includes(path))

const read = (path: string) => readFileSync(join(root, path), 'utf8')

const tablesOf = (name: string) => {
  const path = `src/store/migrations/0001-baseline/${name}.sql`
  const sql = existsSync(join(root, path)) ? read(path) : ''
  return [...sql.matchAll(/create (?:unlogged )?table tokenmill\."?(\w+)/g)].map(([, table = '']) => table)
}

const ownerOf = new Map(Object.keys(FEATURES).flatMap(name => tablesOf(name).map(table => [table, name] as const)))

/** The features whose tables a file names. */
const namedIn = (text: string) =>
  [...text.matchAll(/\btokenmill\."?(\w+)/g)].flatMap(([, table = '']) => ownerOf.get(table) ?? [])

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

  it('is named by its row for a reason: what a row permits is used', () => {
    const used = new Set(
      uncomposed.flatMap(file =>
        [...targetsOf(file).map(featureOf), ...namedIn(file.text)].map(other => `${featureOf(file.path)} ${other}`),
      ),
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
  const entries = /^((bin|cli|clients|test|bench)\/|producers\/client\.ts$)/
  expectNone(
    code.filter(({ path }) => !entries.test(path) && !COMPOSITIONS.includes(path)),
    file => targetsOf(file).filter(target => COMPOSITIONS.includes(target)),
  )
})

describe('a table of a feature', () => {
  it('is named by that feature alone, and by those that may import it', () => {
    expectNone(
      tree.filter(({ path }) => /^(cli|src|producers|workers)\//.test(path)),
      ({ path, text }) => {
        const feature = featureOf(path)
        const allowed: readonly string[] = feature === undefined ? [] : [feature, ...FEATURES[feature].mayImport]
        return namedIn(text).filter(owner => !allowed.includes(owner))
      },
    )
  })

  it('has its workers’ rights in the feature’s own list', () => {
    for (const { sql, rights } of TABLES)
      if (Object.hasOwn(FEATURES, sql)) expect(Object.keys(rights).sort(), sql).toEqual(tablesOf(sql).sort())
  })
})

describe('docs/architecture.md', () => {
  const composed = read('src/job/composition.ts')
  const kinds = [...composed.matchAll(/^ {2}'?([a-z-]+)'?: (\w+),$/gm)].map(([, kind = '', name = '']) => ({
    kind,
    file: new RegExp(`\\b${name}\\b.* from '\\.(/[^']+)'`).exec(composed)?.[1] ?? '',
  }))
  const commands = [...read('cli/main.ts').matchAll(/term: '([a-z0-9-]+)[^']*',[\s\S]*?import\('\.(\/[^']+)'\)/g)]
  const listed = (names: readonly string[]) => names.map(name => `\`${name}\``).join(', ') || 'none'

  it('has for each feature its tables, kinds, commands, and the features that it may import', () => {
    const rows = Object.entries(FEATURES).map(([name, { mayImport }]) =>
      [
        `- **${name}**. Tables: ${listed(tablesOf(name))}.`,
        `Kinds: ${listed(kinds.flatMap(({ kind, file }) => (featureOf(`src/job${file}`) === name ? [kind] : [])))}.`,
        `Commands: ${listed(commands.flatMap(([, term = '', path]) => (featureOf(`cli${path}`) === name ? [term] : [])))}.`,
        `May import: ${listed(mayImport)}.`,
      ].join(' '),
    )
    const document = read('docs/architecture.md')
    expect(rows.filter(row => !document.includes(`${row}\n`))).toEqual([])
  })
})
