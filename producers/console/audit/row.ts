// The page of one row of the audit: its fields in words, what proves who acted, and how the command says the same.
import * as seenProof from '../../../src/store/console/audit/proof.ts'
import * as seenRows from '../../../src/store/console/audit/rows.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { sightOf } from '../../../src/store/sight.ts'
import { mayDo } from '../acts/subject.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, count, id, moment } from '../figures.ts'
import { type Html, html, path, type Value } from '../html.ts'
import { shown } from '../sender-text.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, missingPage, sendPage } from '../server/page.ts'
import { addressOf } from './filter.ts'
import { actText, detailFacts, outcomeMark, rawOf, who, whyText } from './row-text.ts'

export function auditRowRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  app.get<{ Params: { id: string } }>('/audit/:id', async (request, reply) => {
    const session = sessionOf(request)
    const sight = sightOf(session.entities)
    const isId = /^[1-9]\d{0,14}$/.test(request.params.id)
    const [row, chain] = await Promise.all([
      isId ? seenRows.find(sight, deps.store, Number(request.params.id)) : undefined,
      seenProof.findChain(sight, deps.store),
    ])
    if (!row) return sendPage(reply, 404, missingPage(deps, session))
    const content = rowContent(row, { session, chain, now: deps.clock() })
    return sendPage(reply, 200, framed(deps, { title: 'One row of the audit', session, at: 'audit', content }))
  })
}

interface Shown {
  session: LiveSession
  chain: seenProof.SeenChain | undefined
  now: number
}

function rowContent(row: seenRows.WholeAuditRow, { session, chain, now }: Shown): Html {
  const { auditId, seq, action, subject, outcome, detail } = row
  const options = { showsReference: mayDo('failed.retry', session) }
  const further = detailFacts(detail, options)
  const text = actText(action)
  return html`<p class="up"><a href="/audit">Audit</a></p>
<h1><code>${action}</code> ${outcomeMark(outcome)}</h1>
${text === undefined ? undefined : html`<p>${text}</p>`}
<section><h2>What was done</h2>${list(facts(row, session, now))}</section>
${further.length === 0 ? undefined : html`<section><h2>Further</h2>${list(further)}</section>`}
<section><h2>What proves it</h2>${list(proofFacts(row, chain))}</section>
<details class="raw"><summary>The detail as it is stored</summary><pre tabindex="0">${rawText(row, options)}</pre></details>
<p class="same">The same on the command line: ${seq === null ? command('tokenmill', 'audit', 'list', '--subject', shown(subject)) : command('tokenmill', 'audit', 'show', String(seq))}</p>
<p><a href="${addressOf({ like: auditId })}">All rows about this subject</a></p>`
}

const list = (known: readonly [string, Value][]): Html =>
  html`<dl class="facts">${known
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>\n`)}</dl>`

function facts(row: seenRows.WholeAuditRow, { personId }: LiveSession, now: number): [string, Value][] {
  const { at, actor, host, subject, outcome, reason, why, batchNo } = row
  const ofActor =
    actor === null || !/^(person|client):/.test(actor) ? undefined : html` ${id(actor.slice(actor.indexOf(':') + 1))}`
  return [
    ['When', html`${moment(at)} UTC`],
    ['Who', html`${who(row, personId)}${ofActor}`],
    ['On the host', host === null ? undefined : shown(host)],
    [
      'Subject',
      batchNo === null
        ? id(shown(subject))
        : html`${id(shown(subject))} <a href="${path`/batches/${batchNo}`}">the batch</a>`,
    ],
    ['Reason', reason === null ? html`<span class="muted">none given</span>` : shown(reason)],
    [outcome === 'failed' ? 'Why it failed' : 'Why not', why === null ? undefined : whyText(why)],
    ['Read', html`${moment(now)} UTC`],
  ]
}

function proofFacts(row: seenRows.WholeAuditRow, chain: seenProof.SeenChain | undefined): [string, Value][] {
  const { seq, credential, proofSha256, proofLength, hash, detail } = row
  const isOut = chain && seq !== null && seq <= chain.sentTo
  return [
    ['Proved', provedText(row)],
    ['Passkey', credential === null ? undefined : id(credential)],
    ['SHA-256 of what was signed', proofSha256 === null ? undefined : html`<code>${proofSha256}</code>`],
    [
      'Signature',
      proofLength === null
        ? undefined
        : `the row holds it, with what was signed (${count(proofLength)} characters); the command prints it and checks it again`,
    ],
    [
      'Key',
      detail['unchecked'] === true
        ? 'nobody checked that tokenmill wrote the rows of this client and its key: the command had no key of the vault'
        : undefined,
    ],
    ['Number', seq === null ? 'none yet: a worker gives it, within seconds if one runs' : count(seq)],
    ['Hash', hash === null ? undefined : html`<code>${hash}</code>`],
    [
      'Outside',
      chain === undefined || seq === null
        ? undefined
        : isOut
          ? 'in a segment that has left the store: audit verify compares it with that'
          : 'in no segment yet: the next one leaves within a minute if a worker runs',
    ],
  ]
}

/** Whether somebody proved who acted, in one sentence. It says what the row says: the console has checked nothing. */
function provedText({ actorKind, action, isUnproved, proofSha256, proofLength }: seenRows.WholeAuditRow): Html {
  if (isUnproved && action === 'list.exported')
    return html`<strong>No.</strong> A list is taken without a passkey: the console’s word is all there is, and whoever has its key can write such a row.`
  if (isUnproved)
    return html`<strong>No.</strong> A person who came by the link of <code>tokenmill start</code> acts without a passkey.`
  if (proofSha256 !== null)
    return html`<strong>Yes</strong>, as the row says: a passkey signed exactly this act, and a worker checked the signature before it was done.`
  if (proofLength !== null)
    return html`<strong>Yes</strong>, as the row says: the client’s key signed this act, and the command checked the signature.`
  if (actorKind === 'cli' || actorKind === 'machine')
    return html`<strong>No.</strong> It is the name of an account of that host, as the host says it. With <code>--operator</code> a client signs an act.`
  if (actorKind === 'client')
    return html`<strong>Not here.</strong> The row keeps no signature: tokenmill had checked the client’s request before.`
  if (actorKind === 'person')
    return html`<strong>Not here.</strong> The row keeps no signature of this person: it says what came of another act.`
  return html`tokenmill did it by itself.`
}

/** How much of a detail the page shows raw. */
const RAW_MAX = 20_000

function rawText({ detail, credential }: seenRows.WholeAuditRow, options: { showsReference: boolean }): string {
  const whole = credential === null ? detail : { ...detail, credential }
  const text = JSON.stringify(rawOf(whole, options), null, 2)
  return text.length <= RAW_MAX ? text : `${text.slice(0, RAW_MAX)}\n… ${count(text.length - RAW_MAX)} characters more`
}
