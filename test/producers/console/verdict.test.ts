// The page of an act says no more than is known: where the answer of a worker is lost, that it may have been done.
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readSystemKey } from '../../../cli/open/system-clients.ts'
import { openSender } from '../../../producers/console/act-sender.ts'
import { systemClock } from '../../../src/clock.ts'
import type { Act } from '../../../src/job/system/act.ts'
import { openLog } from '../../../src/log.ts'
import { type ConsoleBundle, openConsoleBundle, type Person } from './bundle.ts'

let bundle: ConsoleBundle
let ada: Person
let batchNo: number
beforeAll(async () => {
  bundle = await openConsoleBundle()
  ada = await bundle.addPerson('ada')
  batchNo = await bundle.addBatch({ batchId: 'nightly', more: 'paused_at = now()' })
})
afterAll(() => bundle?.close())

/** An act that was sent, whose time ended `overS` seconds ago. */
async function addSent(overS: number, verdict?: { done: null }): Promise<string> {
  const nonce = randomBytes(16).toString('base64url')
  const request = { act: 'batch.cancel', subject: 'nightly', person_id: ada.personId, reason: null }
  await bundle.rows(
    `insert into tokenmill.pending_act (nonce, session_hash, batch_no, request, expires_at, sent_at, verdict)
values ($1, $2, $3, $4, now() - make_interval(secs => $5), now(), $6)`,
    [nonce, ada.sessionHash, batchNo, JSON.stringify(request), overS, verdict ? JSON.stringify(verdict) : null],
  )
  return nonce
}
const pageOf = async (nonce: string) => (await bundle.call('GET', `/acts/${nonce}`, { cookie: ada.cookie })).text

it('waits while an answer can come, and then says that it is not known', async () => {
  const waiting = await pageOf(await addSent(-100))
  expect(waiting).toContain('http-equiv="refresh"')
  for (const nonce of [await addSent(60), await addSent(-100, { done: null })]) {
    const page = await pageOf(nonce)
    expect(page).not.toContain('http-equiv="refresh"')
    expect(page).not.toContain('Not done.')
    for (const words of ['Not known.', 'may have been done', 'PAUSED', 'tokenmill']) expect(page).toContain(words)
  }
})

it('tells an enrolment how it ended, if that comes late', async () => {
  const end = async (verdict: object | null) => {
    const nonce = await addSent(-100)
    await bundle.rows('update tokenmill.pending_act set session_hash = null, verdict = $2 where nonce = $1', [
      nonce,
      verdict && JSON.stringify(verdict),
    ])
    return bundle.call('GET', `/welcome/${nonce}`)
  }
  expect((await end(null)).text).toContain('http-equiv="refresh"')
  expect((await end({ done: false, reason: 'x', text: 'It was used before.' })).text).toContain('It was used before.')
  expect((await end({ done: null })).text).toContain('not known')
  expect((await end({ done: true, auditId: null })).headers['location']).toBe('/sign-in?enrolled=')
  expect((await bundle.call('GET', `/welcome/${await addSent(-100)}`)).status).toBe(404)
})

it('keeps no session alive by asking again', async () => {
  const nonce = await addSent(-100)
  const at = `update tokenmill.session set seen_at = now() - interval '10 minutes' where session_hash = $1`
  await bundle.rows(at, [ada.sessionHash])
  await pageOf(nonce)
  const [row] = await bundle.rows<{ old: boolean }>(
    `select seen_at < now() - interval '9 minutes' as old from tokenmill.session where session_hash = $1`,
    [ada.sessionHash],
  )
  expect(row).toEqual({ old: true })
})

it('is not known where the console ends while it waits, and not done where nothing was sent', async () => {
  const { session, dataDir, queues } = bundle.installation
  const signingKey = await readSystemKey(dataDir, 'console')
  const trusted = { findKey: () => undefined } as never
  const { audience } = session.config
  const sender = openSender({
    queues,
    signingKey,
    isKeyLive: () => true,
    trusted,
    audience,
    clock: systemClock,
    log: openLog('silent'),
  })
  await sender.ready
  const act = (leftS: number): Act => ({
    act: 'batch.cancel',
    subject: 'nightly',
    parameters: {},
    seen: 'RUNNING',
    reason: null,
    person_id: ada.personId,
    nonce: randomBytes(16).toString('base64url'),
    expires_at: Math.floor(Date.now() / 1000) + leftS,
    proof: null,
  })
  expect(await sender.send(act(0))).toMatchObject({ done: false, reason: 'not_sent' })
  const waiting = sender.send(act(100))
  await new Promise(resolve => setTimeout(resolve, 500))
  await sender.close()
  expect(await waiting).toEqual({ done: null })
})
