// People in words: what they may do, what they see, and whether they can act.
import { PERSON_ROLES } from '../../../src/job/system/act-row.ts'
import type { SeenInvite, SeenPerson } from '../../../src/store/console/people.ts'
import { count, id, moment } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { mark } from '../state-mark.ts'

/** Of a link. */
export const LASTS = 'It works once: for 24 hours, or for one hour as long as no administrator has a passkey here.'

export function plural(n: number, one: string): string {
  return `${count(n)} ${one}${n === 1 ? '' : 's'}`
}

/** Always in the same order. */
export function roleText(roles: readonly string[]): string {
  return PERSON_ROLES.filter(role => roles.includes(role)).join(', ')
}

export function sees(entities: readonly string[] | null): string {
  return entities === null ? 'all entities' : entities.length === 1 ? '1 entity' : `${count(entities.length)} entities`
}

/** Each of the entities. */
export function entityList(entities: readonly string[] | null): Html {
  if (entities === null) return html`all entities`
  return html`${entities.map((entity, at) => html`${at === 0 ? undefined : html`<br>`}${id(entity)}`)}`
}

/** What keeps a person from acting; undefined: nothing does. */
export function personMark({ revokedAt, isLocal, fitting }: SeenPerson): Html | undefined {
  if (revokedAt !== null) return mark('REVOKED', { glyph: '✕', tone: 'muted' })
  if (isLocal || fitting > 0) return undefined
  return mark('NO PASSKEY', { glyph: '⚠', tone: 'warn' })
}

/** `2`, or how many of them are of no use here. */
export function passkeys({ passkeys: all, fitting, isLocal }: SeenPerson): Html {
  if (isLocal) return html`<span class="muted">none needed</span>`
  if (all === fitting) return html`${count(all)}`
  return html`${count(all)}, <span class="muted">${count(all - fitting)} for another domain</span>`
}

/** What is connected besides; undefined: nothing. */
export function accounts({ accounts: all }: Pick<SeenPerson, 'accounts'>): Html | undefined {
  return all === 0 ? undefined : html`, <span class="muted">${plural(all, 'account')}</span>`
}

export function known(ms: number | null): Html {
  return ms === null ? html`<span class="muted">not known</span>` : html`${moment(ms)}`
}

export const personPath = ({ personId }: Pick<SeenPerson, 'personId'>) => path`/people/${personId}`

/** Who made the invite. */
export function inviter({ invitedBy, inviter: name }: Pick<SeenInvite, 'invitedBy' | 'inviter'>): Html {
  if (name === null) return html`<code>${invitedBy}</code>`
  return html`<a href="${path`/people/${invitedBy.slice('person:'.length)}`}">${name}</a>`
}
