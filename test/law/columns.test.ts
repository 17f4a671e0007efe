// Every column of every table has a class, and with it a protection or what an owner of the database could do by changing it.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ColumnGroup, readClasses } from '../../cli/docs/owner.ts'
import { root } from './tree.ts'

const MIGRATIONS = join(root, 'src/store/migrations')
const TABLE = /create (?:unlogged )?table tokenmill\."?(\w+)"? \((.*?)\n\)/gs
/** A column stands at the beginning of its line; what continues it, or a constraint, stands further in. */
const COLUMN = /^ {2}(?!constraint |primary key|foreign key|unique )(\w+) \w/gm

/** The columns of each table that a schema file makes. */
function tablesOf(path: string): Map<string, string[]> {
  const text = readFileSync(join(MIGRATIONS, `${path}.sql`), 'utf8')
  return new Map(
    [...text.matchAll(TABLE)].map(([, table = '', body = '']) => [
      table,
      [...body.matchAll(COLUMN)].map(([, column = '']) => column),
    ]),
  )
}

const schemaFiles = readdirSync(MIGRATIONS, { recursive: true, encoding: 'utf8' })
  .filter(path => path.endsWith('.sql'))
  .map(path => path.replace(/\.sql$/, ''))
const classes = readClasses()

it('a schema file that makes tables has a file of classes beside it, and no other file is there', () => {
  expect([...classes.keys()].sort()).toEqual(schemaFiles.filter(path => tablesOf(path).size > 0).sort())
})

describe.each([...classes])('the classes of %s', (path, tables) => {
  const made = tablesOf(path)

  it('name its tables', () => {
    expect(Object.keys(tables).sort()).toEqual([...made.keys()].sort())
  })

  it('give each column one class', () => {
    const wrong = Object.entries(tables).flatMap(([table, groups]) => {
      const columns = made.get(table) ?? []
      const named = groups.flatMap(group => (group.columns === '*' ? [] : group.columns.split(' ')))
      const rests = groups.filter(group => group.columns === '*').length
      const left = columns.filter(column => !named.includes(column))
      return [
        ...named.filter(column => !columns.includes(column)).map(column => `${table}.${column} is no column`),
        ...named.filter((column, at) => named.indexOf(column) < at).map(column => `${table}.${column} has two classes`),
        ...(rests === 0 ? left.map(column => `${table}.${column} has no class`) : []),
        ...(rests > 1 ? [`${table} has two groups for the rest`] : []),
        ...(rests === 1 && left.length === 0 ? [`${table} has a group without columns`] : []),
      ]
    })
    expect(wrong).toEqual([])
  })

  it('say of a column with a code that a code protects it, and of no other', () => {
    const coded = Object.entries(tables).flatMap(([table, groups]) =>
      groups.some(({ by }) => by === 'code' || by === 'decided') ? [table] : [],
    )
    const withMac = [...made].flatMap(([table, columns]) => (columns.includes('mac_version') ? [table] : []))
    expect(coded.sort()).toEqual(withMac.sort())
  })
})

describe('a group of columns', () => {
  it.each(['who may', 'where to', 'keys', 'secret', 'signed', 'believed'])(
    'of the class %s without a protection says what an owner could do',
    name => {
      expect(ColumnGroup.safeParse({ class: name, columns: 'some' }).success).toBe(false)
      expect(ColumnGroup.safeParse({ class: name, columns: 'some', by: 'code' }).success).toBe(true)
      expect(ColumnGroup.safeParse({ class: name, columns: 'some', could: 'do something' }).success).toBe(true)
    },
  )
})
