// Each act of the console, and whatever else a page sends, by a person who has no mouse: reached by Tab alone, done with Enter, and the
// focus is on what came of it. Any violation of the content security policy fails the test.
import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { ACTS } from '../../../../src/job/system/act.ts'
import { describeChromium, openBrowser } from '../../../examples/chromium.ts'
import { press } from '../looks/keys.ts'
import { listRoutes } from '../looks/pages.ts'
import { openOpenIdBundle } from '../openid/bundle.ts'
import { enrolled, type Seat, takeSeat } from '../seats.ts'
import { ACCOUNT, go, type Hands, open, WALKS, write } from './walks.ts'

/** Nobody presses it: the page of a wall display's link sends it by itself. */
const BY_ITSELF = ['/display/open']

describeChromium('by keys alone', () => {
  let browser: Browser
  let hands: Hands
  const complaints: string[] = []
  /** The paths of what pages sent. */
  const sent = new Set<string>()

  beforeAll(async () => {
    const [bundle, opened] = await Promise.all([openOpenIdBundle(), openBrowser()])
    browser = opened
    await bundle.installation.openWorkers({ roles: ['interactive'] })
    const { clientId } = bundle.installation.credentials.signingKey
    await bundle.rows(`update tokenmill.client set roles = roles || '{REPORT_REQUEST}'::text[] where client_id = $1`, [
      clientId,
    ])
    bundle.provider.open(`${bundle.origin}/openid/callback`)
    bundle.provider.account = ACCOUNT
    hands = {
      bundle,
      ada: await enrolled({ bundle, browser, complaints }, 'ada', ['ADMIN']),
      takeSeat: async () => listening(await takeSeat({ browser, complaints })),
    }
    listening(hands.ada)
    await hands.ada.page.clock.install()
  })
  afterAll(async () => {
    await browser?.close()
    await hands?.bundle.close()
  })
  afterEach(() => expect(complaints.splice(0)).toEqual([]))

  function listening(seat: Seat): Seat {
    seat.page.on('request', request => {
      if (request.method() === 'POST') sent.add(new URL(request.url()).pathname)
    })
    return seat
  }
  const done = async (action: string) => {
    const text = `select count(*)::int as n from tokenmill.audit where action = $1 and outcome = 'done'`
    return (await hands.bundle.rows<{ n: number }>(text, [action]))[0]?.n ?? 0
  }

  it.each(ACTS)('%s is done', async act => {
    const walk = WALKS[act]
    if (!walk) throw new Error(`${act} is done by no keys. Add how to WALKS (test/producers/console/acts/walks.ts).`)
    const before = await done(act)
    await walk(hands)
    expect(await done(act)).toBeGreaterThan(before)
  })

  it('what is looked for is found', async () => {
    const { bundle, ada } = hands
    await bundle.addBatch({ batchId: 'keys-search' })
    await ada.page.goto(`${bundle.origin}/now`)
    await write(ada.page, /^Explain a job/, 'keys-search')
    await go(ada.page, 'Explain')
    expect(await ada.page.textContent('h1')).toContain('keys-search')
    await open(hands, '/audit')
    await write(ada.page, /^About one subject/, 'keys-pause')
    await go(ada.page, 'Find')
    expect(await ada.page.textContent('main')).toContain('Only rows about')
  })

  it('sessions are ended, one, this one and all', async () => {
    const { bundle, ada } = hands
    const { page } = ada
    const live = async () => {
      const text = `select count(*)::int as n from tokenmill.session join tokenmill.person using (person_id)
where name = 'ada' and session.revoked_at is null`
      return (await bundle.rows<{ n: number }>(text))[0]?.n
    }
    const signIn = async () => {
      await go(page, 'Sign in with a passkey')
    }
    const addSession = () =>
      bundle.rows(
        `insert into tokenmill.session (session_hash, person_id, expires_at, address)
select sha256('elsewhere'), person_id, now() + interval '1 hour', '::1' from tokenmill.person where name = 'ada'
on conflict (session_hash) do update set revoked_at = null`,
      )
    await addSession()
    expect(await live()).toBe(2)
    await open(hands, '/sessions')
    const [ended] = await Promise.all([page.waitForResponse('**/sessions'), press(page, 'End')])
    await ended.finished()
    expect(await live()).toBe(1)
    await go(page, 'Sign out')
    expect(await live()).toBe(0)
    await signIn()
    await addSession()
    await open(hands, '/sessions')
    await go(page, 'Sign out everywhere')
    expect(await live()).toBe(0)
    await signIn()
  })

  it('an account at the provider signs in', async () => {
    const { page } = await hands.takeSeat()
    await page.goto(`${hands.bundle.origin}/sign-in`)
    await press(page, 'Sign in with Keycloak')
    await page.getByText('no person here is connected').waitFor()
    await page.context().close()
  })

  it('whatever a page sends was sent', async () => {
    const isSent = (route: string) => {
      const pattern = new RegExp(`^${route.replace(/:\w+/g, '[^/]+')}$`)
      return [...sent].some(path => pattern.test(path))
    }
    const routes = await listRoutes('POST')
    expect(routes.length).toBeGreaterThan(20)
    const missing = routes.filter(route => !isSent(route))
    // A page that sends something new is gone through above.
    expect(missing).toEqual(BY_ITSELF)
  })
})
