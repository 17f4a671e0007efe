// Every statement that the console shows something by takes a sight: whose rows the person may see. And the console uses no
// other statements of the store than these, and those of its own tables. Some of them commands use, too: these stand where
// both may import them.
import { describe, expect, it } from 'vitest'
import { expectNone, isWithin, product, targetsOf } from './tree.ts'

const ROOM = 'src/store/console'
/** Files of statements by which commands and the console ask the same. */
const SHARED = [
  'src/store/access/audit-list.ts',
  'src/store/access/seen-clients.ts',
  'src/store/batch/batch-list.ts',
  'src/store/batch/stall.ts',
  'src/store/explain/jobs.ts',
  'src/store/explain/names.ts',
]
/** Statements on the console's own tables, and on who may sign in: a session, a challenge, a display or a secret finds its row. */
const OWN = [
  'sessions',
  'challenges',
  'pending-acts',
  'signing-in',
  'openid-flows',
  'own-identities',
  'installation/displays',
].map(name => `${ROOM}/${name}.ts`)
/** What pages import besides: types, and pure functions. */
const PURE = ['src/store/pool.ts', 'src/store/sight.ts', 'src/store/batch/batch-state.ts']

const FUNCTION = /^export (?:async )?function\*? (\w+)(?:<[^>]*>)?\(\s*([^)]*)/gm
const isStatement = (parameters: string) => /\bdb: Db\b/.test(parameters)

function blind(text: string): string[] {
  return [...text.matchAll(FUNCTION)]
    .filter(([, , parameters = '']) => isStatement(parameters) && !/^sight: Sight\b/.test(parameters))
    .map(([, name = '']) => name)
}

const seeing = product.filter(({ path }) => (isWithin(path, ROOM) && !OWN.includes(path)) || SHARED.includes(path))

describe('a statement of the console', () => {
  it('takes a sight as its first argument', () => {
    expect(SHARED.filter(path => !seeing.some(file => file.path === path))).toEqual([])
    expect(seeing.length).toBeGreaterThan(1)
    expectNone(seeing, ({ text }) => blind(text))
  })

  it('uses the sight that it takes', () => {
    expectNone(seeing, ({ text }) => {
      const found = [...text.matchAll(FUNCTION)].filter(([, , parameters = '']) => isStatement(parameters))
      return (text.match(/\b(?:entitiesOf\(sight\)|\w+\(sight, db\b)/g) ?? []).length < found.length
        ? ['a sight without effect']
        : []
    })
  })

  it('is found without one', () => {
    expect(blind('export async function list(db: Db, limit: number): Promise<void> {}')).toEqual(['list'])
    expect(blind('export async function* listPages(db: Db) {}')).toEqual(['listPages'])
    expect(blind('export function list(sight: Sight, db: Db) {}')).toEqual([])
  })
})

describe('the console', () => {
  it('reads the store by these statements alone, where it isn’t wired together', () => {
    const pages = product.filter(({ path }) => isWithin(path, 'producers/console') && !path.endsWith('/main.ts'))
    expectNone(pages, file =>
      targetsOf(file).filter(
        target => isWithin(target, 'src/store') && !isWithin(target, ROOM) && ![...SHARED, ...PURE].includes(target),
      ),
    )
  })

  it('explains jobs by functions that read the store by a reader alone', () => {
    const names = [
      'explain',
      'find-facts',
      'job-facts',
      'job-reader',
      'next-steps',
      'stalled-batches',
      'timeline',
      'unread-results',
    ]
    const shared = product.filter(({ path }) => names.some(name => path === `producers/operate/${name}.ts`))
    expect(shared).toHaveLength(names.length)
    expectNone(
      shared,
      ({ text }) => text.match(/^import (?!type\b).*src\/store\/(?!batch\/(?:batch-state|why-stalled)).*$/gm) ?? [],
    )
    const pages = product.filter(({ path }) => isWithin(path, 'producers/console/explain'))
    expectNone(pages, file =>
      targetsOf(file).filter(
        target =>
          isWithin(target, 'producers/operate') &&
          ![...names, 'store-reader'].some(name => target.endsWith(`/${name}.ts`)),
      ),
    )
  })

  // How long keys are used, which is no key.
  const PERIODS = 'src/vault/ring/cryptoperiod.ts'
  it('names no key of the vault', () => {
    const pages = product.filter(({ path }) => isWithin(path, 'producers/console'))
    expectNone(pages, file =>
      targetsOf(file).filter(
        target => isWithin(target, 'src/vault') && !isWithin(target, 'src/vault/passkey') && target !== PERIODS,
      ),
    )
  })
})
