// The page Installation and its lists: what they tell, to whom, and that no key and no markup of somebody else gets there.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ABOUT } from '../../../../producers/console/installation/due.ts'
import * as processes from '../../../../src/store/access/processes.ts'
import * as watched from '../../../../src/store/watch/watched.ts'
import { type ConsoleBundle, OURS, openConsoleBundle, type Person } from '../bundle.ts'

const HOSTILE = `<img src=x onerror=alert(1)>"'`
const CLIENT = `c${'0'.repeat(24)}1`
const SCOPE = '0b5a4f6e-6f0c-4a53-8d43-3f0d8a2d1001'
const PATHS = [
  ...['/installation', '/installation/clients', '/installation/clients?order=name', '/installation/scopes'],
  ...['/installation/scopes?order=entity', '/installation/capture-keys', `/installation/clients/${CLIENT}`],
]

let bundle: ConsoleBundle
let ada: Person
beforeAll(async () => {
  bundle = await openConsoleBundle({ TOKENMILL_RECEIPT_DAYS: '77' })
  ada = await bundle.addPerson('ada')
  await bundle.rows(
    `insert into tokenmill.client (client_id, name, user_id, entities, roles) values ($1, $2, gen_random_uuid(), $3, '{TOKEN_WRITE}')`,
    [CLIENT, HOSTILE, [OURS]],
  )
  await bundle.rows(
    `insert into tokenmill.client_key (client_id, kid, alg, public_jwk, state, valid_until)
values ($1, 'canary-kid', 'EdDSA', '{"x":"canary-public-half"}', 'RETIRED', now() + interval '3 days')`,
    [CLIENT],
  )
  await bundle.rows(
    'insert into tokenmill.scope (token_scope, entity_id, network_tokens, par, requestor) values ($1, $2, true, true, $3)',
    [SCOPE, OURS, 'PSP'],
  )
})
afterAll(() => bundle?.close())

const get = async (path: string, { cookie }: Person = ada) => bundle.call('GET', path, { cookie })
const plain = (html: string) =>
  html
    .replace(/<[^>]+>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
const section = (text: string, id: string) => plain(text.split(`<section id="${id}">`)[1]?.split('</section>')[0] ?? '')

describe('the page Installation', () => {
  it('tells of release, schema, store, keys, retention, and of what it can not know', async () => {
    const { status, text } = await get('/installation')
    expect(status).toBe(200)
    const release = section(text, 'release')
    expect(release).toMatch(/Schema 00\d\d-[a-z-]+ \(\d+ migrations\)/)
    expect(release).toMatch(/PostgreSQL \d\d/)
    expect(release).toContain('primary, takes writes')
    const keys = section(text, 'keys')
    for (const [purpose, about] of Object.entries(ABOUT)) {
      expect(keys).toContain(`${purpose}/1`)
      expect(keys).toContain(about)
    }
    expect(keys).toMatch(
      /seal\/1 encrypts card numbers .{0,4}ACTIVE .{10} new ones replace it by \d{4}-\d\d-\d\d tokenmill key rotate seal/,
    )
    expect(keys).toMatch(/kek-[\w…]+ wraps 16 data keys; /)
    expect(section(text, 'retention')).toMatch(
      /Receipts, and the charts of batches 77 days .*oldest week of receipts in the store began on \d{4}-/,
    )
    expect(section(text, 'networks')).toContain('TOKENMILL_SCHEME_FILE')
    expect(section(text, 'hosts')).toContain('console')
    expect(section(text, 'displays')).toContain('tokenmill display add')
  })

  it('begins with what needs somebody: the checks of status, and keys whose time has come', async () => {
    const { store } = bundle.installation.vault
    const at = { host: 'one', version: '1.0.0', connections: 1, keys: [], features: [] }
    const processId = '22222222-2222-4222-8222-222222222222'
    await processes.see(store, { ...at, processId, role: 'scheduler', kinds: [] })
    const checks = [
      {
        name: 'keys',
        state: 'warning' as const,
        says: `the last signing key of ${HOSTILE} ends`,
        next: '`client key add`',
      },
      { name: 'backlog', state: 'critical' as const, says: 'of the work', next: null },
    ]
    await watched.writeChecks(store, checks)
    await bundle.rows(`update tokenmill.data_key set activated_at = now() - interval '340 days' where purpose = 'seal'`)
    await bundle.rows(`update tokenmill.data_key set compromised_at = now() where purpose = 'webhook'`)
    try {
      const { text } = await get('/installation')
      const needs = plain(/<ul class="needs">[\s\S]*?<\/ul>/.exec(text)?.[0] ?? '')
      expect(needs).toMatch(/key webhook\/1 : somebody else may have it.* Next: tokenmill key compromise webhook/)
      expect(needs).toMatch(/keys since .* the last signing key of/)
      expect(needs).toMatch(/key seal\/1 : replace it by .* Next: tokenmill key rotate seal/)
      expect(needs.indexOf('webhook/1')).toBeLessThan(needs.indexOf('seal/1'))
      expect(needs).not.toContain('of the work')
    } finally {
      await bundle.rows('update tokenmill.data_key set activated_at = created_at, compromised_at = null')
      await bundle.rows('delete from tokenmill.watch_check')
    }
    expect(plain((await get('/installation')).text)).toContain('no scheduler has looked')
  })

  it('tells how many rows a former key still has, where that is known without counting', async () => {
    await bundle.rows(
      `insert into tokenmill.data_key (purpose, version, kek_id, wrapped, state, activated_at, retired_at)
select 'seal', 9, kek_id, 'x', 'DECRYPT_ONLY', now(), now() from tokenmill.installation`,
    )
    const shown = async () => /seal\/9 .{0,220}/.exec(section((await get('/installation')).text, 'keys'))?.[0]
    try {
      expect(await shown()).toMatch(/not known: nothing was encrypted anew since .*tokenmill key reseal seal/)
      await bundle.rows(
        `insert into tokenmill.reseal (purpose, version, state, pass_found, pass_done, ended_at, clean_at) values ('seal', 10, 'RUNNING', 500, 120, null, null)`,
      )
      expect(await shown()).toMatch(/120 encrypted anew in this pass, 380 left of those found/)
      await bundle.rows(`update tokenmill.reseal set state = 'DONE', ended_at = now(), clean_at = now()`)
      expect(await shown()).toMatch(/none, proved on \d{4}-\d\d-\d\d may be destroyed from/)
    } finally {
      await bundle.rows('delete from tokenmill.reseal')
      await bundle.rows('delete from tokenmill.data_key where version = 9')
    }
  })

  it('holds no markup of a sender, no public half, no wrapped key and no secret', async () => {
    const pages = await Promise.all(PATHS.map(path => get(path)))
    const all = pages.map(({ text }) => text).join('\n')
    for (const { status } of pages) expect(status).toBe(200)
    expect(all).toContain('onerror')
    expect(all).not.toContain('<img')
    expect(all).not.toContain('canary-public-half')
    const secrets = await bundle.rows<{ secret: string }>(
      `select encode(wrapped, 'base64') as secret from tokenmill.data_key
union all select encode(api_key_hash, 'base64') from tokenmill.client where api_key_hash is not null
union all select encode(mac, 'base64') from tokenmill.client where mac is not null`,
    )
    expect(secrets.length).toBeGreaterThan(16)
    for (const { secret } of secrets)
      expect(all.replace(/\s/g, '')).not.toContain(secret.replace(/\s/g, '').slice(0, 24))
    expect(all).not.toMatch(/file:\/|postgres:\/\/|redis:\/\//)
  })

  it('is for people who see everything: for others no page of it exists', async () => {
    const limited = await bundle.addPerson('limited', { entities: [OURS] })
    const none = await get('/nowhere', limited)
    for (const path of [...PATHS, `/installation/clients/${'x'.repeat(26)}`]) {
      const { status, text } = await get(path, limited)
      expect([path, status, text]).toEqual([path, 404, none.text])
    }
    expect(none.text).not.toContain('href="/installation"')
    expect((await get('/now')).text).toContain('href="/installation"')
  })
})

describe('the lists', () => {
  it('page through everything in both orders, each row once', async () => {
    await bundle.rows(
      `insert into tokenmill.client (client_id, name, user_id, entities, roles, created_at)
select 'c' || lpad(n::text, 25, 'a'), 'client ' || n % 7, gen_random_uuid(), array[$1::uuid], '{}', now() - make_interval(mins => n / 3)
from generate_series(1, 120) as n`,
      [OURS],
    )
    await bundle.rows(
      `insert into tokenmill.scope (token_scope, entity_id, created_at) select gen_random_uuid(), gen_random_uuid(), now() from generate_series(1, 120)`,
    )
    const walk = async (path: string, row: RegExp) => {
      const seen: string[] = []
      for (let next: string | undefined = path; next !== undefined; ) {
        const { text } = await get(next)
        seen.push(...[...text.matchAll(row)].map(([, id = '']) => id))
        next = /<a href="([^"]+)">Next page/.exec(text)?.[1]?.replaceAll('&#38;', '&')
        expect(seen.length).toBeLessThan(400)
      }
      return seen
    }
    for (const order of ['newest', 'name']) {
      const seen = await walk(`/installation/clients?order=${order}`, /href="\/installation\/clients\/([a-z0-9]+)"/g)
      const [{ n } = { n: 0 }] = await bundle.rows<{ n: number }>('select count(*) as n from tokenmill.client')
      expect([order, new Set(seen).size, seen.length]).toEqual([order, n, n])
    }
    for (const order of ['newest', 'entity']) {
      const seen = await walk(
        `/installation/scopes?order=${order}`,
        /<td class="main "[^>]*><code class="id" title="([^"]+)"/g,
      )
      const [{ n } = { n: 0 }] = await bundle.rows<{ n: number }>('select count(*) as n from tokenmill.scope')
      expect([order, new Set(seen).size, seen.length]).toEqual([order, n, n])
    }
  })

  it('tell of a client what it may do and when its keys end', async () => {
    const { text } = await get(`/installation/clients/${CLIENT}`)
    const shown = plain(text)
    expect(shown).toMatch(/Kinds token-create, token-update, token-batch /)
    expect(shown).toMatch(/Keys end .{0,4}soon/)
    expect(shown).toContain(`tokenmill client key list ${CLIENT}`)
    for (const id of ['nothing', `c${'z'.repeat(25)}`, '%3Cimg%3E']) {
      const missing = await get(`/installation/clients/${id}`)
      expect(missing.status).toBe(404)
    }
  })

  it('tell what a scope’s policies mean', async () => {
    const { text } = await get('/installation/scopes?order=entity')
    expect(plain(text)).toContain(
      'PAR and network tokens, requested by the payment provider; 8 digits of the BIN are shown',
    )
  })
})
