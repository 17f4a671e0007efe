// How far the audit can be believed: the last verdict of `audit verify` that was written here, and whether its rows leave the store.
// The console checks nothing of it. A server that calls itself honest proves nothing, and the page says so.
import * as seenProof from '../../../src/store/console/audit/seen-proof.ts'
import type { Sight } from '../../../src/store/console/sight.ts'
import type { Db } from '../../../src/store/pool.ts'
import { shown } from '../explain/shown.ts'
import { command, count, duration, moment, rows } from '../figures.ts'
import { type Html, html, path, type Value } from '../html.ts'

export interface Proof {
  chain: seenProof.SeenChain
  verdict: seenProof.SeenVerdict | undefined
}

export interface Judging {
  /** ms since the epoch. */
  now: number
  isEmbedded: boolean
}

/** Undefined for people for some entities. */
export async function proofOf(sight: Sight, db: Db): Promise<Proof | undefined> {
  const [chain, verdict] = await Promise.all([seenProof.findChain(sight, db), seenProof.findVerdict(sight, db)])
  return chain && { chain, verdict }
}

/** As `tokenmill status` judges it. */
const LATE_MS = 5 * 60_000
const REFUSED_MS = 15 * 60_000
/** It is to be verified every day. */
const OLD_MS = 2 * 86_400_000

/** What needs somebody, the worst first; undefined: nothing. */
export function worstOf({ chain, verdict }: Proof, { now, isEmbedded }: Judging): Html | undefined {
  if (verdict && !verdict.isSound)
    return needs('bad', html`The last verdict of <code>audit verify</code>: the audit is not sound. Look below.`)
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
  if (isEmbedded || (verdict && now - verdict.at < OLD_MS)) return undefined
  return needs(
    'warn',
    verdict
      ? html`Nobody has verified the audit since ${moment(verdict.at)} UTC, as far as it was written here.`
      : html`Nobody has verified the audit yet, as far as it was written here.`,
  )
}

function needs(tone: 'warn' | 'bad', says: Html): Html {
  return html`<p class="audit-needs"><span class="state ${tone}"><span class="glyph" aria-hidden="true">⚠\uFE0E</span>LOOK</span> ${says}</p>`
}

export function proofSection({ chain, verdict }: Proof, { now }: Judging): Html {
  const facts: [string, Value][] = [
    ['Last verdict', verdict ? verdictText(verdict) : 'none was written here'],
    ['Newest row', chain.seq === 0 ? 'none has a number yet' : `number ${count(chain.seq)}`],
    ['Left the store', leftText(chain, now)],
    ['Goes to', placeText(chain)],
    ['Away since', chain.awaySince === null ? undefined : html`${moment(chain.awaySince)} UTC`],
    ['Read', html`${moment(now)} UTC`],
  ]
  const known = facts.filter(([, value]) => value !== undefined)
  return html`<section class="proof" id="proof"><h2>Can it be believed?</h2>
<p>This page proves nothing. It reads the database that the rows are about: whoever owns the database can change a row, and can write a verdict, too. So verify it elsewhere: on another host, with the key-encryption key, as somebody who does not administer the database. The command compares the rows with the segments, which have left the store.</p>
<p>${command('tokenmill', 'audit', 'verify')}</p>
<dl class="facts">${known.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl></section>`
}

function verdictText({ auditId, at, actor, host, isSound, detail }: seenProof.SeenVerdict): Html {
  const number = (name: string) => (typeof detail[name] === 'number' ? (detail[name] as number) : undefined)
  const [to, findings, segments] = [number('to'), number('findings'), number('segments')]
  const account = shown(actor.slice(actor.indexOf(':') + 1))
  const where = host === null ? undefined : html` on ${shown(host)}`
  const by = html`<br><span class="muted">By ${account}${where}, ${moment(at)} UTC; compared with ${count(segments ?? 0)} segments. <a href="${path`/audit/${auditId}`}">Its row</a></span>`
  if (isSound) return html`Sound, up to row ${count(to ?? 0)}${by}`
  return html`<strong class="bad">Not sound</strong>: ${count(findings ?? 0)} ${findings === 1 ? 'finding' : 'findings'}${by}`
}

function leftText({ segment, seq, sentTo, sentAt }: seenProof.SeenChain, now: number): Html {
  if (segment === 0) return html`nothing yet: no worker has cut a segment`
  const left = seq - sentTo
  return html`rows up to number ${count(sentTo)}; the newest segment ${duration(Math.max(0, now - sentAt) / 1000)} ago${left > 0 ? html`; ${rows(left)} wait for the next` : undefined}`
}

function placeText({ place, isOutside }: seenProof.SeenChain): Html | undefined {
  if (place === null) return html`<span class="muted">not known: no worker of this release has sent a segment</span>`
  if (isOutside) return html`<code>${shown(place)}</code> (<code>AUDIT_URL</code>)`
  return html`a folder of the worker’s host ${shown(place)}: <code>AUDIT_URL</code> is not set there`
}
