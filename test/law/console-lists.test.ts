// Every list that the console reads has a test that looks at its plan (test/store/console-lists), unless it is as short as something
// that nobody sends.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isWithin, product, root } from './tree.ts'

const STORE = 'src/store'
/** Where the lists stand; some of them commands read, too. */
const ROOMS = [
  'src/store/console',
  'src/store/explain',
  'src/store/access/audit-list.ts',
  'src/store/access/seen-clients.ts',
  'src/store/batch/batch-list.ts',
]
const isList = (path: string) => ROOMS.some(room => isWithin(path, room))
const TESTS = 'test/store/console-lists'
/** Lists without a plan: why they stay short. */
const SHORT: Readonly<Record<string, string>> = {
  'console/now.ts listChecks': 'a row for each check of `status`',
  'console/now.ts listQueues': 'a row for each kind',
  'explain/jobs.ts listClients': 'a row for each client, which administrators add',
  'console/installation/keys.ts listDataKeys': 'a row for each version of a key',
  'console/installation/keys.ts listKeks': 'a row for each key-encryption key',
  'console/installation/keys.ts listSigningKeys': 'a row for each signing key of the installation',
  'console/installation/keys.ts listGatewayKeys': 'a row for each key of the gateways',
  'console/installation/installation.ts listHosts': 'a row for each process',
  'console/installation/installation.ts listProviders': 'a row for each process and provider',
  'console/installation/installation.ts listDisplays': 'a row for each display, which administrators add',
  'console/installation/client-list.ts listKeys': 'a row for each key of one client',
}

const FUNCTION = /^export (?:async )?function\*? ((?:list|findChunks)\w*)(?:<[^>]*>)?\(\s*([^)]*)/gm

/** `console/runs.ts list` of every list in the rooms. */
function listsIn(files: readonly { path: string; text: string }[]): string[] {
  return files.flatMap(({ path, text }) =>
    [...text.matchAll(FUNCTION)]
      .filter(([, , parameters = '']) => /\bdb: Db\b/.test(parameters))
      .map(([, name]) => `${path.slice(STORE.length + 1)} ${name}`),
  )
}

/** The lists of the rooms that a test uses which explains statements. */
function explainedBy({ path, text }: { path: string; text: string }): string[] {
  if (!/`explain[ (]|\bexplaining\(/.test(text)) return []
  return [...text.matchAll(/import \* as (\w+) from '([^']+)'/g)].flatMap(([, alias = '', from = '']) => {
    const file = normalize(join(dirname(path), from))
    const used = [...text.matchAll(new RegExp(`\\b${alias}\\.(\\w+)\\b`, 'g'))]
    return isList(file) ? used.map(([, name]) => `${file.slice(STORE.length + 1)} ${name}`) : []
  })
}

const lists = listsIn(product.filter(({ path }) => isList(path)))
const explained = new Set(
  readdirSync(join(root, TESTS))
    .map(name => ({ path: `${TESTS}/${name}`, text: readFileSync(join(root, TESTS, name), 'utf8') }))
    .flatMap(explainedBy),
)

describe('a list of the console', () => {
  it('has a test of its plan, or is known to be short', () => {
    expect(lists.length).toBeGreaterThan(30)
    expect(lists.filter(list => !explained.has(list) && SHORT[list] === undefined)).toEqual([])
  })

  it('that is called short has no test of its plan, and is there', () => {
    expect(Object.keys(SHORT).filter(list => explained.has(list) || !lists.includes(list))).toEqual([])
  })

  it('is found, and missed, where it is in nobody’s test', () => {
    const file = { path: `${STORE}/console/new.ts`, text: 'export async function listNew(sight: Sight, db: Db) {}' }
    expect(listsIn([file])).toEqual(['console/new.ts listNew'])
    expect(explained.has('console/new.ts listNew')).toBe(false)
    const text =
      "import * as seenNew from '../../../src/store/console/new.ts'\nexplaining(store, db => seenNew.listNew(sight, db))"
    expect(explainedBy({ path: `${TESTS}/new.test.ts`, text })).toEqual(['console/new.ts listNew'])
    expect(explainedBy({ path: `${TESTS}/new.test.ts`, text: text.replace('explaining', 'called') })).toEqual([])
  })
})
