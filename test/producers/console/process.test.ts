// The console in a separate process: its settings and its end; and the link of `start`, which is of the embedded engine alone.

import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { followSigningKeys } from '../../../cli/open/pinned-keys.ts'
import { readSystemKey } from '../../../cli/open/system-clients.ts'
import { openConsole } from '../../../producers/console/main.ts'
import { noteAnswers } from '../../../producers/console/server/away.ts'
import { ensureLocalPerson } from '../../../src/acts/person.ts'
import { systemClock } from '../../../src/clock.ts'
import { CATALOGUE } from '../../../src/job/composition.ts'
import { openRegistry } from '../../../src/metrics.ts'
import * as challenges from '../../../src/store/console/challenges.ts'
import { hashOfLookup } from '../../../src/vault/passkey/invite-key.ts'
import { openUngrantedCounter } from '../../../src/vault/ring/ungranted.ts'
import { startScript } from '../../support/process.ts'
import { untilReady } from '../../support/ready.ts'
import { type ConsoleBundle, callOf, openConsoleBundle } from './bundle.ts'

let bundle: ConsoleBundle
beforeAll(async () => {
  bundle = await openConsoleBundle()
  await bundle.installation.openWorkers({ roles: ['interactive'] })
})
afterAll(() => bundle?.close())

const start = (env: Record<string, string> = {}) =>
  startScript('cli/main.ts', ['console'], {
    env: { ...(bundle.installation.env as Record<string, string>), TOKENMILL_LOG_LEVEL: 'error', ...env },
  })

describe('tokenmill console', () => {
  it('says in one line what is wrong, and ends', async () => {
    const wrong: [Record<string, string>, number, RegExp][] = [
      [
        {},
        1,
        /^tokenmill: TOKENMILL_CONSOLE_PORT: something listens on .* already; end that process, or set another port\n$/,
      ],
      [
        { TOKENMILL_CONSOLE_ORIGIN: 'http://console.example' },
        78,
        /^tokenmill: TOKENMILL_CONSOLE_ORIGIN: must be https/,
      ],
      [
        { TOKENMILL_CONSOLE_ORIGIN: 'https://a.example/x' },
        78,
        /^tokenmill: TOKENMILL_CONSOLE_ORIGIN: must be an origin/,
      ],
      [{ TOKENMILL_DATA_DIR: '/nowhere' }, 78, /console\.jwk/],
      [
        { TOKENMILL_OIDC_ISSUER: 'https://login.example.com' },
        78,
        /^tokenmill: TOKENMILL_OIDC_CLIENT_ID: must be set, because TOKENMILL_OIDC_ISSUER is; .*\n$/,
      ],
    ]
    await Promise.all(
      wrong.map(async ([env, code, line]) => {
        const child = start(env)
        expect(await child.exit, child.stderr()).toMatchObject({ code })
        expect(child.stderr()).toMatch(line)
      }),
    )
  })

  it('is ready with its port of metrics, without any key of the vault, and ends when it is told to', async () => {
    const env = {
      TOKENMILL_CONSOLE_PORT: '0',
      TOKENMILL_CONSOLE_ORIGIN: '',
      TOKENMILL_KEK_FILE: '',
      TOKENMILL_LOG_LEVEL: 'info',
    }
    const child = start(env)
    const [, ops = ''] = await child.line(/"opsPort":(\d+),"msg":"showing metrics"/, { stream: 'stderr' })
    const [, port = ''] = await child.line(/"port":(\d+),"msg":"serving"/, { stream: 'stderr' })
    await untilReady(`http://127.0.0.1:${ops}`)
    expect((await fetch(`http://localhost:${port}/sign-in`)).status).toBe(200)
    expect(await (await fetch(`http://127.0.0.1:${ops}/metrics`)).text()).toMatch(
      /tokenmill_http_request_seconds_count\{[^}]*route="\/sign-in"/,
    )
    child.signal('SIGTERM')
    expect(await child.exit).toMatchObject({ code: 0 })
  })

  it('ends with 78 where every passkey is bound to another domain', async () => {
    const { personId } = await bundle.addPerson('moved')
    await bundle.rows(
      `insert into tokenmill.person_credential (credential_id, person_id, public_jwk, alg, rp_id, sign_count) values ('elsewhere', $1, '{}', 'ES256', 'console.example', 0)`,
      [personId],
    )
    const child = start({ TOKENMILL_CONSOLE_PORT: '0' })
    expect(await child.exit, child.stderr()).toMatchObject({ code: 78 })
    expect(child.stderr()).toContain('bound to another domain than localhost')
    await bundle.rows(`delete from tokenmill.person_credential where credential_id = 'elsewhere'`)
  })
})

describe('the link of `start`', () => {
  /** A link as `start` makes it. */
  async function makeLink(): Promise<string> {
    const { vault } = bundle.installation
    const lookup = randomBytes(32).toString('base64url')
    const personId = await ensureLocalPerson(vault)
    await challenges.replaceStartLink(vault.store, { lookupHash: hashOfLookup(lookup), personId, lastsMs: 60_000 })
    return JSON.stringify({ lookup })
  }

  it('signs nobody in where the store is a server’s', async () => {
    const proof = await makeLink()
    const begun = await bundle.call('POST', '/welcome/begin', { json: JSON.parse(proof) })
    expect(begun.status).toBe(403)
    const answer = await bundle.call('POST', '/welcome', { form: { nonce: '', proof } })
    expect([answer.status, answer.headers['set-cookie']]).toEqual([403, undefined])
  })

  it('signs in once; a worker with a server’s store does nothing without a touch all the same', async () => {
    const { session, vault, dataDir, queues } = bundle.installation
    const { config, log, lifetime } = session
    const signingKey = await readSystemKey(dataDir, 'console')
    const { installationId, store } = vault
    const registry = openRegistry({ role: 'console' })
    const served = await openConsole({
      config: { ...config, metricsPort: 0 },
      settings: { port: 0, origin: undefined },
      installationId,
      isEmbedded: true,
      log,
      lifetime,
      queues,
      catalogue: CATALOGUE,
      signingKey,
      trusted: await followSigningKeys(session, { store, ungranted: openUngrantedCounter(registry) }),
      tls: undefined,
      registry,
      ...noteAnswers(store, systemClock),
    })
    const call = callOf(served.port, served.site.origin)
    const proof = await makeLink()
    const form = { nonce: '', proof }
    const first = await call('POST', '/welcome', { form })
    const [cookie = ''] = (first.headers['set-cookie'] ?? []) as string[]
    expect(cookie).toMatch(/^tokenmill-console=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/)
    expect((await call('POST', '/welcome', { form })).status).toBe(403)
    const no = await bundle.addBatch({ batchId: 'local' })
    const own = { cookie: cookie.split(';')[0] }
    const page = await call('GET', `/batches/${no}/pause`, own)
    expect(page.text).toContain('this needs no passkey')
    const sent = await call('POST', `/batches/${no}/pause`, { ...own, form: { seen: 'RUNNING', reason: '' } })
    const verdict = await call('GET', String(sent.headers['location']), own)
    expect(verdict.text).toContain('Not done.')
    const [row] = await bundle.rows<{ paused: boolean }>(
      'select paused_at is not null as paused from tokenmill.batch where batch_no = $1',
      [no],
    )
    expect(row?.paused).toBe(false)
  })
})
