// The link that `start` prints, opened in a real browser: it signs the local person in, and its secret isn't sent.

import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { followSigningKeys } from '../../../cli/open/pinned-keys.ts'
import { readSystemKey } from '../../../cli/open/system-clients.ts'
import { makeStartLink } from '../../../cli/process/start-link.ts'
import { openConsole } from '../../../producers/console/main.ts'
import { noteAnswers } from '../../../producers/console/server/away.ts'
import { systemClock } from '../../../src/clock.ts'
import { CATALOGUE } from '../../../src/job/composition.ts'
import { openRegistry } from '../../../src/metrics.ts'
import { openUngrantedCounter } from '../../../src/vault/ring/ungranted.ts'
import { describeChromium, openBrowser, takeViolations } from '../../examples/chromium.ts'
import { until } from '../../support/until.ts'
import { type ConsoleBundle, openConsoleBundle } from './bundle.ts'

describeChromium('the link of `start`', () => {
  let bundle: ConsoleBundle
  let browser: Browser
  beforeAll(async () => {
    ;[bundle, browser] = await Promise.all([openConsoleBundle(), openBrowser()])
  })
  afterAll(async () => {
    await browser?.close()
    await bundle?.close()
  })

  it('signs in once, and sends no secret', async () => {
    const { session, vault, dataDir, queues } = bundle.installation
    const { config, log, lifetime } = session
    const registry = openRegistry({ role: 'console' })
    const served = await openConsole({
      config: { ...config, metricsPort: 0 },
      settings: { port: 0, origin: undefined },
      isEmbedded: true,
      registry,
      log,
      lifetime,
      queues,
      catalogue: CATALOGUE,
      installationId: vault.installationId,
      tls: undefined,
      ...noteAnswers(vault.store, systemClock),
      signingKey: await readSystemKey(dataDir, 'console'),
      trusted: await followSigningKeys(session, { store: vault.store, ungranted: openUngrantedCounter(registry) }),
    })
    const link = await makeStartLink(vault, served.site.origin)
    const page = await browser.newPage()
    const sent: string[] = []
    page.on('request', request => sent.push(request.postData() ?? ''))
    await page.goto(link)
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.waitForURL('**/now')
    expect(await page.textContent('.environment')).toBe('LOCAL')
    // The link is no passkey, so it adds none.
    for (const path of ['/passkeys', '/passkeys/add']) {
      await page.goto(`${served.site.origin}${path}`)
      expect(await page.textContent('main')).toContain('which is no passkey')
    }
    const begun = await page.evaluate(
      `fetch('/passkeys/add/begin', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }).then(answer => answer.status)`,
    )
    expect(begun).toBe(403)
    await page.goto(`${served.site.origin}/batches`)
    expect(sent.some(text => text.includes('lookup'))).toBe(true)
    expect(sent.join()).not.toContain(link.slice(link.indexOf('#') + 1))
    await page.goto(link)
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByText('does not work any more').waitFor()
  })

  it('leads to pages whose violations of the policy fail a test, whoever opened them', async () => {
    const own = await browser.newPage()
    const context = await browser.newContext()
    const [first] = await Promise.all([context.newPage(), own.goto(`${bundle.origin}/sign-in`)])
    await first.goto(`${bundle.origin}/sign-in`)
    const [popup] = await Promise.all([context.waitForEvent('page'), first.evaluate(`void open('/welcome')`)])
    await popup.waitForLoadState()
    const wrongs = [
      `document.body.append(Object.assign(document.createElement('img'), { src: 'https://evil.example/x' }))`,
      `document.body.setAttribute('style', 'color: red')`,
      `try { document.body.innerHTML = '<p>x' } catch {}`,
    ]
    for (const page of [own, first, popup])
      for (const wrong of wrongs) {
        await page.evaluate(wrong)
        const [violation] = await until(() => {
          const taken = takeViolations()
          return taken.length > 0 && taken
        })
        expect(violation).toContain(page.url())
      }
  })
})
