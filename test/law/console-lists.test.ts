// Every list that the console reads has a test that looks at its plan (test/store/console-lists), unless it is as short as something
// that nobody sends.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isWithin, product, root } from './tree.ts'

const ROOM = 'src/store/console'
const TESTS = 'test/store/console-lists'
/** Lists without a plan: why they stay short. */
const SHORT: Readonly<Record<string, string>> = {
  'now.ts listChecks': 'a row for each check of `status`',
  'now.ts listQueues': 'a row for each kind',
  'jobs.ts listClients': 'a row for each client, which administrators add',
  'installation/keys.ts listDataKeys': 'a row for each version of a key',
  'installation/keys.ts listKeks': 'a row for each key-encryption key',
  'installation/keys.ts listSigningKeys': 'a row for each signing key of the installation',
  'installation/keys.ts listGatewayKeys': 'a row for each key of the gateways',
  'installation/installation.ts listHosts': 'a row for each process',
  'installation/installation.ts listProviders': 'a row for each process and provider',
  'installation/installation.ts listDisplays': 'a row for each display, which administrators add',
  'installation/client-list.ts listKeys': 'a row for each key of one client',
}

const FUNCTION = /^export (?:async )?function ((?:list|findChunks)\w*)\(\s*([^)]*)/gm

/** `runs.ts list` of every list in the room. */
function listsIn(files: readonly { path: string; text: string }[]): string[] {
  return files.flatMap(({ path, text }) =>
    [...text.matchAll(FUNCTION)]
      .filter(([, , parameters = '']) => /\bdb: Db\b/.test(parameters))
      .map(([, name]) => `${path.slice(ROOM.length + 1)} ${name}`),
  )
}

/** The lists of the room that a test uses which explains statements. */
function explainedBy({ path, text }: { path: string; text: string }): string[] {
  if (!/`explain[ (]|\bexplaining\(/.test(text)) return []
  return [...text.matchAll(/import \* as (\w+) from '([^']+)'/g)].flatMap(([, alias = '', from = '']) => {
    const file = normalize(join(dirname(path), from))
    const used = [...text.matchAll(new RegExp(`\\b${alias}\\.(\\w+)\\b`, 'g'))]
    return isWithin(file, ROOM) ? used.map(([, name]) => `${file.slice(ROOM.length + 1)} ${name}`) : []
  })
}

const lists = listsIn(product.filter(({ path }) => isWithin(path, ROOM)))
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
    const file = { path: `${ROOM}/new.ts`, text: 'export async function listNew(sight: Sight, db: Db) {}' }
    expect(listsIn([file])).toEqual(['new.ts listNew'])
    expect(explained.has('new.ts listNew')).toBe(false)
    const text =
      "import * as seenNew from '../../../src/store/console/new.ts'\nexplaining(store, db => seenNew.listNew(sight, db))"
    expect(explainedBy({ path: `${TESTS}/new.test.ts`, text })).toEqual(['new.ts listNew'])
    expect(explainedBy({ path: `${TESTS}/new.test.ts`, text: text.replace('explaining', 'called') })).toEqual([])
  })
})
