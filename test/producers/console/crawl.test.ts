// A person of one entity asks every route of the console for what belongs to others: nothing of it is ever shown, and what isn't the
// person's answers exactly as what doesn't exist. And no GET changes anything, whoever asks.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { grantAll } from '../../support/grant-all.ts'
import { KIND } from '../../workers/act/failed-copies.ts'
import type { Answer, Person } from './bundle.ts'
import { fillWorld } from './looks/world.ts'
import { type OpenIdBundle, openOpenIdBundle } from './openid/bundle.ts'
import {
  type Call,
  callsOf,
  ENDING,
  everyRoute,
  type Names,
  openAsk,
  type Route,
  withoutRoute,
  withoutRow,
} from './routes/calls.ts'
import { MISSING, namesOf } from './routes/names.ts'
import { openSnapshots } from './routes/snapshot.ts'

/** Nothing of the world is of this entity. */
const ELSEWHERE = '0b5a4f6e-6f0c-4a53-8d43-3f0d8a2d0003'
/** Numbers that are drawn for an act, and moments until when it counts. */
const DRAWN = /"(nonce|challenge)":"[\w-]+"|<time [^>]*>[^<]*<\/time>|name="up_to" value="\w+"|--until [\d:.TZ-]+/g
/** Texts of the world that stand on some page. */
const CANARIES = [
  ...['2026-11-20-autumn', 'autumn/part-2.csv', 'abababab', '381,231', 'pan_luhn', 'part 3 comes on Monday', 'vault-1'],
  ...['order 2026-11-20 / 17', 'order-17', 'customer 17', 'the file is wrong', 'Olga Long-Name', 'nora', 'room 2'],
  ...['shop-of-a-long-name', 'canary of nobody', 'role_missing', 'Token activity report', 'capture-2026'],
]

let bundle: OpenIdBundle
let routes: Route[]
let ask: ReturnType<typeof openAsk>
let limited: Person
let all: Person
let ours: number
let theirs: Names
/** A batch and a row of the audit of nobody, which only people for all entities see. */
let nobodys: Names
let endWork: () => Promise<void>

beforeAll(async () => {
  bundle = await openOpenIdBundle()
  const { installation, rows } = bundle
  endWork = (await installation.openWorkers({ roles: ['interactive'] })).close
  // No number of the pages is one of these by chance.
  for (const [table, column] of ['batch.batch_no', 'audit.audit_id'].map(name => name.split('.')))
    await rows(`select setval(pg_get_serial_sequence('tokenmill.${table}', $1), 71828000)`, [column])
  all = await bundle.addPerson('all')
  limited = await bundle.addPerson('limited', { entities: [ELSEWHERE] })
  ours = await bundle.addBatch({ batchId: 'our-batch', entityId: ELSEWHERE })
  const person = await bundle.addPerson('ada')
  theirs = await namesOf(bundle, await fillWorld(bundle, person), person)
  const batch = String(await bundle.addBatch({ batchId: 'canary of nobody', entityId: null }))
  nobodys = { ...theirs, batch, batchId: 'canary of nobody' }
  await grantAll(installation.vault.store, installation.vault.ring)
  routes = await everyRoute()
  ask = openAsk(bundle)
})
afterAll(() => bundle?.close())

/** What a person is told: without what differs from request to request, and with no name that the person has sent. */
function told({ status, headers, text }: Answer, names: Names): string {
  const { 'x-request-id': id, date: _date, 'content-length': _length, ...rest } = headers
  const sent = Object.values(names).filter(name => name !== KIND)
  const said = JSON.stringify({ status, rest, text: text.replace(DRAWN, '') }).replaceAll(String(id), 'ID')
  return sent.reduce((left, name) => left.replaceAll(encodeURIComponent(name), 'NAME').replaceAll(name, 'NAME'), said)
}

/** A session of its own where the call ends it. */
async function asLimited(one: Call): Promise<Answer> {
  const isEnding = ENDING.includes(one.route)
  const { cookie } = isEnding ? await bundle.addPerson(`ends ${one.route}`, { entities: [ELSEWHERE] }) : limited
  return ask(one, cookie)
}

describe('every route', () => {
  it('is called here, and no other', () => {
    expect(routes.length).toBeGreaterThan(100)
    expect([...withoutRow(routes), ...withoutRoute(routes)]).toEqual([])
    const added = [
      { method: 'GET', route: '/added/:name' },
      { method: 'POST', route: '/added' },
    ] as const
    expect(withoutRow(added)).toEqual(
      added.map(({ route }) => expect.stringContaining(`${route} is called by no test`)),
    )
  })

  it('tells a person of one entity of others’ things what it tells of things that do not exist, and nothing else of them', async () => {
    const shown: string[] = []
    const differing: string[] = []
    for (const route of routes) {
      const [missing, foreign] = [callsOf(route, MISSING), callsOf(route, theirs)]
      const nobody = route.route.includes(':no') ? callsOf(route, nobodys) : []
      for (const [at, one] of missing.entries()) {
        const absent = await asLimited(one)
        for (const [names, other] of [[theirs, foreign[at]] as const, [nobodys, nobody[at]] as const]) {
          // With the same names there is nothing to compare.
          if (!other || JSON.stringify(other) === JSON.stringify(one)) continue
          const answer = await asLimited(other)
          const said = told(answer, names)
          shown.push(said)
          // A list that goes on behind a place begins where its own rows do.
          const isPlace = /[?&]after=/.test(other.path)
          if (!isPlace && said !== told(absent, MISSING)) differing.push(`${other.method} ${other.path}`)
        }
        shown.push(told(absent, MISSING))
      }
    }
    expect(differing).toEqual([])
    for (const path of ['', '/again', '/live', '/refused', '/note', '/pause', '/cancel'])
      shown.push(
        told(await ask({ method: 'GET', route: '', path: `/batches/${ours}${path}` }, limited.cookie), MISSING),
      )
    expect(CANARIES.filter(canary => shown.some(text => text.includes(canary)))).toEqual([])
    expect(shown.filter(text => text.includes('our-batch')).length).toBeGreaterThan(5)
    const begun = await bundle.rows<{ act: string }>(
      `select request->>'act' as act from tokenmill.pending_act join tokenmill.session using (session_hash) where person_id = $1`,
      [limited.personId],
    )
    // One's own passkey; and failed jobs that are ticked, of which a worker decides whose they are.
    expect([...new Set(begun.map(({ act }) => act))].sort()).toEqual(['failed.discard', 'failed.retry', 'passkey.add'])
  })

  it('by GET changes nothing, and shows somebody who sees everything what the others do not see', async () => {
    await endWork()
    const snapshot = openSnapshots(bundle)
    const before = await snapshot()
    expect(Object.keys(before).length).toBeGreaterThan(60)
    const shown: string[] = []
    const isGet = ({ method }: Route) => method === 'GET'
    for (const names of [theirs, nobodys])
      for (const one of routes.filter(isGet).flatMap(route => callsOf(route, names)))
        shown.push((await ask(one, all.cookie)).text)
    expect(await snapshot()).toEqual(before)
    expect(CANARIES.filter(canary => !shown.some(text => text.includes(canary)))).toEqual([])
    await bundle.rows(`update tokenmill.client set name = name || 'x' where client_id = $1`, [theirs.client])
    expect(await snapshot()).not.toEqual(before)
  })
})
