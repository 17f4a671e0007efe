// The sections of Installation beside keys: release and store, networks, hosts, retention and wall displays. What this process can't
// know is said, with the setting or the command that answers.
import type {
  SeenDisplay,
  SeenHost,
  SeenProvider,
  SeenStore,
} from '../../../src/store/console/installation/installation.ts'
import * as seen from '../../../src/store/console/installation/installation.ts'
import { DEAD_MS } from '../../../src/store/console/now.ts'
import { readVersion } from '../../../src/version.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, count, duration, id, moment } from '../figures.ts'
import { type Html, html, type Value } from '../html.ts'
import { HEARD_MS } from '../pulse.ts'
import { mark, table } from './table.ts'

/** How many rows of hosts and of networks are shown. */
export const ROWS_SHOWN = 100

export function releaseSection(
  {
    name,
    environment,
    installationId,
    isEmbedded,
    queues,
  }: Pick<ConsoleDeps, 'name' | 'environment' | 'installationId' | 'isEmbedded' | 'queues'>,
  store: SeenStore | undefined,
  hosts: readonly SeenHost[],
): Html {
  const versions = [...new Set(hosts.map(({ version }) => version))].sort()
  const facts: [string, Value][] = [
    ['Name', name],
    ['Environment', environment ?? 'not set (TOKENMILL_ENVIRONMENT of the console’s host)'],
    ['Installation', id(installationId)],
    ['Since', store && html`${moment(store.createdAt)} UTC`],
    [
      'Release',
      html`${readVersion()} on this host; heard of processes: ${versions.length === 0 ? 'none' : versions.join(', ')}`,
    ],
    ['Schema', store && html`<code>${store.schema}</code> (${count(store.migrations)} migrations)`],
    ['Queues', queues.engine === 'redis' ? 'Redis' : 'PostgreSQL, in the same server as the store'],
    ['Store', store && `PostgreSQL ${store.serverVersion}${isEmbedded ? ', embedded: for trials on one machine' : ''}`],
    ['This server', store && serverOf(store)],
  ]
  const known = facts.filter(([, value]) => value !== undefined)
  return html`<section id="release"><h2>Release and store</h2>
<dl class="facts">${known.map(([title, value]) => html`<div><dt>${title}</dt><dd>${value}</dd></div>`)}</dl>
<p class="same">The same on the command line: ${command('tokenmill', 'status')} ${command('tokenmill', 'doctor')}</p></section>`
}

function serverOf({ takesWrites, logReaders, timeline }: SeenStore): string {
  const readers =
    logReaders === 0 ? 'no standby reads its log' : `${count(logReaders)} standbys or backups read its log`
  const line = timeline === null ? '' : `; timeline ${count(timeline)}, which counts promotions`
  return takesWrites
    ? `primary, takes writes; ${readers}${line}`
    : `takes no writes: a standby, or a former primary${line}`
}

export function networkSection(providers: readonly SeenProvider[], now: number): Html {
  const shown = providers.slice(0, ROWS_SHOWN)
  return html`<section id="networks"><h2>Networks and providers</h2>
${shown.length === 0 ? html`<p class="empty">Each network and provider that workers call is listed here. No worker has called one.</p>` : providerTable(shown, now)}
${providers.length > shown.length ? html`<p class="muted">There are more.</p>` : undefined}
<p>Which networks there are, where calls go and by which keys is in a file of each worker’s host, which TOKENMILL_SCHEME_FILE names there. It isn’t known here. What calls are outstanding says ${command('tokenmill', 'scheme', 'list', '--open')}</p></section>`
}

const SLOWED = {
  throttled: 'answers 429',
  failing: 'answers 5xx',
  breaker_open: 'is held back: it gives no answers, or 5xx',
} as const

function providerTable(providers: readonly SeenProvider[], now: number): Html {
  return table(
    [
      ...[
        { title: 'Network or provider' },
        { title: 'State', class: 'st' },
        { title: 'Calls/s, by the file', class: 'figure second' },
      ],
      ...[{ title: 'Processes', class: 'figure' }, { title: 'Last heard (UTC)' }],
    ],
    providers.map(({ provider, processes, granted, rate, slowedBy, slowedAt, renewedMs }) => [
      html`<code>${provider}</code>`,
      processes === 0
        ? mark('former', 'not called now')
        : slowedBy === null
          ? mark('live', 'called')
          : html`${mark('warn', `${SLOWED[slowedBy]}, ${perSecond(rate)} calls/s now`)} <span class="muted">since ${moment(slowedAt ?? now)}</span>`,
      perSecond(granted),
      count(processes),
      renewedMs === null ? '–' : moment(now - renewedMs),
    ]),
  )
}

const perSecond = (rate: number | null) => (rate === null ? '–' : rate < 10 ? rate.toFixed(1) : count(rate))

/** A process that missed a heartbeat may live or not. */
function aliveMark(silentMs: number): Html {
  if (silentMs <= HEARD_MS) return mark('live', 'ALIVE')
  const silent = `silent for ${duration(silentMs / 1000)}`
  return silentMs > DEAD_MS ? mark('bad', silent) : mark('unknown', `UNKNOWN, ${silent}`)
}

export function hostSection(hosts: readonly SeenHost[], now: number): Html {
  const shown = hosts.slice(0, ROWS_SHOWN)
  return html`<section id="hosts"><h2>Hosts</h2>
${
  shown.length === 0
    ? html`<p class="empty">Every process of tokenmill is listed here by its heartbeat. None has been heard in the last hour.</p>`
    : table(
        [
          ...[
            { title: 'Host' },
            { title: 'Role', class: 'second' },
            { title: 'Release', class: 'second' },
            { title: 'State', class: 'st' },
          ],
          ...[{ title: 'Has the keys' }, { title: 'Since (UTC)' }, { title: 'Last heartbeat (UTC)' }],
        ],
        shown.map(({ host, role, version, startedAt, silentMs, keks }) => [
          host,
          role,
          version,
          aliveMark(silentMs),
          keks.length === 0 ? '–' : html`${keks.map(kek => html`${id(kek)} `)}`,
          moment(startedAt),
          moment(now - silentMs),
        ]),
      )
}
${hosts.length > shown.length ? html`<p class="muted">There are more; those that were silent longest are shown.</p>` : undefined}
<p class="same">The same on the command line: ${command('tokenmill', 'status')}</p></section>`
}

export function retentionSection({ kept }: Pick<ConsoleDeps, 'kept'>, store: SeenStore | undefined): Html {
  const days = (n: number) => `${count(n)} days`
  const since = store?.receiptsSince
  return html`<section id="retention"><h2>Retention</h2>
${table(
  [{ title: 'What' }, { title: 'Kept for', class: 'figure second' }, { title: 'By' }],
  [
    [
      'Receipts, and the charts of batches',
      days(kept.receiptDays),
      html`<code>TOKENMILL_RECEIPT_DAYS</code> of the scheduler’s host`,
    ],
    ['Files of reports', days(kept.reportDays), html`<code>TOKENMILL_REPORT_DAYS</code> of the scheduler’s host`],
    ['Backups', days(kept.backupDays), html`<code>TOKENMILL_BACKUP_DAYS</code> of the host where commands of keys run`],
    ['Results that were published', days(seen.KEPT_DAYS.outbox), 'the release'],
    ['Events', days(seen.KEPT_DAYS.events), 'the release'],
  ],
)}
<p class="muted">The first three are the settings of the console’s host. Each host has its own, which isn’t known here: compare them.${since === null || since === undefined ? undefined : html` The oldest week of receipts in the store began on ${since}.`}</p></section>`
}

export function displaySection(displays: readonly SeenDisplay[]): Html {
  const shown = displays.slice(0, ROWS_SHOWN)
  return html`<section id="displays"><h2>Wall displays</h2>
${
  shown.length === 0
    ? html`<div class="empty"><p>A screen that shows figures of <em>Now</em> without a person is listed here. There is none.</p>
<p>${command('tokenmill', 'display', 'add', 'NAME')}</p></div>`
    : table(
        [
          { title: 'Display' },
          { title: 'Tells of', class: 'second' },
          { title: 'Since (UTC)' },
          { title: 'Ends (UTC)' },
          { title: 'To end it' },
        ],
        shown.map(({ name, entities, createdAt, expiresAt }) => [
          name,
          entities === null
            ? 'the whole installation'
            : `batches of ${count(entities.length)} ${entities.length === 1 ? 'entity' : 'entities'}`,
          moment(createdAt),
          moment(expiresAt),
          command('tokenmill', 'display', 'revoke', name),
        ]),
      )
}
<p class="same">The same on the command line: ${command('tokenmill', 'display', 'list')}</p></section>`
}
