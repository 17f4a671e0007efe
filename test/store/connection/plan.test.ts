// How many connections each process may open: what docs/running.md says, that all roles fit a server with PostgreSQL's
// defaults, and which limit is named when they don't.

import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { planWorkers } from '../../../cli/process/workers.ts'
import { CATALOGUE } from '../../../src/job/composition.ts'
import {
  countPlanned,
  findShortage,
  type PlannedProcess,
  type PlannedRow,
  type PlanSettings,
  planConnections,
  planPools,
} from '../../../src/store/connection/plan.ts'
import { CONCURRENCY, kindsOf } from '../../../workers/process/worker-settings.ts'

const ONE_EACH = ['scheduler', 'gateway', 'three-ds', 'console', 'command'] as const
/** PostgreSQL's 100 without the three that it keeps for superusers. */
const ADMITTED = 97
const redis = { config: { redisUrls: ['redis://localhost'] } } as never
const postgres = { config: { redisUrls: undefined } } as never

const workerOf = (role: 'interactive' | 'bulk'): Omit<PlanSettings, 'engine'> => ({
  kinds: kindsOf(CATALOGUE, role).length,
  concurrency: CONCURRENCY[role],
})
const settingsOf = (name: PlannedProcess) => (name === 'interactive' || name === 'bulk' ? workerOf(name) : {})

it('all roles of an installation on four cores fit into a server with PostgreSQL’s defaults, with room for two cells', () => {
  const workers = planWorkers(redis, { processes: {} }, 4)
  const others = ONE_EACH.map(name => planConnections(name, { engine: 'redis' }))
  const all = others.reduce((sum, n) => sum + n, workers)
  const cell = planConnections('cell', { engine: 'redis' })
  expect(all + 2 * cell).toBeLessThanOrEqual(ADMITTED)
})

it.each([
  [{ processes: { bulk: 1, interactive: 1 } }, ['workers', 'interactive', 'bulk']],
  [{ processes: { bulk: 2, interactive: 1 }, kinds: ['token-batch'] }, ['workers', 'bulk', 'bulk']],
  [{ processes: { bulk: 7, interactive: 2 }, kinds: ['token-create'] }, ['workers', 'interactive', 'interactive']],
  [{ processes: { bulk: 1 }, kinds: ['report'], concurrency: 5 }, ['workers', 'bulk']],
] as const)('workers with %j plan for %j', (given, names) => {
  for (const session of [redis, postgres]) {
    const engine = session === redis ? 'redis' : 'postgres'
    const planned = names.map(name => {
      const { kinds, concurrency } = given as { kinds?: string[]; concurrency?: number }
      const worker = name === 'interactive' || name === 'bulk' ? kindsOf(CATALOGUE, name, kinds).length : 0
      return planConnections(name, {
        engine,
        kinds: worker,
        concurrency: concurrency ?? (name === 'workers' ? 1 : CONCURRENCY[name]),
      })
    })
    expect(planWorkers(session, given)).toBe(planned.reduce((sum, n) => sum + n, 0))
  }
})

it('the table of docs/running.md is what each process plans', () => {
  const text = readFileSync(new URL('../../../docs/running.md', import.meta.url), 'utf8')
  const [, section = ''] = text.split('\n### Connections\n')
  const [table = ''] = section.split('\n### ')
  const rows = table.split('\n').filter(line => line.startsWith('| '))
  const told = rows
    .slice(1)
    .filter(line => !line.startsWith('| ---'))
    .map(line => line.split('|').map(cell => cell.trim()))
  const named = told.map(([, cell = '']) => nameIn(cell))
  expect([...named].sort()).toEqual([...ALL].sort())
  const planned = named.map(name => {
    const { store, beside } = planPools(name, { engine: 'redis', ...settingsOf(name) })
    const { queues } = planPools(name, { engine: 'postgres', ...settingsOf(name) })
    return { name, store: String(store + beside), queues: queues === 0 ? '–' : String(queues) }
  })
  expect(told.map(([, cell = '', store, queues]) => ({ name: nameIn(cell), store, queues }))).toEqual(planned)
})

const ALL: readonly PlannedProcess[] = ['workers', 'interactive', 'bulk', 'cell', 'report', ...ONE_EACH]

/** The process that a row begins with: `workers`, interactive worker process, a cell … */
function nameIn(cell: string): PlannedProcess {
  const found = ALL.find(name => new RegExp(`^\`?${name}\\b`).test(cell))
  if (!found) throw new Error(`no process is named in ${cell}`)
  return found
}

it('a bulk worker that works more jobs of a kind at once plans for more; no plan is ever without a connection', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...ALL),
      fc.integer({ min: 1, max: 64 }),
      fc.integer({ min: 0, max: 9 }),
      fc.constantFrom('redis' as const, 'postgres' as const),
      (name, concurrency, kinds, engine) => {
        const settings = { engine, concurrency, kinds }
        const { store, beside, queues } = planPools(name, settings)
        expect(planConnections(name, settings)).toBe(store + beside + queues)
        expect(store).toBeGreaterThan(0)
        expect(engine === 'redis' ? queues : 0).toBe(0)
        const more = planPools(name, { ...settings, concurrency: concurrency + 1 })
        expect(more.store > store).toBe(name === 'bulk')
      },
    ),
  )
})

const row = (role: PlannedRow['role'], connections: number, login = 'u', host = 'a'): PlannedRow => ({
  role,
  connections,
  login,
  host,
})

it('the supervisor of each host with workers is counted, and users apart', () => {
  const counted = countPlanned([
    row('bulk', 6),
    row('interactive', 20),
    row('bulk', 6, 'v', 'b'),
    row('gateway', 12, 'g', 'c'),
    row('console', 8, 'k', 'c'),
  ])
  const supervisor = planConnections('workers', { engine: 'redis' })
  expect(counted.connections).toBe(52 + 2 * supervisor)
  expect(Object.fromEntries(counted.byUser)).toEqual({ u: 26 + supervisor, v: 6 + supervisor, g: 12, k: 8 })
})

const LIMITS = { most: 100, ofServer: 97, ofDatabase: undefined, ofUsers: new Map<string, number>() }

it.each([
  ['all suffice', 80, LIMITS, undefined, undefined],
  ['exactly what is left', 87, LIMITS, undefined, undefined],
  ['the server', 88, LIMITS, /the server admits 97/, 'set max_connections to 101 or more'],
  ['a larger reserve', 80, { ...LIMITS, ofServer: 80 }, /the server admits 80/, 'set max_connections to 110 or more'],
  ['the database', 80, { ...LIMITS, ofDatabase: 89 }, /this database admits 89/, /connection limit 90/],
  [
    'the user',
    80,
    { ...LIMITS, ofUsers: new Map([['u', 79]]) },
    /the user u may open 79.* open 80/,
    /role u .*limit 80/,
  ],
  ['another user', 80, { ...LIMITS, ofUsers: new Map([['w', 1]]) }, undefined, undefined],
  ['a user with enough', 80, { ...LIMITS, ofUsers: new Map([['u', 80]]) }, undefined, undefined],
  ['a database that takes none', 1, { ...LIMITS, ofDatabase: 0 }, /admits 0/, /limit 11/],
])('the limit that is too low is named: %s', (_, connections, limits, admits, next) => {
  const short = findShortage({ connections, byUser: new Map([['u', connections]]) }, limits, 10)
  if (admits === undefined) expect(short).toBeUndefined()
  else {
    expect(short?.admits).toMatch(admits)
    expect(short?.next).toMatch(next ?? '')
  }
})
