// A row of the audit in words: who acted, how it ended, and what its detail says. Digits that could be a card number are never shown,
// whoever wrote them.
import { REASONS } from '../../../src/errors.ts'
import type { SeenActor, SeenAuditRow } from '../../../src/store/console/audit/rows.ts'
import { count, id, moment } from '../figures.ts'
import { type Html, html, type Value } from '../html.ts'
import { shown } from '../sender-text.ts'

const ACCOUNTS: ReadonlySet<string> = new Set(['cli', 'machine'])

/** `Ada`, `root (account)`, `tokenmill (worker)`. `personId`: who looks at the page. */
export function who({ actor, actorKind, actorName }: SeenActor, personId: string): Html {
  if (actor === null) return html`<span class="muted">${hiddenActor(actorKind)}</span>`
  const own = actor.slice(actor.indexOf(':') + 1)
  if (actorName !== null)
    return html`${actorName}${actor === `person:${personId}` ? html` <span class="muted">(you)</span>` : undefined}`
  if (ACCOUNTS.has(actorKind)) return html`${shown(own)} <span class="muted account">(account)</span>`
  if (actor.includes(':')) return html`${id(shown(own))} <span class="muted">(${actorKind}, gone)</span>`
  return html`<span class="muted">tokenmill (${actor})</span>`
}

/** As a file names the actor. */
export function whoText({ actor, actorKind }: Pick<SeenActor, 'actor' | 'actorKind'>): string {
  return actor === null ? hiddenActor(actorKind) : shown(actor)
}

function hiddenActor(kind: string): string {
  if (kind === 'person') return 'a person outside your entities'
  if (kind === 'client') return 'a client outside your entities'
  return ACCOUNTS.has(kind) ? 'an operator at the command line' : 'tokenmill'
}

/** The selector after a glyph asks for its form as text, not as a picture. */
const TEXT = '\uFE0E'
const MARKS = {
  done: { glyph: '✓', tone: 'muted' },
  refused: { glyph: '✕', tone: 'plain' },
  failed: { glyph: '⚠', tone: 'warn' },
} as const satisfies Record<SeenAuditRow['outcome'], { glyph: string; tone: string }>

export function outcomeMark(outcome: SeenAuditRow['outcome']): Html {
  const { glyph, tone } = MARKS[outcome]
  return html`<span class="state ${tone}"><span class="glyph" aria-hidden="true">${glyph}${TEXT}</span>${outcome.toUpperCase()}</span>`
}

/** What an act is, where its name doesn't say it. */
const ACTS: Record<string, string> = {
  'person.prove': 'Somebody sent an act in this person’s name, and nobody had proved it. It was refused.',
  'list.exported': 'This person took a list as CSV.',
  'audit.prune': 'Rows that are older than 400 days, and that a segment holds, were removed.',
  'audit.verify': 'Somebody verified the audit by a command.',
  'audit.went-back':
    'The head of the audit went back: somebody else than a worker moved it. Run tokenmill audit verify.',
  'audit.head-moved':
    'The head of the audit was moved to where no row is, by somebody else than a worker. Run tokenmill audit verify.',
}

export function actText(action: string): string | undefined {
  return Object.hasOwn(ACTS, action) ? ACTS[action] : undefined
}

/** Why it was refused or failed: a word, with its meaning where it has one here. */
export function whyText(why: string): Html {
  const meaning = Object.hasOwn(REASONS, why) ? REASONS[why as keyof typeof REASONS].text : undefined
  return meaning === undefined ? html`${shown(why)}` : html`${meaning} <code>${why}</code>`
}

/** Told in other places of the page. */
const ELSEWHERE: ReadonlySet<string> = new Set([
  ...['reason', 'why', 'credential', 'proof', 'proof_sha256', 'unproved', 'unchecked'],
])
const NAMES: Record<string, string> = { jti: 'jti', ids_sha256: 'SHA-256 of the ids', up_to: 'Up to' }
/** How many values of a list are shown. */
const LISTED = 20

/** The detail as names and values, one level deep. A reference is shown to people who may act only. */
export function detailFacts(
  detail: Record<string, unknown>,
  { showsReference }: { showsReference: boolean },
  prefix = '',
): [string, Value][] {
  return Object.entries(detail).flatMap(([key, value]): [string, Value][] => {
    if (value === null || (prefix === '' && ELSEWHERE.has(key))) return []
    const name = prefix === '' ? nameOf(key) : `${prefix}, ${nameOf(key).toLowerCase()}`
    if (/reference/i.test(key) && typeof value === 'string' && !showsReference)
      return [[name, html`<span class="muted">shown to operators and administrators</span>`]]
    if (typeof value === 'object' && !Array.isArray(value) && prefix === '')
      return detailFacts(value as Record<string, unknown>, { showsReference }, name)
    return [[name, valueText(key, value)]]
  })
}

function nameOf(key: string): string {
  if (Object.hasOwn(NAMES, key)) return NAMES[key] ?? key
  const words = key
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .replaceAll('_', ' ')
    .toLowerCase()
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function valueText(key: string, value: unknown): Html {
  if (typeof value === 'boolean') return html`${value ? 'yes' : 'no'}`
  if (typeof value === 'number')
    return /(_at|At|up_to|since|until)$/.test(key) && value > 1e12 ? html`${moment(value)} UTC` : html`${count(value)}`
  if (typeof value === 'string') return /^[\w:./=-]{12,}$/.test(value) ? id(shown(value)) : html`${shown(value)}`
  if (Array.isArray(value)) {
    const more = value.length - LISTED
    return html`${value.slice(0, LISTED).map((one, at) => html`${at === 0 ? '' : ', '}${valueText('', one)}`)}${more > 0 ? html` and ${count(more)} more` : undefined}`
  }
  return html`<code>${shown(JSON.stringify(value))}</code>`
}

/** The detail as it may be shown raw: the same texts, with asterisks where they could be a card number. */
export function rawOf(value: unknown, { showsReference }: { showsReference: boolean }): unknown {
  if (typeof value === 'string') return shown(value)
  if (Array.isArray(value)) return value.map(one => rawOf(one, { showsReference }))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => {
      const isHidden = /reference/i.test(key) && typeof one === 'string' && !showsReference
      return [key, isHidden ? '(shown to operators and administrators)' : rawOf(one, { showsReference })]
    }),
  )
}
