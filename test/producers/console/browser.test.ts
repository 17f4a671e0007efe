// The console in a real browser with a virtual authenticator: from the invite to an act that a worker has checked. Any
// violation of the content security policy fails the test in which it happens.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import type { PersonRole } from '../../../src/store/person/persons.ts'
import { describeChromium, openBrowser } from '../../examples/chromium.ts'
import { failCopy, KIND } from '../../workers/act/failed-copies.ts'
import { type ConsoleBundle, OURS, openConsoleBundle, THEIRS } from './bundle.ts'
import { enrolled as enrol, invite as inviteTo, takeSeat as openSeat, type Seat, signIn as signInTo } from './seats.ts'

const HOSTILE = `"><img src=x onerror="window.pwned=1"><script>window.pwned=1</script>`

describeChromium('the console', () => {
  let bundle: ConsoleBundle
  let browser: Browser
  let ada: Seat
  const complaints: string[] = []

  beforeAll(async () => {
    ;[bundle, browser] = await Promise.all([openConsoleBundle(), openBrowser()])
    await bundle.installation.openWorkers({ roles: ['interactive'] })
    ada = await enrolled('ada', ['ADMIN'])
  })
  afterAll(async () => {
    await browser?.close()
    await bundle?.close()
  })
  afterEach(() => expect(complaints.splice(0)).toEqual([]))

  const takeSeat = () => openSeat({ browser, complaints })
  const invite = (name: string, roles: PersonRole[]) => inviteTo(bundle, name, roles)
  const signIn = (seat: Seat) => signInTo(seat, bundle.origin)
  /** A person who came by an invite and signed in with the passkey that it ended in. */
  const enrolled = (name: string, roles: PersonRole[], entities: string[] | null = null) =>
    enrol({ bundle, browser, complaints }, name, roles, entities)
  const stateOf = async (no: number) => {
    const [row] = await bundle.rows<{ paused: boolean; cancelled: boolean }>(
      `select paused_at is not null as paused, cancelled_at is not null as cancelled from tokenmill.batch where batch_no = $1`,
      [no],
    )
    return row
  }
  async function act({ page }: Seat, no: number, name: string, reason = ''): Promise<void> {
    await page.goto(`${bundle.origin}/batches/${no}/${name}`)
    await page.getByLabel(/^Why\?/).fill(reason)
    await page.locator('button.main').click()
    await page.waitForURL('**/acts/*')
  }
  /** A schedule of reports that may be run. */
  async function addSchedule(): Promise<string> {
    const { clientId } = bundle.installation.credentials.signingKey
    await bundle.rows(`update tokenmill.client set roles = roles || '{REPORT_REQUEST}'::text[] where client_id = $1`, [
      clientId,
    ])
    const [row] = await bundle.rows<{ id: string }>(
      `insert into tokenmill.schedule (schedule_id, kind, client_id, report_type, entity_id, mime_type, time, zone)
select gen_random_uuid(), 'report', client_id, 'PARTNER_COMMISSION_REPORT', entities[1], 'text/csv', '02:00', 'America/New_York'
from tokenmill.client where client_id = $1 returning schedule_id as id`,
      [clientId],
    )
    return row?.id ?? ''
  }
  const sideways = (page: Page) =>
    page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')

  it('lets a person in by an invite, once, and then by the passkey', async () => {
    const link = await invite('bea', ['VIEWER'])
    const bea = await takeSeat()
    const sent: string[] = []
    bea.page.on('request', request => sent.push(`${request.url()} ${request.postData() ?? ''}`))
    await bea.page.goto(link)
    expect(bea.page.url()).toBe(`${bundle.origin}/welcome`)
    await bea.page.getByRole('button', { name: 'Continue' }).click()
    await bea.page.getByText('Your passkey is enrolled').waitFor()
    const secret = link.slice(link.indexOf('#') + 1)
    expect(sent.filter(text => text.includes('/welcome')).length).toBeGreaterThan(2)
    // The browser names the page with its fragment, which it doesn't send.
    expect(sent.filter(text => text.replace(link, '').includes(secret))).toEqual([])
    const cookies = await bea.context.cookies()
    expect(cookies).toEqual([])
    await signIn(bea)
    const [cookie] = await bea.context.cookies()
    expect(cookie).toMatchObject({ name: 'tokenmill-console', httpOnly: true, sameSite: 'Lax', path: '/', expires: -1 })
    const late = await takeSeat()
    await late.page.goto(link)
    await late.page.getByRole('button', { name: 'Continue' }).click()
    await late.page.getByText('does not work any more').waitFor()
    await Promise.all([bea.context.close(), late.context.close()])
  })

  it('pauses and resumes a batch with a touch, and shows the verdict with its audit row', async () => {
    const no = await bundle.addBatch({ batchId: 'to-pause', extentRows: 41_200 })
    await act(ada, no, 'pause', 'the file\nis wrong')
    const { page } = ada
    await page.getByText('Done.').waitFor()
    expect(await page.textContent('main')).toContain('the file is wrong')
    expect(await stateOf(no)).toEqual({ paused: true, cancelled: false })
    const [row] = await bundle.rows<{ actor: string; detail: Record<string, unknown>; name: string }>(
      `select a.actor, a.detail, p.name from tokenmill.audit as a join tokenmill.person as p on a.actor = 'person:' || p.person_id
where a.action = 'batch.pause' and a.subject = 'to-pause' and a.outcome = 'done'`,
    )
    expect(row).toMatchObject({ name: 'ada', detail: { reason: 'the file is wrong' } })
    await page.getByRole('link', { name: 'Back to the batch' }).click()
    await page.locator('.state', { hasText: 'PAUSED' }).waitFor()
    await page.getByRole('link', { name: 'Resume…' }).click()
    expect(await page.textContent('button.main')).toBe('Resume 41,200 rows')
    await page.locator('button.main').click()
    await page.getByText('Done.').waitFor()
    expect(await stateOf(no)).toEqual({ paused: false, cancelled: false })
  })

  it('cancels for an ADMIN, and offers it to nobody else', async () => {
    const no = await bundle.addBatch({ batchId: 'to-cancel' })
    const olga = await enrolled('olga', ['OPERATOR'], [OURS])
    await olga.page.goto(`${bundle.origin}/batches/${no}`)
    expect(await olga.page.locator('.acts').textContent()).toBe('Pause…')
    await olga.page.goto(`${bundle.origin}/batches/${no}/cancel`)
    await olga.page.getByText('Your roles do not permit this').waitFor()
    const theirs = await bundle.addBatch({ entityId: THEIRS })
    expect((await olga.page.goto(`${bundle.origin}/batches/${theirs}`))?.status()).toBe(404)
    await act(ada, no, 'cancel')
    await ada.page.getByText('Done.').waitFor()
    expect(await stateOf(no)).toEqual({ paused: false, cancelled: true })
    await olga.context.close()
  })

  it('retries failed jobs with a touch, and shows that workers have done it', async () => {
    const { credentials, queues } = bundle.installation
    const copies = await Promise.all([1, 2, 3].map(() => failCopy(queues, { credentials })))
    const { page } = ada
    await page.goto(`${bundle.origin}/failed`)
    await page.getByLabel('Kind').selectOption(KIND)
    await page.getByRole('button', { name: 'Show' }).click()
    await page.getByRole('link', { name: 'Retry all of these…' }).click()
    await page.getByLabel(/^Why\?/).fill('the folder is back')
    await page.getByRole('button', { name: 'Retry 3 jobs' }).click()
    await page.waitForURL('**/acts/*')
    await page.getByText('3 jobs sent again').waitFor()
    expect((await queues.depth(KIND)).waiting).toBe(3)
    const one = await failCopy(queues, { credentials })
    await page.goto(`${bundle.origin}/failed/${KIND}/${one.id}/discard`)
    await page.getByLabel(/^Why\?/).fill('not needed')
    await page.getByRole('button', { name: 'Discard 1 job' }).click()
    await page.getByText('1 job discarded').waitFor()
    const rows = await bundle.rows<{ action: string; credential: string }>(
      `select action, detail->>'credential' as credential from tokenmill.audit where subject = any ($1) order by audit_id`,
      [[...copies, one].map(({ id }) => id)],
    )
    expect(rows.map(({ action }) => action)).toEqual([...copies.map(() => 'failed.retry'), 'failed.discard'])
    expect(new Set(rows.map(({ credential }) => credential)).size).toBe(1)
  })

  it('pauses, resumes and runs a schedule with a touch each', async () => {
    const { page } = ada
    const id = await addSchedule()
    const [day] = await bundle.rows<{ day: string }>(`select ((now() at time zone 'UTC')::date - 1)::text as day`)
    const does = async (link: string, button: string) => {
      await page.goto(`${bundle.origin}/reports`)
      await page.locator(`a[href="/reports/schedules/${id}"]`).click()
      await page.getByRole('link', { name: link }).click()
      await page.getByLabel(/^Why\?/).fill('the folder moves')
      await page.getByRole('button', { name: button }).click()
      await page.getByText('Done.').waitFor()
    }
    await does('Pause…', 'Pause this schedule')
    await page.locator('.state', { hasText: 'PAUSED' }).waitFor()
    await does('Resume…', 'Resume this schedule')
    await does('Run a day now…', `Run ${day?.day} now`)
    await page.getByRole('link', { name: 'Back to the schedule' }).click()
    await page.getByRole('link', { name: day?.day ?? '' }).click()
    expect(await page.textContent('h1')).toContain('DUE')
    const rows = await bundle.rows<{ action: string; credential: string }>(
      `select action, detail->>'credential' as credential from tokenmill.audit where subject = $1 and outcome = 'done' order by audit_id`,
      [id],
    )
    expect(rows.map(({ action }) => action)).toEqual(['schedule.pause', 'schedule.resume', 'schedule.run'])
    expect(rows.every(({ credential }) => credential !== null)).toBe(true)
  })

  it('refuses an act whose batch changed after it was shown', async () => {
    const no = await bundle.addBatch({ batchId: 'changes' })
    const { page } = ada
    await page.goto(`${bundle.origin}/batches/${no}/cancel`)
    await bundle.rows('update tokenmill.batch set paused_at = now() where batch_no = $1', [no])
    await page.locator('button.main').click()
    await page.getByText('Not done.').waitFor()
    expect(await page.textContent('main')).toContain('changed_meanwhile')
    expect(await stateOf(no)).toMatchObject({ cancelled: false })
  })

  it('does nothing without the user’s verification', async () => {
    const no = await bundle.addBatch({ batchId: 'unverified' })
    const { page, cdp, authenticatorId } = ada
    await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false })
    await page.goto(`${bundle.origin}/batches/${no}/pause`)
    await page.locator('button.main').click()
    await page.getByText('The passkey was not used').waitFor()
    await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true })
    expect(await stateOf(no)).toEqual({ paused: false, cancelled: false })
  })

  it('refuses a passkey whose counter went back, as that of a copy does', async () => {
    const { cdp, authenticatorId, page } = ada
    const no = await bundle.addBatch({ batchId: 'copied' })
    const { credentials } = await cdp.send('WebAuthn.getCredentials', { authenticatorId })
    const put = async (ahead: number) => {
      for (const { signCount, ...credential } of credentials) {
        const { credentialId } = credential
        await cdp.send('WebAuthn.removeCredential', { authenticatorId, credentialId })
        const copy = { ...credential, signCount: signCount + ahead }
        await cdp.send('WebAuthn.addCredential', { authenticatorId, credential: copy })
      }
    }
    await act(ada, no, 'pause')
    await page.getByText('Done.').waitFor()
    // The copy counts on from where it was made, as the passkey itself did.
    await put(0)
    await act(ada, no, 'resume')
    await page.getByText('Not done.').waitFor()
    expect(await page.textContent('main')).toContain('passkey_counter')
    expect(await stateOf(no)).toMatchObject({ paused: true })
    // One that counts on from the last touch is the person's.
    await put(9)
    await act(ada, no, 'resume')
    await page.getByText('Done.').waitFor()
    expect(await stateOf(no)).toMatchObject({ paused: false })
  })

  it('takes a proof once, for its own act, and from its own pages only', async () => {
    const no = await bundle.addBatch({ batchId: 'stolen' })
    const other = await bundle.addBatch({ batchId: 'other' })
    const cookie = (await ada.context.cookies()).map(({ name, value }) => `${name}=${value}`).join()
    const begin = async (of: number) => {
      const json = { seen: 'RUNNING', reason: '' }
      const begun = await bundle.call('POST', `/batches/${of}/cancel/begin`, { cookie, json })
      return JSON.parse(begun.text) as { nonce: string; get: { challenge: string; allowCredentials: string[] } }
    }
    const send = async (nonce: string, proof: string) => {
      const sent = await bundle.call('POST', `/batches/${no}/cancel`, {
        cookie,
        form: { seen: 'RUNNING', nonce, proof },
      })
      if (sent.status !== 303) return sent.text
      return (await bundle.call('GET', String(sent.headers['location']), { cookie })).text
    }
    // The domain of passkeys is `localhost`, whatever the port: a page of another port can ask for a touch, too.
    const elsewhere = await servePage()
    const page = await ada.context.newPage()
    const cdp = await ada.context.newCDPSession(page)
    await cdp.send('WebAuthn.enable')
    const { credentials } = await ada.cdp.send('WebAuthn.getCredentials', { authenticatorId: ada.authenticatorId })
    const options = {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    } as const
    const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', { options })
    for (const credential of credentials) {
      const signCount = credential.signCount + 10
      await cdp.send('WebAuthn.addCredential', { authenticatorId, credential: { ...credential, signCount } })
    }
    const { port } = elsewhere.address() as AddressInfo
    await page.goto(`http://localhost:${port}/`)
    const first = await begin(no)
    expect(await send(first.nonce, await touch(page, first.get))).toContain('passkey_origin')
    await page.goto(`${bundle.origin}/sign-in`)
    const [second, third] = [await begin(no), await begin(other)]
    const proof = await touch(page, second.get)
    expect(await send(third.nonce, proof)).toContain('passkey_challenge')
    expect(await stateOf(other)).toMatchObject({ cancelled: false })
    expect(await send(second.nonce, await touch(page, second.get))).toContain('Done.')
    expect(await send(second.nonce, proof)).toContain('was sent before')
    expect(await send('AAAAAAAAAAAAAAAAAAAAAA', proof)).toContain('was sent before')
    await page.close()
    elsewhere.close()
    await new Promise(resolve => elsewhere.once('close', resolve))
  })

  it('shows hostile texts as texts, whoever chose them', async () => {
    const reasons = JSON.stringify({ REJECTED: { [HOSTILE]: 3 } })
    const no = await bundle.addBatch({ batchId: HOSTILE, counts: { REJECTED: 3 }, rowsDone: 3 })
    await bundle.rows('update tokenmill.batch set source_name = $2, reasons = $3 where batch_no = $1', [
      no,
      HOSTILE,
      reasons,
    ])
    await bundle.rows('update tokenmill.client set name = $1 where name = $2', [HOSTILE, 'first'])
    const { page } = ada
    for (const path of ['/batches', `/batches/${no}`, `/batches/${no}/pause`]) {
      await page.goto(`${bundle.origin}${path}`)
      expect(await page.textContent('main')).toContain('window.pwned=1')
      expect(await page.locator('img, main script:not([src="/live.js"])').count()).toBe(0)
      expect(await page.evaluate('window.pwned')).toBeUndefined()
    }
    await act(ada, no, 'pause', HOSTILE)
    expect(await page.textContent('main')).toContain(HOSTILE)
    expect(await page.evaluate('window.pwned')).toBeUndefined()
  })

  it('copies an id as a whole, by keyboard, and says so', async () => {
    const batchId = `2026-11-23-${'x'.repeat(40)}-end`
    const no = await bundle.addBatch({ batchId })
    const { page, context } = ada
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: bundle.origin })
    await page.goto(`${bundle.origin}/batches/${no}`)
    expect(await page.textContent('h1')).not.toContain('Copy')
    const button = page.getByRole('button', { name: `Copy ${batchId}` }).first()
    await button.focus()
    await page.keyboard.press('Enter')
    await page.locator('.copy-said', { hasText: 'Copied' }).waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(batchId)
    // In a list the button shows only in the row that has the focus.
    await page.goto(`${bundle.origin}/batches`)
    const inRow = page.getByRole('row').filter({ hasText: '-end' }).locator('button.copy').first()
    expect(await inRow.isVisible()).toBe(false)
    await page.getByRole('link', { name: /-end$/ }).first().focus()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.locator('.copy-said', { hasText: 'Copied' }).waitFor()
    await context.clearPermissions()
  })

  it('shows no button that copies without scripts', async () => {
    const no = await bundle.addBatch()
    const context = await browser.newContext({ javaScriptEnabled: false })
    await context.addCookies(
      (await ada.context.cookies()).map(({ name, value }) => ({ name, value, url: bundle.origin })),
    )
    const page = await context.newPage()
    await page.goto(`${bundle.origin}/batches/${no}`)
    expect(await page.locator('code.id').count()).toBeGreaterThan(0)
    expect(await page.locator('button.copy').count()).toBe(0)
    await context.close()
  })

  it('scrolls sideways on no screen, light or dark', async () => {
    const no = await bundle.addBatch({ batchId: 'x'.repeat(64), rowsDone: 900_000_000, extentRows: 1_234_567_890 })
    await bundle.rows(
      `insert into tokenmill.batch_sample (batch_no, at, rows_done, rows_refused, state)
select $1, now() - make_interval(mins => 60 - n), n * 15000000, n * 1000000, case when n between 20 and 40 then 'PAUSED' else 'RUNNING' end
from generate_series(0, 60) as n`,
      [no],
    )
    const { credentials, queues } = bundle.installation
    const { id } = await failCopy(queues, { credentials, reference: 'x'.repeat(64), jti: 'x'.repeat(64) })
    const schedule = await addSchedule()
    const [entity] = await bundle.rows<{ id: string }>(
      `insert into tokenmill.schedule_run (schedule_id, business_date, entity_id, state, due_at, reason, ended_at)
select schedule_id, '2026-11-22', entity_id, 'FAILED', now(), 'files_away', now() from tokenmill.schedule where schedule_id = $1
returning entity_id as id`,
      [schedule],
    )
    const reports = ['/reports', `/reports/schedules/${schedule}`, `/reports/schedules/${schedule}/run`]
    reports.push(`/reports/runs/${schedule}/2026-11-22/${entity?.id}`)
    const failed = ['/failed', `/failed/${KIND}/${id}`, `/failed/all/retry?kind=${KIND}`]
    const { page } = ada
    for (const width of [1_440, 960, 768, 375]) {
      await page.setViewportSize({ width, height: 800 })
      const own = ['/batches', `/batches/${no}`, `/batches/${no}/refused`, `/batches/${no}/cancel`]
      for (const path of [...own, ...failed, ...reports, '/sessions', '/passkeys', '/passkeys/add']) {
        await page.goto(`${bundle.origin}${path}`)
        expect(await sideways(page), `${path} at ${width}`).toBe(0)
      }
      // The chart's texts keep their size, and its lines fill the width.
      await page.goto(`${bundle.origin}/batches/${no}`)
      const size = `getComputedStyle(document.querySelector('.plot text.word')).fontSize`
      expect(await page.evaluate(size)).toBe('12px')
      const share = `document.querySelector('.plot .edge').getBoundingClientRect().width / document.querySelector('.plot').clientWidth`
      expect(await page.evaluate(share)).toBeGreaterThan(0.98)
      await page.getByText('The same as a table').click()
      expect(await sideways(page), `the table at ${width}`).toBe(0)
    }
    await page.setViewportSize({ width: 1_440, height: 900 })
  })

  it('filters the list by its form, and gives it as a file', async () => {
    const { page } = ada
    const no = await bundle.addBatch({
      batchId: 'finished-one',
      more: 'chunks_done = 1, finished_at = now(), revision = 1',
    })
    await page.goto(`${bundle.origin}/batches`)
    await page.getByLabel('State').selectOption('finished')
    await page.getByRole('button', { name: 'Show' }).click()
    await page.waitForURL('**/batches?state=finished*')
    expect(await page.locator('.batches tbody tr').count()).toBe(1)
    expect(await page.getByRole('link', { name: 'finished-one' }).getAttribute('href')).toBe(`/batches/${no}`)
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'These batches as CSV' }).click(),
    ])
    expect(download.suggestedFilename()).toBe('batches.csv')
  })

  it('adds a passkey by a touch of another one, and removes one by a touch of another one', async () => {
    const nora = await enrolled('nora', ['VIEWER'])
    const { page, cdp, authenticatorId: first } = nora
    const options = {
      protocol: 'ctap2',
      transport: 'usb',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    } as const
    const { authenticatorId: second } = await cdp.send('WebAuthn.addVirtualAuthenticator', { options })
    /** Lets the person touch one of the two. */
    const hold = async (authenticatorId: string, enabled: boolean) =>
      cdp.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled })
    const use = async (one: string) => {
      await hold(one === first ? second : first, false)
      await hold(one, true)
    }
    await use(second)
    await page.goto(`${bundle.origin}/sessions`)
    await page.getByRole('link', { name: 'Your passkeys' }).click()
    expect(await page.textContent('main')).toContain('the last one stays')
    await page.getByRole('link', { name: 'Add a passkey…' }).click()
    // The new passkey is made by the second one, and confirmed by the first.
    await page.route('**/passkeys/add/touch', async route => {
      await use(first)
      await route.continue()
    })
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    await page.getByText('The new passkey signs you in from now on.').waitFor()
    await page.locator('.up a').click()
    expect(await page.getByRole('link', { name: 'Remove…' }).count()).toBe(2)
    expect(await sideways(page)).toBe(0)
    // Another session of the person, who may be somebody else by now.
    await bundle.rows(
      `insert into tokenmill.session (session_hash, person_id, expires_at, address)
select sha256('elsewhere'), person_id, now() + interval '1 hour', '::1' from tokenmill.person where name = 'nora'`,
    )
    const sessionsOf = () =>
      bundle.rows(
        `select 1 from tokenmill.session join tokenmill.person using (person_id)
where name = 'nora' and session.revoked_at is null`,
      )
    expect(await sessionsOf()).toHaveLength(2)
    await page.goto(`${bundle.origin}/passkeys`)
    // The oldest stands first: it is removed by a touch of the new one.
    await page.getByRole('link', { name: 'Remove…' }).first().click()
    await use(second)
    await page.getByRole('button', { name: 'Remove this passkey' }).click()
    await page.getByText('The passkey is of no use now.').waitFor()
    expect(await sessionsOf()).toHaveLength(1)
    await signIn(nora)
    await use(first)
    await page.goto(`${bundle.origin}/sign-in`)
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByText('This passkey does not sign you in here').waitFor()
    await nora.context.close()
  })

  it('ends a session where its person signs out', async () => {
    const { page, context } = ada
    const [cookie] = await context.cookies()
    await page.goto(`${bundle.origin}/sessions`)
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await page.waitForURL('**/sign-in')
    expect(await context.cookies()).toEqual([])
    const again = await bundle.call('GET', '/batches', { cookie: `${cookie?.name}=${cookie?.value}` })
    expect(again.status).toBe(303)
  })
})

/** A page of another origin under the same host name. */
function servePage(): Promise<Server> {
  const server = createServer((_request, response) =>
    response.setHeader('content-type', 'text/html').end('<p>elsewhere'),
  )
  return new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(server)))
}

/** A proof of the page's authenticator for a challenge, as the module passkey.js makes it. */
function touch(page: Page, asked: { challenge: string; allowCredentials: string[] }): Promise<string> {
  const script = `(async ({ challenge, allowCredentials }) => {
    const bytes = text => Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), c => c.charCodeAt(0))
    const text = buffer => btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
    const { rawId, response } = await navigator.credentials.get({ publicKey: { challenge: bytes(challenge), rpId: 'localhost',
      userVerification: 'required', allowCredentials: allowCredentials.map(id => ({ type: 'public-key', id: bytes(id) })) } })
    return JSON.stringify({ credential_id: text(rawId), client_data_json: text(response.clientDataJSON),
      authenticator_data: text(response.authenticatorData), signature: text(response.signature) })
  })(${JSON.stringify(asked)})`
  return page.evaluate(script) as Promise<string>
}
