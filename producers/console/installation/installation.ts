// The page Installation: what is set up here, for people who see all of it. What needs somebody stands first, by the checks of
// `tokenmill status`. It is read-only.
import { dateOf } from '../../../src/clock.ts'
import * as seenClients from '../../../src/store/console/installation/client-list.ts'
import * as seen from '../../../src/store/console/installation/installation.ts'
import * as seenKeys from '../../../src/store/console/installation/keys.ts'
import * as seenScopes from '../../../src/store/console/installation/scope-list.ts'
import * as seenNow from '../../../src/store/console/now.ts'
import type { Sight } from '../../../src/store/sight.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, moment } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { timeOf } from '../live/frame.ts'
import { shownKinds } from '../now/facts.ts'
import { needsOfWhole, type Tone } from '../now/needs.ts'
import { HEARD_MS } from '../pulse.ts'
import { clientTable } from './clients.ts'
import { duesOf, KEYS_SHOWN, keySection } from './keys.ts'
import { noScope, scopeTable } from './lists.ts'
import {
  displaySection,
  hostSection,
  networkSection,
  ROWS_SHOWN,
  releaseSection,
  retentionSection,
} from './sections.ts'
import { answerWhole } from './whole.ts'

/** How many clients and scopes stand here; lists have the rest. */
const NEWEST = 10
const SECTIONS = [
  { to: path`/installation#release`, text: 'Release and store' },
  { to: path`/installation#keys`, text: 'Keys' },
  { to: path`/installation#clients`, text: 'Clients' },
  { to: path`/installation#scopes`, text: 'Token scopes' },
  { to: path`/installation#networks`, text: 'Networks and providers' },
  { to: path`/installation#hosts`, text: 'Hosts' },
  { to: path`/installation#retention`, text: 'Retention' },
  { to: path`/installation#displays`, text: 'Wall displays' },
]

export function installationRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  app.get('/installation', (request, reply) =>
    answerWhole(deps, request, reply, {
      title: 'Installation',
      content: async ({ sight }) => contentOf(deps, await readAll(deps, sight), deps.clock()),
    }),
  )
}

type Read = Awaited<ReturnType<typeof readAll>>

async function readAll({ store }: Pick<ConsoleDeps, 'store'>, sight: Sight) {
  const limit = KEYS_SHOWN
  const [found, pulse, checks, processes, hosts, providers, displays] = await Promise.all([
    seen.findStore(sight, store),
    seenNow.findPulse(sight, store),
    seenNow.listChecks(sight, store),
    seenNow.listProcesses(sight, store),
    seen.listHosts(sight, store, { limit: ROWS_SHOWN + 1 }),
    seen.listProviders(sight, store, { liveMs: HEARD_MS, limit: ROWS_SHOWN + 1 }),
    seen.listDisplays(sight, store, { limit: ROWS_SHOWN }),
  ])
  const [data, keks, signing, gateways, clients, scopes] = await Promise.all([
    seenKeys.listDataKeys(sight, store),
    seenKeys.listKeks(sight, store, { liveMs: seenNow.DEAD_MS }),
    seenKeys.listSigningKeys(sight, store, { limit }),
    seenKeys.listGatewayKeys(sight, store, { limit }),
    seenClients.list(sight, store, { order: 'newest', after: undefined, limit: NEWEST }),
    seenScopes.list(sight, store, { order: 'newest', after: undefined, limit: NEWEST }),
  ])
  const keys = { data, keks, signing, gateways }
  return { found, pulse, checks, processes, hosts, providers, displays, keys, clients, scopes }
}

function contentOf(deps: ConsoleDeps, read: Read, now: number): Html {
  const { found, hosts, providers, displays, keys, clients, scopes } = read
  const { backupDays } = deps.kept
  return html`<h1>Installation</h1>
${needList(needsOf(deps, read, now))}
<nav class="sections" aria-label="Sections"><ul>${SECTIONS.map(({ to, text }) => html`<li><a href="${to}">${text}</a></li>`)}</ul></nav>
${releaseSection(deps, found, hosts)}
${keySection(keys, now, backupDays)}
<section id="clients"><h2>Clients</h2>${clientTable(clients, now)}
<p><a href="/installation/clients">All clients</a></p>
<p class="same">The same on the command line: ${command('tokenmill', 'client', 'list')}</p></section>
<section id="scopes"><h2>Token scopes</h2>${scopes.length === 0 ? noScope() : scopeTable(scopes)}
<p><a href="/installation/scopes">All token scopes</a></p>
<p class="same">The same on the command line: ${command('tokenmill', 'scope', 'list')}</p></section>
${networkSection(providers, now)}
${hostSection(hosts, now)}
${retentionSection(deps, found)}
${displaySection(displays)}
<p class="muted">Read ${moment(now)} UTC.</p>`
}

interface Shown {
  tone: Exclude<Tone, 'well'>
  what: string
  says: string
  since?: number | undefined
  /** With commands between backticks. */
  next: string
}

const WORST: readonly Tone[] = ['bad', 'warn', 'unknown']

/** Checks of `status` that are about work: Now shows them. */
const OF_WORK = ['backlog', 'outbox', 'batches', 'failed-jobs', 'schedules', 'envelopes']

function needsOf(
  { kept, catalogue }: Pick<ConsoleDeps, 'kept' | 'catalogue'>,
  { found, pulse, checks, processes, keys }: Read,
  now: number,
): Shown[] {
  const whole = { kinds: shownKinds(catalogue), processes, checks }
  const told = needsOfWhole({ now, pulse }, whole).filter(({ id }) => !OF_WORK.includes(id))
  const due = duesOf(keys, now, kept.backupDays).flatMap(({ name, due: { says, tone, command: words } }): Shown[] => {
    const next = words === undefined ? '`tokenmill key list`' : `\`${['tokenmill', ...words].join(' ')}\``
    return tone === 'plain' ? [] : [{ tone, what: `key ${name}`, says, next }]
  })
  return [...told, ...due, ...schemaNeed(found)].sort((a, b) => WORST.indexOf(a.tone) - WORST.indexOf(b.tone))
}

function schemaNeed(found: seen.SeenStore | undefined): Shown[] {
  if (!found || found.isCurrent) return []
  const says = 'the schema is of another release than this console'
  return [{ tone: 'warn', what: 'schema', says, next: 'install the release that upgraded it on this host' }]
}

const GLYPHS = { bad: '⚠', warn: '⚠', unknown: '?' } as const

function needList(needs: readonly Shown[]): Html {
  if (needs.length === 0)
    return html`<p>Nothing here needs you, as far as it is seen. <a href="/now">Now</a> tells of the work.</p>`
  const line = ({ tone, what, says, since, next }: Shown) =>
    html`<li data-need="${tone}"><span class="glyph" aria-hidden="true">${GLYPHS[tone]}</span><span><strong>${what}</strong>${since === undefined ? undefined : html` <span class="since">since ${dateOf(since)} ${timeOf(since)}</span>`}: ${says}. <span class="next">Next: ${withCommands(next)}</span></span></li>`
  return html`<ul class="needs">${needs.map(line)}</ul>`
}

/** Text in which commands stand between backticks. */
function withCommands(text: string): Html[] {
  return text
    .split('`')
    .map((words, at) => (at % 2 === 1 ? html`<code class="command">${words}</code>` : html`${words}`))
}
