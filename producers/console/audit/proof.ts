// How far the audit can be believed: the last verdict of `audit verify` that was written here, and whether its rows leave the store.
// The console checks nothing of it. A server that calls itself honest proves nothing, and the page says so.
import * as seenProof from '../../../src/store/console/audit/proof.ts'
import type { Db } from '../../../src/store/pool.ts'
import type { Sight } from '../../../src/store/sight.ts'
import { command, count, duration, moment, rows } from '../figures.ts'
import { type Html, html, path, type Value } from '../html.ts'
import { shown } from '../sender-text.ts'

export interface Proof {
  chain: seenProof.SeenChain
  verdicts: seenProof.SeenVerdicts
}

export interface Judging {
  /** ms since the epoch. */
  now: number
  isEmbedded: boolean
}

/** Undefined for people for some entities. */
export async function proofOf(sight: Sight, db: Db): Promise<Proof | undefined> {
  const [chain, verdicts] = await Promise.all([seenProof.findChain(sight, db), seenProof.findVerdicts(sight, db)])
  return chain && { chain, verdicts }
}

/** As `tokenmill status` judges it. */
const LATE_MS = 5 * 60_000
const REFUSED_MS = 15 * 60_000
/** It is to be verified every day. */
const OLD_MS = 2 * 86_400_000

/** What needs somebody, the worst first; undefined: nothing. */
export function worstOf({ chain, verdicts }: Proof, { now, isEmbedded }: Judging): Html | undefined {
  const { newest, proved, unsound } = verdicts
  if (unsound) {
    const since =
      unsound === newest || unsound.auditId === newest?.auditId
        ? undefined
        : ', and no complete one has found it sound since'
    return needs('bad', html`A verdict of <code>audit verify</code>: the audit is not sound${since}. Look below.`)
  }
  if (chain.awaySince !== null) {
    const ms = now - chain.awaySince
    const tone = ms < REFUSED_MS ? 'warn' : 'bad'
    const refused = ms < REFUSED_MS ? undefined : ' Acts on keys and exports are refused until it does.'
    return needs(
      tone,
      html`The place of the segments has taken nothing for ${duration(ms / 1000)}, since ${moment(chain.awaySince)} UTC.${refused}`,
    )
  }
  if (chain.segment > 0 && now - chain.sentAt > LATE_MS)
    return needs(
      'warn',
      html`No segment has left for ${duration((now - chain.sentAt) / 1000)}. Look whether a worker runs.`,
    )
  if (isEmbedded || (proved && now - proved.at < OLD_MS)) return undefined
  if (newest && now - newest.at < OLD_MS)
    return needs(
      'warn',
      html`The last verification did not compare the rows with all segments: the place was not named on its host. Run it where <code>AUDIT_URL</code> is set, or with <code>--segments</code>.`,
    )
  return needs(
    'warn',
    newest
      ? html`Nobody has verified the audit since ${moment(newest.at)} UTC, as far as it was written here.`
      : html`Nobody has verified the audit yet, as far as it was written here.`,
  )
}

function needs(tone: 'warn' | 'bad', says: Html): Html {
  return html`<p class="audit-needs"><span class="state ${tone}"><span class="glyph" aria-hidden="true">⚠\uFE0E</span>LOOK</span> ${says}</p>`
}

export function proofSection({ chain, verdicts }: Proof, { now }: Judging): Html {
  const { newest, proved, unsound } = verdicts
  const facts: [string, Value][] = [
    ['Last verdict', newest ? verdictText(newest) : 'none was written here'],
    ['Not settled', unsound && unsound.auditId !== newest?.auditId ? verdictText(unsound) : undefined],
    ['Last complete', proved && proved.auditId !== newest?.auditId ? verdictText(proved) : undefined],
    ['Newest row', chain.seq === 0 ? 'none has a number yet' : `number ${count(chain.seq)}`],
    ['Left the store', leftText(chain, now)],
    ['Goes to', placeText(chain)],
    ['Away since', chain.awaySince === null ? undefined : html`${moment(chain.awaySince)} UTC`],
    ['Read', html`${moment(now)} UTC`],
  ]
  const known = facts.filter(([, value]) => value !== undefined)
  return html`<section class="proof" id="proof"><h2>Can it be believed?</h2>
<p>This page proves nothing. It reads the database that the rows are about: whoever owns the database can change a row, and can write a verdict, too; so can the gateway and workers. So verify it elsewhere: on another host, with the key-encryption key, as somebody who does not administer the database. The command compares the rows with the segments, which have left the store.</p>
<p>${command('tokenmill', 'audit', 'verify')}</p>
<dl class="facts">${known.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl></section>`
}

function verdictText({ auditId, at, actor, host, isSound, isComplete, detail }: seenProof.SeenVerdict): Html {
  const number = (name: string) => (typeof detail[name] === 'number' ? (detail[name] as number) : 0)
  const [to, findings, segments, outside] = [
    number('to'),
    number('findings'),
    number('segments'),
    number('rows_outside'),
  ]
  const account = shown(actor.slice(actor.indexOf(':') + 1))
  const where = host === null ? undefined : html` on ${shown(host)}`
  const compared = html`compared with ${count(segments)} segments${segments > 0 && outside < to ? html`, up to row ${count(outside)} only` : undefined}`
  const by = html`<br><span class="muted">By ${account}${where}, ${moment(at)} UTC; ${compared}. <a href="${path`/audit/${auditId}`}">Its row</a></span>`
  if (!isSound)
    return html`<strong class="bad">Not sound</strong>: ${count(findings)} ${findings === 1 ? 'finding' : 'findings'}${by}`
  if (isComplete) return html`Sound, up to row ${count(to)}${by}`
  return html`<strong class="warn">Not compared</strong> with all segments; the rows alone are sound, up to row ${count(to)}${by}`
}

function leftText({ segment, seq, sentTo, sentAt }: seenProof.SeenChain, now: number): Html {
  if (segment === 0) return html`nothing yet: no worker has cut a segment`
  const left = seq - sentTo
  return html`rows up to number ${count(sentTo)}; the newest segment ${duration(Math.max(0, now - sentAt) / 1000)} ago${left > 0 ? html`; ${rows(left)} wait for the next` : undefined}`
}

function placeText({ place, isOutside }: seenProof.SeenChain): Html | undefined {
  if (place === null)
    return html`<span class="muted">not known: no worker of this release sent the newest segment</span>`
  if (isOutside) return html`<code>${shown(place)}</code> (<code>AUDIT_URL</code>)`
  return html`a folder of the worker’s host ${shown(place)}: <code>AUDIT_URL</code> is not set there`
}
