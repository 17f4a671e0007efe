// The section of keys. No key is here, wrapped or not: the console may read none. What only a host knows is said, with the command
// that answers there.
import { dateOf } from '../../../src/clock.ts'
import type {
  SeenDataKey,
  SeenGatewayKey,
  SeenKek,
  SeenSigningKey,
} from '../../../src/store/console/installation/keys.ts'
import { DEAD_MS } from '../../../src/store/console/now.ts'
import { command, count, duration, id } from '../figures.ts'
import { type Html, html, type Value } from '../html.ts'
import { aboutOf, type Due, dataKeyDue, kekDue, rowsUnder, signingKeyDue } from './due.ts'
import { type Mark, mark, table } from './table.ts'

export interface SeenKeys {
  data: SeenDataKey[]
  keks: SeenKek[]
  signing: SeenSigningKey[]
  gateways: SeenGatewayKey[]
}

const MARK_OF = {
  ACTIVE: 'live',
  PENDING: 'coming',
  ANNOUNCED: 'coming',
  DECRYPT_ONLY: 'former',
  RETIRED: 'former',
  DESTROYED: 'gone',
  REVOKED: 'gone',
  STOLEN: 'gone',
} as const satisfies Record<string, Mark>

export function keyState(state: keyof typeof MARK_OF): Html {
  return mark(MARK_OF[state], state)
}

interface Named {
  name: string
  due: Due
}

/** What is due of each key, by its name. */
export function duesOf({ data, keks, signing }: SeenKeys, now: number, backupDays: number): Named[] {
  const isNext = signing.some(({ state }) => state === 'ANNOUNCED')
  return [
    ...keks.map(kek => ({ name: kek.kekId, due: kekDue(kek, now, backupDays) })),
    ...data.map(key => ({ name: `${key.purpose}/${key.version}`, due: dataKeyDue(key, now, backupDays) })),
    ...signing.map(key => ({ name: `signing/${key.kid}`, due: signingKeyDue(key, now, isNext) })),
  ]
}

/** The day of a moment, in UTC; the moment itself is in the markup. */
function day(ms: number): Html {
  return html`<time datetime="${new Date(ms).toISOString()}">${dateOf(ms)}</time>`
}

/** How many keys of one sort are shown. */
export const KEYS_SHOWN = 50
const SIGNING_SHOWN = 4

export function keySection(keys: SeenKeys, now: number, backupDays: number): Html {
  const { data, keks, signing, gateways } = keys
  const isNext = signing.some(({ state }) => state === 'ANNOUNCED')
  const titles = { key: 'Key', about: 'For', state: 'State', since: 'Since (UTC)', due: 'Due' }
  return html`<section id="keys"><h2>Keys</h2>
<h3>Key-encryption keys</h3>
${table(
  [
    { title: titles.key },
    { title: titles.about },
    { title: titles.state, class: 'st' },
    { title: titles.since },
    { title: titles.due, class: 'second' },
  ],
  keks.map(kek => [
    id(kek.kekId),
    html`wraps ${count(kek.wraps)} data keys; ${kek.processes === 0 ? 'no process that opens the vault is heard' : `${count(kek.having)} of ${count(kek.processes)} processes heard in the last ${duration(DEAD_MS / 1000)} have it`}`,
    keyState(kek.state),
    day(kek.retiredAt ?? kek.createdAt),
    dueCell(kekDue(kek, now, backupDays)),
  ]),
)}
<h3>Data keys</h3>
${table(
  [
    ...[{ title: titles.key }, { title: titles.about }, { title: titles.state, class: 'st' }, { title: titles.since }],
    ...[{ title: 'Rows under it' }, { title: titles.due, class: 'due second' }],
  ],
  data.map(key => [
    html`<code>${key.purpose}/${key.version}</code>`,
    aboutOf(key.purpose),
    keyState(key.state),
    day(key.retiredAt ?? key.activatedAt ?? key.createdAt),
    rowsUnder(key),
    dueCell(dataKeyDue(key, now, backupDays)),
  ]),
)}
<p class="muted">Destroyed versions are left out: ${command('tokenmill', 'key', 'list')} shows them, and how many seals each made.</p>
<h3>Keys that sign results</h3>
${table(
  [
    { title: titles.key },
    { title: 'Algorithm' },
    { title: titles.state, class: 'st' },
    { title: titles.since },
    { title: titles.due, class: 'second' },
  ],
  signing
    .slice(0, SIGNING_SHOWN)
    .map(key => [
      id(key.kid),
      key.alg,
      keyState(key.state),
      day(key.retiredAt ?? key.activeAt),
      dueCell(signingKeyDue(key, now, isNext)),
    ]),
)}
${signing.length > SIGNING_SHOWN ? html`<p class="muted">Older ones are left out; each verifies old results.</p>` : undefined}
<h3>Keys of gateways</h3>
${gatewayTable(gateways)}
<h3>Capture keys</h3>
<p>Senders encrypt cards to them; each entity has its own. <a href="/installation/capture-keys">All capture keys</a></p>
<h3>Not known here</h3>
<p>Keys in files, tokens or a KMS of hosts: ${command('tokenmill', 'status')} on each host says whether its key-encryption key opens the store, and when its certificate ends. ${command('tokenmill', 'doctor')} on a host with the key says whether tokenmill wrote each row that grants rights.</p>
<p class="same">The same on the command line: ${command('tokenmill', 'key', 'list')} ${command('tokenmill', 'key', 'list', 'kek')} ${command('tokenmill', 'key', 'list', 'gateway')}</p>
</section>`
}

function dueCell({ says, tone, command: words }: Due): Value {
  const shown = words && html` <span class="run">${command('tokenmill', ...words)}</span>`
  return html`${tone === 'plain' ? says : mark(tone, says)}${shown}`
}

function gatewayTable(gateways: readonly SeenGatewayKey[]): Html {
  if (gateways.length === 0)
    return html`<p class="empty">Each gateway’s host makes a key of its own, to which workers encrypt what a gateway may know. None has done so.</p>`
  return table(
    [
      { title: 'Key' },
      { title: 'State', class: 'st' },
      { title: 'Since (UTC)' },
      { title: 'Opens', class: 'second' },
      { title: 'If its host is gone' },
    ],
    gateways.map(({ kid, createdAt, forgottenAt, opens }) => [
      id(kid),
      forgottenAt === null ? mark('live', 'KNOWN') : mark('gone', 'FORGOTTEN'),
      day(forgottenAt ?? createdAt),
      opens.length === 0 ? 'nothing' : opens.join(', '),
      forgottenAt === null ? command('tokenmill', 'key', 'forget', 'gateway', kid) : '–',
    ]),
  )
}
